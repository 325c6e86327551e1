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

/* Reading fails like a file: the path is put together for opening only, so the suffix says which. */
static rc_code read_part(const rc_tokens *tokens, const rc_in_file *file, int64_t at, int64_t n,
                         void *out, rc_error *err)
{
    rc_error inner = {0};
    rc_code code = rc_in_file_read(file, at, n, out, &inner);
    if (code == RC_OK)
        return RC_OK;
    return RC_FAIL(err, code, in_file(tokens), "%s%.300s",
                   tokens->is_text          ? ""
                   : file == &tokens->index ? "its .idx "
                                            : "its .bin ",
                   inner.msg);
}

/* A row of numbers of the .idx, read piece by piece. */
typedef struct numbers {
    const rc_tokens *tokens;
    int64_t at, end; /* bytes in the file: what comes next, and behind the last */
    int64_t elem_bytes;
    int64_t n, used; /* bytes in the piece */
    unsigned char piece[1 << 14];
} numbers;

static void start_numbers(numbers *of, const rc_tokens *tokens, int64_t at, int64_t n,
                          int64_t elem_bytes)
{
    of->tokens = tokens;
    of->at = at;
    of->end = at + n * elem_bytes;
    of->elem_bytes = elem_bytes;
    of->n = of->used = 0;
}

static rc_code next_number(numbers *of, uint64_t *out, rc_error *err)
{
    if (of->used == of->n) {
        const int64_t left = of->end - of->at, most = (int64_t)sizeof of->piece;
        of->n = left < most ? left : most;
        of->used = 0;
        RC_TRY(read_part(of->tokens, &of->tokens->index, of->at, of->n, of->piece, err));
        of->at += of->n;
    }
    *out = load(of->piece + of->used, of->elem_bytes);
    of->used += of->elem_bytes;
    return RC_OK;
}

static int64_t pointers_at(const rc_tokens *tokens)
{
    return HEADER_BYTES + 4 * tokens->n_sequences;
}

