/* dataset.h — samples of s+1 tokens in Megatron's order.
 *
 * A corpus is the user's files; a split of it (train, valid, test) is a list of documents; a
 * dataset puts one split's documents in a shuffled row, cuts the row into samples that share one
 * token with their neighbour, and shuffles the samples.
 */
#ifndef RC_TRAIN_DATASET_H
#define RC_TRAIN_DATASET_H

#include "read/tokens.h"

#include <recompute/config.h>

typedef enum rc_split {
    RC_SPLIT_TRAIN,
    RC_SPLIT_VALID,
    RC_SPLIT_TEST,
    RC_SPLIT_COUNT
} rc_split;

/* A run of sequences of one file. Of a text file, whose one sequence is cut by position, only
 * the tokens [first_token, first_token + n_tokens). */
typedef struct rc_range {
    size_t file;
    int64_t first_sequence, n_sequences;
    int64_t first_token, n_tokens; /* text only */
} rc_range;

typedef struct rc_corpus {
    rc_tokens *files;
    size_t n_files;
    bool is_text;  /* all files are text; text and indexed files do not mix */
    int64_t vocab; /* tokens are below it */
    int64_t eod;   /* the token that ends a document; -1 where unknown */
    /* [n_files] ranges of each split; n_documents and n_tokens of the split */
    rc_range *ranges[RC_SPLIT_COUNT];
    int64_t n_documents[RC_SPLIT_COUNT];
    int64_t n_tokens[RC_SPLIT_COUNT];
} rc_corpus;

/**
 * Opens dataset.data_path and cuts it by dataset.split.
 *
 * takes   cfg    data_path, split, vocab_size; borrowed
 *         vocab  words of the model, without padding
 * gives   *out   to be closed; also after an error
 * errors  RC_E_INPUT without data, on mixed formats or an unusable split; as rc_tokens_open
 * source  Megatron-LM megatron/core/datasets/blended_megatron_dataset_config.py,
 *         parse_and_normalize_split; blended_megatron_dataset_builder.py,
 *         _build_megatron_dataset_splits. A text file has one document, so it is cut by tokens
 *         where Megatron cuts by documents.
 */
RC_MUST_CHECK
rc_code rc_corpus_open(const rc_config *cfg, int64_t vocab, rc_arena *mem, rc_corpus **out,
                       rc_error *err);
void rc_corpus_close(rc_corpus *corpus);

typedef struct rc_dataset {
    const rc_corpus *corpus;
    rc_split split;
    int64_t s;
    bool is_eod_masked;
    int64_t n_epochs;             /* passes over the documents that the wanted samples take */
    bool has_separate_last_epoch; /* the last pass is shuffled by itself */
    int64_t *document_index;      /* [n_documents]: all epochs */
    int64_t *document_start;      /* [n_documents+1]: tokens of the row before each */
    int64_t n_documents;
    int64_t *shuffle_index; /* [n_samples] */
    int64_t n_samples;      /* at least what was wanted */
} rc_dataset;

/* What a dataset is made for. */
typedef struct rc_dataset_want {
    rc_split split;
    int64_t s;
    int64_t n_samples;
    int64_t seed; /* 0 to 2^32-1 */
    bool is_eod_masked;
} rc_dataset_want;

/**
 * The order of one split's samples.
 *
 * errors  RC_E_INPUT when the split is too small for one sample; RC_E_RANGE; RC_E_MEMORY
 * memory  16 bytes a document and epoch, 8 a sample
 * source  Megatron-LM megatron/core/datasets/gpt_dataset.py,
 *         _build_document_sample_shuffle_indices; helpers.cpp, build_sample_idx
 */
RC_MUST_CHECK
rc_code rc_dataset_make(const rc_corpus *corpus, const rc_dataset_want *want, rc_arena *mem,
                        rc_dataset **out, rc_error *err);

/* Sample `i` (0 <= i < n_samples): `tokens` [s] and `targets` [s], the next tokens; -1 where
 * there is no loss. errors  RC_E_INPUT for a token outside the vocabulary */
RC_MUST_CHECK
rc_code rc_dataset_sample(const rc_dataset *dataset, int64_t i, int32_t *tokens,
                          int32_t *targets, rc_error *err);

#endif
