/* dataset.h — samples of s+1 tokens in Megatron's order.
 *
 * A corpus is the user's files; a split of it (train, valid, test) is a list of documents; a
 * dataset puts one split's documents in a shuffled row, cuts the row into samples that share one
 * token with their neighbour, and shuffles the samples.
 */
#ifndef RC_TRAIN_DATASET_H
#define RC_TRAIN_DATASET_H

#include "read/tokens.h"
#include "train/order.h"

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
    /* text only */
    int64_t first_token, n_tokens;
} rc_range;

typedef struct rc_corpus {
    rc_tokens *files;
    size_t n_files;
    /* all files are text; text and indexed files do not mix */
    bool is_text;
    /* tokens are below it */
    int64_t vocab;
    /* the token that ends a document; -1 where unknown */
    int64_t eod;
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

/* Text whose samples pass this many is put in order by a key instead of a shuffle: Megatron has no
 * text as bytes whose order would be another, and 300 GB of it would take minutes only to draw. */
enum { RC_KEYED_FROM = 1 << 28 };

typedef struct rc_dataset {
    const rc_corpus *corpus;
    rc_split split;
    int64_t s;
    bool is_eod_masked;
    uint32_t seed;
    /* passes over the documents that the wanted samples take */
    int64_t n_epochs;
    /* the last pass is shuffled by itself */
    bool has_separate_last_epoch;
    /* samples are ordered by a key */
    bool is_keyed;
    /* of all epochs */
    int64_t n_documents;
    /* of all epochs; at least what was wanted */
    int64_t n_samples;
    /* of these, those that are shuffled together; then the last pass's */
    int64_t n_first;
    /* set by rc_dataset_order */
    /* [n_documents] */
    int32_t *document_index;
    /* [n_documents / RC_START_EVERY + 1]: tokens of the row before each such */
    int64_t *document_start;
    /* of the first n_first samples, and of those after them */
    rc_order order[2];
} rc_dataset;
enum { RC_START_EVERY = 16 };

/* What a dataset is made for. */
typedef struct rc_dataset_want {
    rc_split split;
    int64_t s;
    int64_t n_samples;
    /* 0 to 2^32-1 */
    int64_t seed;
    bool is_eod_masked;
} rc_dataset_want;

/**
 * How many passes over a split, and samples, a run takes.
 *
 * gives   *out    without the order, which rc_dataset_order makes
 * errors  RC_E_INPUT when the split is too small for one sample; RC_E_RANGE; RC_E_MEMORY
 */
RC_MUST_CHECK
rc_code rc_dataset_plan(const rc_corpus *corpus, const rc_dataset_want *want, rc_arena *mem,
                        rc_dataset **out, rc_error *err);

/**
 * The order of the split's samples, Megatron's (but see RC_KEYED_FROM), as far as it is asked for.
 *
 * takes   n_needed  samples 0 to n_needed - 1 will be read; more than n_samples is as many
 * memory  rc_dataset_order_bytes at most: 4.5 bytes a document and epoch; 8 to 28 bytes a sample that is
 *         needed, and up to 43 MB for the draws
 * source  Megatron-LM megatron/core/datasets/gpt_dataset.py,
 *         _build_document_sample_shuffle_indices; helpers.cpp, build_sample_idx
 */
RC_MUST_CHECK
rc_code rc_dataset_order(rc_dataset *dataset, int64_t n_needed, rc_arena *mem, rc_error *err);
int64_t rc_dataset_order_bytes(const rc_dataset *dataset, int64_t n_needed);

/* Sample `i` (0 <= i < n_needed): `tokens` [s] and `targets` [s], the next tokens; -1 where
 * there is no loss. errors  RC_E_INPUT for a token outside the vocabulary */
RC_MUST_CHECK
rc_code rc_dataset_sample(const rc_dataset *dataset, int64_t i, int32_t *tokens,
                          int32_t *targets, rc_error *err);

#endif
