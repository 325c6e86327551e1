/* release.c — the rows of releases.def as data; a patch release behaves as its series. */
#include <recompute/release.h>

#include <ctype.h>
#include <string.h>

static const char *const names[RC_RELEASE_COUNT] = {
#define RC_RELEASE(name, text) [RC_RELEASE_##name] = text,
#include "defs/releases.def"
#undef RC_RELEASE
};

const char *rc_release_name(rc_release release)
{
    return names[release];
}

static bool find_named(const char *name, size_t n, rc_release *out)
{
    for (int i = 0; i < RC_RELEASE_COUNT; i++)
        if (strlen(names[i]) == n && strncmp(names[i], name, n) == 0) {
            *out = (rc_release)i;
            return true;
        }
    return false;
}

bool rc_release_find(const char *name, rc_release *out)
{
    static const char *const prefixes[] = {"core_v", "core_r", "v"};
    if (strcmp(name, "latest") == 0 || strcmp(name, "dev") == 0)
        name = "main";
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0) {
            name += strlen(prefixes[i]);
            break;
        }
    /* a patch release behaves as its series: 0.16.1 is 0.16 */
    size_t n = strlen(name);
    if (isdigit((unsigned char)*name)) {
        n = strspn(name, "0123456789");
        if (name[n] == '.')
            n += 1 + strspn(name + n + 1, "0123456789");
        if (name[n] && name[n] != '.' && !isalpha((unsigned char)name[n]))
            return false;
    }
    return find_named(name, n, out);
}
