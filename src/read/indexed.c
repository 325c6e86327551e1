/* read/indexed.c — Megatron's indexed dataset, a pair PREFIX.idx and PREFIX.bin.
 *
 * The .idx, all little-endian and without padding:
 *
 *   "MMIDIDX\0\0" | u64 version = 1 | u8 type code | u64 sequences | u64 document bounds
 *   | i32 length[sequences]    tokens of each sequence
 *   | i64 pointer[sequences]   where it starts in the .bin, in bytes
 *   | i64 bound[bounds]        sequences before each document, the last being all of them
 *   [ | i8 mode[sequences] ]   multimodal datasets only; read by none here
 *
 * Nothing in it is aligned, so numbers are put together from bytes.
 */
#include "read/tokens.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { HEADER_BYTES = 34, MOST_CODES = 9 };

static const struct {
    const char *name;
    int64_t bytes;
    bool is_integer;
} types[MOST_CODES] = {
    [1] = {"uint8", 1, true},    [2] = {"int8", 1, true},   [3] = {"int16", 2, true},
    [4] = {"int32", 4, true},    [5] = {"int64", 8, true},  [6] = {"float64", 8, false},
    [7] = {"float32", 4, false}, [8] = {"uint16", 2, true},
};

/* A file opened here is named by an error long after its path was put together: the messages
 * carry the name of the user's prefix and the suffix. */
static rc_where in_file(const rc_tokens *tokens)
{
    return (rc_where){.file = tokens->path};
}

