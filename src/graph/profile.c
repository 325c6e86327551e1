/* graph/profile.c — the names of the profiles, in the order of rc_profile. */
#include <recompute/graph.h>

#include <string.h>

static const char *const profile_names[] = {"engine", "megatron-te", "megatron-local"};

const char *rc_profile_name(rc_profile profile)
{
    return profile_names[profile];
}

bool rc_profile_find(const char *name, rc_profile *profile)
{
    for (int i = 0; i < RC_PROFILE_COUNT; i++) {
        if (strcmp(profile_names[i], name) != 0)
            continue;
        *profile = (rc_profile)i;
        return true;
    }
    return false;
}
