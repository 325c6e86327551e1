/* flags.c — the arguments that Megatron-LM's parser knows, by name. */
#include "args/flags.h"

#include "base/text.h"

#include <string.h>

static const rc_flag flags[] = {
#define RC_FLAG(name, takes, choices) {name, RC_FLAG_##takes, choices, NULL},
#define RC_FLAG_GONE(name, takes, instead)
#include "defs/flags.def"
#undef RC_FLAG
#undef RC_FLAG_GONE
};

static const rc_flag gone[] = {
#define RC_FLAG(name, takes, choices)
#define RC_FLAG_GONE(name, takes, instead) {name, RC_FLAG_##takes, "", instead},
#include "defs/flags.def"
#undef RC_FLAG
#undef RC_FLAG_GONE
};

enum { N_FLAGS = sizeof flags / sizeof *flags, N_GONE = sizeof gone / sizeof *gone };

size_t rc_flag_count(void)
{
    return N_FLAGS;
}

const rc_flag *rc_flag_at(size_t i)
{
    return &flags[i];
}

static int compare(const char *name, size_t n, const rc_flag *flag)
{
    int order = strncmp(name, flag->name, n);
    return order ? order : flag->name[n] ? -1 : 0;
}

const rc_flag *rc_flag_find(const char *name, size_t n)
{
    for (size_t low = 0, high = N_FLAGS; low < high;) {
        size_t middle = (low + high) / 2;
        int order = compare(name, n, &flags[middle]);
        if (order == 0)
            return &flags[middle];
        low = order > 0 ? middle + 1 : low;
        high = order > 0 ? high : middle;
    }
    for (size_t i = 0; i < N_GONE; i++)
        if (compare(name, n, &gone[i]) == 0)
            return &gone[i];
    return NULL;
}

bool rc_flag_takes_more(const rc_flag *flag, size_t n_values)
{
    bool is_one = flag && flag->takes < RC_FLAG_INTS;
    return !is_one || n_values < (flag->takes == RC_FLAG_NONE ? 0 : 1);
}

/* An underscore for a dash counts as no typo. */
static void fold(const char *name, char *buf, size_t room)
{
    size_t n = 0;
    for (; name[n] && n + 1 < room; n++)
        buf[n] = name[n] == '_' ? '-' : name[n];
    buf[n] = '\0';
}

enum { MAX_NAME = 96 };

/* A name that begins like one argument alone, and has most of its letters, is its abbreviation; else
 * typos count. */
const rc_flag *rc_flag_nearest(const char *name)
{
    char typed[MAX_NAME], known[MAX_NAME];
    const rc_flag *best = NULL, *begun = NULL;
    size_t n = strlen(name), most = n < 5 ? 0 : n < 9 ? 1 : n < 16 ? 2 : 3;
    size_t n_begun = 0, least = most + 1;
    if (n >= sizeof typed)
        return NULL;
    fold(name, typed, sizeof typed);
    for (size_t i = 0; i < N_FLAGS; i++) {
        size_t n_known = strlen(flags[i].name);
        if (n_known >= sizeof known || n_known + most < n)
            continue;
        fold(flags[i].name, known, sizeof known);
        if (strncmp(known, typed, n) == 0 && n_known > n) {
            begun = &flags[i];
            n_begun++;
        }
        size_t distance =
            n + most < n_known ? least : rc_text_distance_within(typed, known, most);
        if (distance < least) {
            least = distance;
            best = &flags[i];
        }
    }
    if (best || n_begun != 1)
        return best;
    return 3 * n >= 2 * strlen(begun->name) ? begun : NULL;
}
