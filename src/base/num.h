/* num.h — checked sizes, and numbers as people read and write them. */
#ifndef RC_BASE_NUM_H
#define RC_BASE_NUM_H

#include <recompute/error.h>

/* *out = a*b (a+b); false when the result passes 2^63-1 or an operand is negative. */
bool rc_mul(int64_t a, int64_t b, int64_t *out);
bool rc_add(int64_t a, int64_t b, int64_t *out);

/* Next multiple of `step` (a power of two) at or above `n`. */
int64_t rc_round_up(int64_t n, int64_t step);

#define RC_KIB (INT64_C(1) << 10)
#define RC_MIB (INT64_C(1) << 20)
#define RC_GIB (INT64_C(1) << 30)
#define RC_GB INT64_C(1000000000)

/* A unit by name, and how many it stands for. */
typedef struct rc_scale {
    const char *name;
    double factor;
} rc_scale;

/* Units of bytes, 1024 apart: B KiB MiB GiB TiB PiB. */
enum { RC_N_BINARY = 6, RC_N_SI = 7 };
extern const rc_scale rc_binary_units[RC_N_BINARY];
/* SI prefixes, 1000 apart: none K M G T P E. With a B behind they are units of bytes too. */
extern const rc_scale rc_si_units[RC_N_SI];

/* "1.25 GiB", "312 KiB", "7 B"; 1024-based, 3 significant digits. Returns buf. */
const char *rc_format_bytes(int64_t bytes, char buf[32]);
/* "1,234,567". Returns buf. */
const char *rc_format_count(int64_t n, char buf[32]);
/* "3.21 T", "45.0 G" with SI prefixes. Returns buf. */
const char *rc_format_si(double value, char buf[32]);
/* "1h02m", "3m20s", "12.3 s", "4.56 ms". Returns buf. */
const char *rc_format_seconds(double seconds, char buf[32]);

/* The shortest of 15, 16 and 17 digits that reads back as the same double; "-0.0", "inf", "nan".
 * Returns buf. */
const char *rc_format_exact(double value, char buf[40]);

/* "512MiB", "2.5 GiB", "80GB", "1073741824": bytes. KiB to PiB are 1024-based, KB to EB
 * 1000-based; the unit's case does not matter. False when it is not that. */
bool rc_parse_bytes(const char *text, int64_t *bytes);
/* What programs print, from `at` to `limit`: "GiB", "GB", "bytes" as powers of 1024, case and all.
 * *end is set behind it; 0 when there is none. */
double rc_find_printed_unit(const char *at, const char *limit, const char **end);
/* Whole-string parses; false when anything is left over or the value does not fit. */
bool rc_parse_int(const char *text, int64_t *out);
bool rc_parse_real(const char *text, double *out);

#endif
