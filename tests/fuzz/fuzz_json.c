/* fuzz_json.c — any bytes through rc_json_read and rc_config_make. */
#include "fuzz_config.h"

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t n_bytes)
{
    return fuzz_read(rc_json_read, bytes, n_bytes);
}
