/* fuzz_check.c — any JSON object as the fields of a config class: values of every type in every field,
 * as `check --jsonl` takes them. */
#include "fuzz_config.h"

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t n_bytes)
{
    rc_arena *mem = rc_arena_open();
    rc_error err = {0};
    rc_doc *doc;
    rc_check *check;
    rc_check_options options = {.megatron = fuzz_releases[n_bytes % 5]};
    rc_code code = rc_json_read("fuzz", (const char *)bytes, n_bytes, mem, &doc, &err);
    if (code == RC_OK)
        code = rc_check_make_core(doc, n_bytes % 2, &options, mem, &check, &err);
    if (code != RC_OK)
        check_error(code, &err);
    else
        check_verdict(check, mem, &err);
    rc_arena_close(mem);
    return 0;
}
