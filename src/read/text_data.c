/* read/text_data.c — any file as tokens, one a byte, and the choice between the two formats. */
#include "read/tokens.h"

#include <stdio.h>
#include <string.h>

rc_code rc_text_tokens_open(const char *path, rc_tokens *out, rc_error *err)
{
    *out = (rc_tokens){.path = path, .is_text = true, .elem_bytes = 1, .index.fd = -1};
    RC_TRY(rc_in_file_open(path, &out->data, err));
    if (out->data.n_bytes == 0) {
        rc_tokens_close(out);
        return RC_FAIL(err, RC_E_INPUT, (rc_where){.file = path},
                       "is empty; training text needs at least one byte");
    }
    out->n_sequences = 1;
    out->n_tokens = out->data.n_bytes + 1;
    return RC_OK;
}

static bool has_suffix(const char *path, const char *suffix)
{
    size_t n = strlen(path), m = strlen(suffix);
    return n > m && strcmp(path + n - m, suffix) == 0;
}

/* Whether PREFIX.idx is there, PREFIX being the first `n` bytes of `path`. */
static bool has_index(const char *path, size_t n)
{
    char name[4096];
    int written = snprintf(name, sizeof name, "%.*s.idx", (int)n, path);
    return written > 0 && (size_t)written < sizeof name && rc_path_exists(name);
}

rc_code rc_tokens_open(const char *path, rc_arena *mem, rc_tokens *out, rc_error *err)
{
    size_t n = strlen(path);
    if (n > 4000)
        return RC_FAIL(err, RC_E_RANGE, RC_NOWHERE, "the path %.80s... is too long", path);
    bool is_half = has_suffix(path, ".bin") || has_suffix(path, ".idx");
    if (is_half && has_index(path, n - 4))
        return RC_FAIL(err, RC_E_INPUT, (rc_where){.file = path},
                       "is one file of an indexed dataset; name the pair by its prefix, %.*s",
                       (int)(n - 4 < 200 ? n - 4 : 200), path);
    if (has_index(path, n))
        return rc_indexed_tokens_open(path, mem, out, err);
    return rc_text_tokens_open(path, out, err);
}

void rc_tokens_close(rc_tokens *tokens)
{
    rc_in_file_close(&tokens->data);
    rc_in_file_close(&tokens->index);
}
