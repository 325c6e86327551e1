/* tokens.h — files of tokens: Megatron's indexed dataset, or any file read as bytes.
 *
 * Everything a stranger's file could get wrong is found when it is opened: afterwards every
 * sequence lies inside the data as it was then. Only token values are checked when they are read,
 * since looking at all of them would read the whole file. The files are read, not mapped, and may
 * change while a run goes on: what is gone by then is an error, what grew behind is not looked at,
 * and other bytes in the same place are taken as they are.
 */
#ifndef RC_READ_TOKENS_H
#define RC_READ_TOKENS_H

#include "base/file.h"

#include <recompute/arena.h>
#include <recompute/read.h>

typedef struct rc_tokens {
    /* as the user wrote it */
    const char *path;
    /* one sequence: the bytes and RC_TEXT_EOD */
    bool is_text;
    /* the .bin, or the text */
    rc_in_file data;
    /* the .idx; closed for text */
    rc_in_file index;
    /* .idx: tokens of each sequence */
    int32_t *lengths;
    /* what Megatron's GPT dataset calls documents */
    int64_t n_sequences;
    /* of all sequences */
    int64_t n_tokens;
    /* .idx: the code of the token type */
    int dtype;
    /* .idx: bytes of a token */
    int64_t elem_bytes;
} rc_tokens;

/**
 * Opens `path`: the prefix of a .bin and .idx pair where PREFIX.idx exists, else a text file.
 *
 * takes   path  borrowed; must outlive the result
 *         mem   for the lengths of an .idx, 4 bytes a sequence
 * errors  RC_E_IO when a file is missing, RC_E_INPUT when an .idx contradicts itself or its .bin,
 *         RC_E_UNSUPPORTED for tokens that are not integers; *out then needs no close
 * cost    one pass over the .idx; the data is not read
 * source  Megatron-LM megatron/core/datasets/indexed_dataset.py, _IndexWriter and _IndexReader
 */
RC_MUST_CHECK
rc_code rc_tokens_open(const char *path, rc_arena *mem, rc_tokens *out, rc_error *err);
void rc_tokens_close(rc_tokens *tokens);

/* The two formats behind rc_tokens_open: text_data.c's is a plain file, indexed.c's a pair. */
RC_MUST_CHECK
rc_code rc_text_tokens_open(const char *path, rc_tokens *out, rc_error *err);
RC_MUST_CHECK
rc_code rc_indexed_tokens_open(const char *prefix, rc_arena *mem, rc_tokens *out,
                               rc_error *err);

/* Tokens of a sequence; 0 <= sequence < n_sequences. */
int64_t rc_tokens_length(const rc_tokens *tokens, int64_t sequence);

/* Copies `n` tokens of a sequence from its token `first` on; the range lies inside the sequence.
 * errors  RC_E_INPUT when one is not in [0, vocab), naming the file, the sequence and the token;
 *         RC_E_IO when the file was cut off since it was opened, or cannot be read */
RC_MUST_CHECK
rc_code rc_tokens_read(const rc_tokens *tokens, int64_t sequence, int64_t first, int64_t n,
                       int64_t vocab, int32_t *out, rc_error *err);

#endif