static uint64_t load(const unsigned char *at, int64_t n_bytes)
{
    uint64_t value = 0;
    for (int64_t i = 0; i < n_bytes; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

static int64_t sequence_length(const rc_tokens *tokens, int64_t sequence)
{
    return (int32_t)(uint32_t)load(tokens->index.at + HEADER_BYTES + 4 * sequence, 4);
}

static int64_t sequence_pointer(const rc_tokens *tokens, int64_t sequence)
{
    const unsigned char *at = tokens->index.at + HEADER_BYTES + 4 * tokens->n_sequences;
    return (int64_t)load(at + 8 * sequence, 8);
}

static rc_code check_header(rc_tokens *tokens, int64_t *n_bounds, rc_error *err)
{
    const unsigned char *at = tokens->index.at;
    size_t n_bytes = tokens->index.n_bytes;
    if (n_bytes < HEADER_BYTES || memcmp(at, "MMIDIDX\0\0", 9) != 0)
        return RC_FAIL(
            err, RC_E_INPUT, in_file(tokens),
            "its .idx is not the index of a Megatron dataset; one begins with MMIDIDX");
    uint64_t version = load(at + 9, 8);
    if (version != 1)
        return RC_FAIL(err, RC_E_UNSUPPORTED, in_file(tokens),
                       "its .idx has version %" PRIu64 "; version 1 is read here", version);
    unsigned code = at[17];
    if (code == 0 || code >= MOST_CODES)
        return RC_FAIL(err, RC_E_INPUT, in_file(tokens),
                       "its .idx has token type code %u; codes go from 1 to 8", code);
    if (!types[code].is_integer)
        return RC_FAIL(err, RC_E_UNSUPPORTED, in_file(tokens),
                       "its tokens are %s; integer tokens are read here", types[code].name);
    tokens->dtype = (int)code;
    tokens->elem_bytes = types[code].bytes;
    uint64_t n_sequences = load(at + 18, 8), n = load(at + 26, 8);
    /* Division, not multiplication: counts of a hostile file overflow. */
    uint64_t room = n_bytes - HEADER_BYTES;
    if (n_sequences > room / 12 || n > (room - 12 * n_sequences) / 8)
        return RC_FAIL(
            err, RC_E_INPUT, in_file(tokens),
            "its .idx names %" PRIu64 " sequences and %" PRIu64
            " document bounds, more than its %zu bytes hold; it is cut off or damaged",
            n_sequences, n, n_bytes);
    if (n_sequences > INT32_MAX)
        return RC_FAIL(err, RC_E_UNSUPPORTED, in_file(tokens),
                       "its .idx names %" PRIu64 " sequences; at most %d are read here, as in "
                       "Megatron",
                       n_sequences, INT32_MAX);
    tokens->n_sequences = (int64_t)n_sequences;
    *n_bounds = (int64_t)n;
    return RC_OK;
}

static rc_code check_sequences(rc_tokens *tokens, rc_error *err)
{
    int64_t data_bytes = (int64_t)tokens->data.n_bytes;
    for (int64_t i = 0; i < tokens->n_sequences; i++) {
        int64_t length = sequence_length(tokens, i), pointer = sequence_pointer(tokens, i);
        if (length < 0)
            return RC_FAIL(err, RC_E_INPUT, in_file(tokens),
                           "its .idx gives sequence %" PRId64 " the length %" PRId64
                           "; lengths are 0 or more",
                           i, length);
        if (pointer < 0 || pointer > data_bytes ||
            length > (data_bytes - pointer) / tokens->elem_bytes)
            return RC_FAIL(err, RC_E_INPUT, in_file(tokens),
                           "its .idx puts sequence %" PRId64 " (%" PRId64
                           " tokens at byte %" PRId64 ") outside its .bin of %" PRId64 " bytes",
                           i, length, pointer, data_bytes);
        tokens->n_tokens += length; /* at most 2^31 lengths below 2^31 */
    }
    return RC_OK;
}

static rc_code check_bounds(const rc_tokens *tokens, int64_t n_bounds, rc_error *err)
{
    const unsigned char *at = tokens->index.at + HEADER_BYTES + 12 * tokens->n_sequences;
    int64_t before = 0;
    for (int64_t i = 0; i < n_bounds; i++) {
        int64_t bound = (int64_t)load(at + 8 * i, 8);
        if (bound < before || bound > tokens->n_sequences)
            return RC_FAIL(err, RC_E_INPUT, in_file(tokens),
                           "its .idx ends document %" PRId64 " at sequence %" PRId64
                           "; %" PRId64 " to %" PRId64 " is right",
                           i, bound, before, tokens->n_sequences);
        before = bound;
    }
    if (n_bounds == 0 || before != tokens->n_sequences)
        return RC_FAIL(err, RC_E_INPUT, in_file(tokens),
                       "its .idx has documents for %" PRId64 " of %" PRId64 " sequences; all "
                       "are needed",
                       before, tokens->n_sequences);
    return RC_OK;
}

static rc_code map_with_suffix(const char *prefix, const char *suffix, rc_map *map,
                               rc_error *err)
{
    char path[4096];
    int n = snprintf(path, sizeof path, "%s%s", prefix, suffix);
    if (n < 0 || (size_t)n >= sizeof path)
        return RC_FAIL(err, RC_E_RANGE, RC_NOWHERE, "the path %.80s... is too long", prefix);
    rc_error inner = {0};
    rc_code code = rc_map_open(path, map, &inner);
    if (code != RC_OK) /* `path` is gone when the error is printed: name the prefix */
        return RC_FAIL(err, code, (rc_where){.file = prefix}, "%s: %.200s", suffix, inner.msg);
    return RC_OK;
}

rc_code rc_indexed_tokens_open(const char *prefix, rc_tokens *out, rc_error *err)
{
    *out = (rc_tokens){.path = prefix};
    int64_t n_bounds = 0;
    rc_code code = map_with_suffix(prefix, ".idx", &out->index, err);
    if (code == RC_OK)
        code = map_with_suffix(prefix, ".bin", &out->data, err);
    if (code == RC_OK)
        code = check_header(out, &n_bounds, err);
    if (code == RC_OK)
        code = check_sequences(out, err);
    if (code == RC_OK)
        code = check_bounds(out, n_bounds, err);
    if (code != RC_OK)
        rc_tokens_close(out);
    return code;
}

int64_t rc_tokens_length(const rc_tokens *tokens, int64_t sequence)
{
    return tokens->is_text ? tokens->n_tokens : sequence_length(tokens, sequence);
}

static int64_t token_at(const rc_tokens *tokens, const unsigned char *start, int64_t i)
{
    uint64_t raw = load(start + i * tokens->elem_bytes, tokens->elem_bytes);
    switch (tokens->dtype) {
    case 2:
        return (int8_t)(uint8_t)raw;
    case 3:
        return (int16_t)(uint16_t)raw;
    case 4:
        return (int32_t)(uint32_t)raw;
    default: /* uint8, uint16 and int64 */
        return (int64_t)raw;
    }
}

static rc_code token_failed(const rc_tokens *tokens, int64_t sequence, int64_t at,
                            int64_t token, int64_t vocab, rc_error *err)
{
    return RC_FAIL(err, RC_E_INPUT, in_file(tokens),
                   "token %" PRId64 " of sequence %" PRId64 " is %" PRId64
                   "; the model's vocabulary has 0 to %" PRId64 " (model.vocab_size)",
                   at, sequence, token, vocab - 1);
}

rc_code rc_tokens_read(const rc_tokens *tokens, int64_t sequence, int64_t first, int64_t n,
                       int64_t vocab, int32_t *out, rc_error *err)
{
    const unsigned char *start = tokens->is_text
                                     ? tokens->data.at
                                     : tokens->data.at + sequence_pointer(tokens, sequence);
    for (int64_t i = 0; i < n; i++) {
        int64_t token;
        if (!tokens->is_text)
            token = token_at(tokens, start, first + i);
        else if (first + i < (int64_t)tokens->data.n_bytes)
            token = start[first + i];
        else
            token = RC_TEXT_EOD;
        if (token < 0 || token >= vocab)
            return token_failed(tokens, sequence, first + i, token, vocab, err);
        out[i] = (int32_t)token;
    }
    return RC_OK;
}
