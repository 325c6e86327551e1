/* release.h — the releases of Megatron Core that rules, settings and labels differ by: rows of releases.def. */
#ifndef RECOMPUTE_RELEASE_H
#define RECOMPUTE_RELEASE_H

#include <recompute/error.h>

RC_EXTERN_C_BEGIN

/* Later ones are greater. */
typedef enum rc_release {
#define RC_RELEASE(name, text) RC_RELEASE_##name,
#include "defs/releases.def" /* installed beside this header */
#undef RC_RELEASE
    RC_RELEASE_COUNT
} rc_release;

/* "0.16", "0.16.1", "core_v0.16.0", "core_r0.16.0", "v0.16", "main", "latest", "dev"; false, and *out is left,
 * when unknown. */
RC_API bool rc_release_find(const char *name, rc_release *out);
/* "0.16"; `release` is below RC_RELEASE_COUNT. */
RC_API const char *rc_release_name(rc_release release);

RC_EXTERN_C_END

#endif
