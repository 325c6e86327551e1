/* flags.h — the arguments that Megatron-LM's parser knows: rows of flags.def. */
#ifndef RC_ARGS_FLAGS_H
#define RC_ARGS_FLAGS_H

#include <stdbool.h>
#include <stddef.h>

/* What stands behind an argument. ORDER rc_flag_takes */
typedef enum rc_flag_takes {
    RC_FLAG_NONE,
    RC_FLAG_INT,
    RC_FLAG_REAL,
    RC_FLAG_WORD,
    RC_FLAG_PATTERN, /* 4, 128,0 or ([0]*3+[1]*61) */
    RC_FLAG_INTS,
    RC_FLAG_REALS,
    RC_FLAG_WORDS,
    RC_FLAG_ANY /* words, or none */
} rc_flag_takes;

typedef struct rc_flag {
    /* without the -- */
    const char *name;
    rc_flag_takes takes;
    /* words with a space between; "" where any value will do */
    const char *choices;
    /* what took its place, when no parser of today knows it; else NULL */
    const char *instead;
} rc_flag;

/* The argument of that name, `n` bytes, in exactly that spelling; NULL when there is none. */
const rc_flag *rc_flag_find(const char *name, size_t n);
/* May another value stand behind the `n_values` that it has? A name that is no argument takes any. */
bool rc_flag_takes_more(const rc_flag *flag, size_t n_values);
/* The argument probably meant by a name that is none; NULL when none is alike. */
const rc_flag *rc_flag_nearest(const char *name);
size_t rc_flag_count(void);
const rc_flag *rc_flag_at(size_t i); /* in their order, for tests and lists */

#endif
