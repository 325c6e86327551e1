/* fuzz_override.c — any lines as override words through rc_override_read and rc_config_make. */
#include "fuzz_config.h"

enum { MAX_WORDS = 64 };

static rc_code read_lines(const char *path, const char *bytes, size_t n_bytes, rc_arena *mem,
                          rc_doc **out, rc_error *err)
{
    (void)path;
    const char *text, *words[MAX_WORDS];
    size_t n_words = 0;
    char *line;
    RC_TRY(rc_arena_copy(mem, bytes, n_bytes, &text, err));
    RC_TRY(RC_NEW(mem, &line, n_bytes + 1, err));
    memcpy(line, text, n_bytes + 1);
    for (char *at = line; n_words < MAX_WORDS; at = strchr(at, '\0') + 1) {
        at[strcspn(at, "\n")] = '\0';
        words[n_words++] = at;
        if ((size_t)(strchr(at, '\0') - line) >= n_bytes)
            break;
    }
    return rc_override_read(words, n_words, mem, out, err);
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t n_bytes)
{
    return fuzz_read(read_lines, bytes, n_bytes);
}