static rc_code check_header(rc_tokens *tokens, int64_t *n_bounds, rc_error *err)
{
    unsigned char at[HEADER_BYTES] = {0};
    int64_t n_bytes = tokens->index.n_bytes;
    if (n_bytes >= HEADER_BYTES)
        RC_TRY(read_part(tokens, &tokens->index, 0, HEADER_BYTES, at, err));
    if (memcmp(at, "MMIDIDX\0\0", 9) != 0)
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
    uint64_t room = (uint64_t)n_bytes - HEADER_BYTES;
    if (n_sequences > room / 12 || n > (room - 12 * n_sequences) / 8)
        return RC_FAIL(err, RC_E_INPUT, in_file(tokens),
                       "its .idx names %" PRIu64 " sequences and %" PRIu64
                       " document bounds, more than its %" PRId64
                       " bytes hold; it is cut off or damaged",
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

static rc_code read_lengths(rc_tokens *tokens, rc_arena *mem, rc_error *err)
{
    numbers lengths;
    uint64_t raw;
    RC_TRY(RC_NEW(mem, &tokens->lengths, tokens->n_sequences, err));
    start_numbers(&lengths, tokens, HEADER_BYTES, tokens->n_sequences, 4);
    for (int64_t i = 0; i < tokens->n_sequences; i++) {
        RC_TRY(next_number(&lengths, &raw, err));
        tokens->lengths[i] = (int32_t)(uint32_t)raw;
        if (tokens->lengths[i] < 0)
            return RC_FAIL(err, RC_E_INPUT, in_file(tokens),
                           "its .idx gives sequence %" PRId64 " the length %" PRId32
                           "; lengths are 0 or more",
                           i, tokens->lengths[i]);
        tokens->n_tokens += tokens->lengths[i]; /* at most 2^31 lengths below 2^31 */
    }
    return RC_OK;
}

static rc_code check_pointer(const rc_tokens *tokens, int64_t sequence, int64_t pointer,
                             rc_error *err)
{
    int64_t data_bytes = tokens->data.n_bytes, length = tokens->lengths[sequence];
    if (pointer >= 0 && pointer <= data_bytes &&
        length <= (data_bytes - pointer) / tokens->elem_bytes)
        return RC_OK;
    return RC_FAIL(err, RC_E_INPUT, in_file(tokens),
                   "its .idx puts sequence %" PRId64 " (%" PRId64 " tokens at byte %" PRId64
                   ") outside its .bin of %" PRId64 " bytes",
                   sequence, length, pointer, data_bytes);
}

static rc_code check_pointers(const rc_tokens *tokens, rc_error *err)
{
    numbers pointers;
    uint64_t raw;
    start_numbers(&pointers, tokens, pointers_at(tokens), tokens->n_sequences, 8);
    for (int64_t i = 0; i < tokens->n_sequences; i++) {
        RC_TRY(next_number(&pointers, &raw, err));
        RC_TRY(check_pointer(tokens, i, (int64_t)raw, err));
    }
    return RC_OK;
}

static rc_code check_bounds(const rc_tokens *tokens, int64_t n_bounds, rc_error *err)
{
    numbers bounds;
    uint64_t raw;
    int64_t before = 0;
    start_numbers(&bounds, tokens, HEADER_BYTES + 12 * tokens->n_sequences, n_bounds, 8);
    for (int64_t i = 0; i < n_bounds; i++) {
        RC_TRY(next_number(&bounds, &raw, err));
        int64_t bound = (int64_t)raw;
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

static rc_code open_with_suffix(const char *prefix, const char *suffix, rc_in_file *file,
                                rc_error *err)
{
    char path[4096];
    int n = snprintf(path, sizeof path, "%s%s", prefix, suffix);
    if (n < 0 || (size_t)n >= sizeof path)
        return RC_FAIL(err, RC_E_RANGE, RC_NOWHERE, "the path %.80s... is too long", prefix);
    rc_error inner = {0};
    rc_code code = rc_in_file_open(path, file, &inner);
    file->path = prefix; /* `path` is gone when an error is printed: name the prefix */
    if (code != RC_OK)
        return RC_FAIL(err, code, (rc_where){.file = prefix}, "%s: %.200s", suffix, inner.msg);
    return RC_OK;
}

rc_code rc_indexed_tokens_open(const char *prefix, rc_arena *mem, rc_tokens *out, rc_error *err)
{
    *out = (rc_tokens){.path = prefix, .data.fd = -1, .index.fd = -1};
    int64_t n_bounds = 0;
    rc_code code = open_with_suffix(prefix, ".idx", &out->index, err);
    if (code == RC_OK)
        code = open_with_suffix(prefix, ".bin", &out->data, err);
    if (code == RC_OK)
        code = check_header(out, &n_bounds, err);
    if (code == RC_OK)
        code = read_lengths(out, mem, err);
    if (code == RC_OK)
        code = check_pointers(out, err);
    if (code == RC_OK)
        code = check_bounds(out, n_bounds, err);
    if (code != RC_OK)
        rc_tokens_close(out);
    return code;
}

int64_t rc_tokens_length(const rc_tokens *tokens, int64_t sequence)
{
    return tokens->is_text ? tokens->n_tokens : tokens->lengths[sequence];
}

static int64_t token_at(const rc_tokens *tokens, const unsigned char *at)
{
    uint64_t raw = load(at, tokens->elem_bytes);
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

/* Where a sequence starts in the data. Looked up again, and checked again, since the .idx may have
 * changed. */
static rc_code find_start(const rc_tokens *tokens, int64_t sequence, int64_t *out,
                          rc_error *err)
{
    unsigned char raw[8];
    *out = 0;
    if (tokens->is_text)
        return RC_OK;
    RC_TRY(read_part(tokens, &tokens->index, pointers_at(tokens) + 8 * sequence, 8, raw, err));
    *out = (int64_t)load(raw, 8);
    return check_pointer(tokens, sequence, *out, err);
}

rc_code rc_tokens_read(const rc_tokens *tokens, int64_t sequence, int64_t first, int64_t n,
                       int64_t vocab, int32_t *out, rc_error *err)
{
    enum { PIECE_BYTES = 1 << 13 };
    unsigned char piece[PIECE_BYTES];
    int64_t start, elem = tokens->elem_bytes, n_done = 0;
    /* the last token of a text is no byte of the file */
    int64_t n_eod = tokens->is_text && first + n == tokens->n_tokens;
    RC_TRY(find_start(tokens, sequence, &start, err));
    while (n_done < n - n_eod) {
        int64_t n_here = PIECE_BYTES / elem, left = n - n_eod - n_done;
        n_here = left < n_here ? left : n_here;
        RC_TRY(read_part(tokens, &tokens->data, start + (first + n_done) * elem, n_here * elem,
                         piece, err));
        for (int64_t i = 0; i < n_here; i++, n_done++) {
            int64_t token = token_at(tokens, piece + i * elem);
            if (token < 0 || token >= vocab)
                return token_failed(tokens, sequence, first + n_done, token, vocab, err);
            out[n_done] = (int32_t)token;
        }
    }
    if (n_eod && RC_TEXT_EOD >= vocab)
        return token_failed(tokens, sequence, first + n_done, RC_TEXT_EOD, vocab, err);
    if (n_eod)
        out[n_done] = RC_TEXT_EOD;
    return RC_OK;
}
