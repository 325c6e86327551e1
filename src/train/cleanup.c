/* train/cleanup.c — removes what killed saves left in a folder of checkpoints.
 *
 * The folder is the user's: only names that a save gives, of the kind that it makes, are removed. A
 * directory goes only when every file in it has such a name too.
 */
#include "train/checkpoint.h"

#include "base/num.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool rc_checkpoint_parse_name(const char *name, const char *suffix, int64_t *iteration)
{
    static const char prefix[] = "iter_";
    char digits[24], again[32];
    if (strncmp(name, prefix, sizeof prefix - 1) != 0)
        return false;
    const char *at = name + sizeof prefix - 1;
    size_t n = strspn(at, "0123456789");
    if (n == 0 || n >= sizeof digits || strcmp(at + n, suffix) != 0)
        return false;
    snprintf(digits, sizeof digits, "%.*s", (int)n, at);
    if (!rc_parse_int(digits, iteration))
        return false;
    snprintf(again, sizeof again, "%07" PRId64,
             *iteration); /* 7 digits, more only where needed */
    return strcmp(again, digits) == 0;
}

rc_code rc_checkpoint_path(const char *folder, int64_t iteration, rc_arena *mem,
                           const char **out, rc_error *err)
{
    return rc_arena_printf(mem, out, err, "%s/iter_%07" PRId64, folder, iteration);
}

/* `base`, or the temporary that base/file.c writes it to: base.tmp.PID. */
static bool is_file_of(const char *name, const char *base, bool is_temporary)
{
    static const char infix[] = ".tmp.";
    size_t n = strlen(base);
    if (strncmp(name, base, n) != 0)
        return false;
    if (name[n] == '\0')
        return !is_temporary;
    if (strncmp(name + n, infix, sizeof infix - 1) != 0)
        return false;
    const char *pid = name + n + sizeof infix - 1;
    return *pid && pid[strspn(pid, "0123456789")] == '\0';
}

static bool is_ours(const char *name)
{
    for (int i = 0; i < RC_CHECKPOINT_FILES; i++)
        if (is_file_of(name, rc_checkpoint_file_names[i], false))
            return true;
    return is_file_of(name, rc_state_name, false);
}

/* *other: a name in it that is not ours; NULL where there is none. */
static rc_code find_other(const char *path, rc_arena *tmp, const char **other, rc_error *err)
{
    const char **names;
    size_t n;
    *other = NULL;
    RC_TRY(rc_path_list(path, tmp, &names, &n, err));
    for (size_t i = 0; i < n && !*other; i++)
        if (!is_ours(names[i]))
            *other = names[i];
    return RC_OK;
}

rc_code rc_checkpoint_remove(const char *path, rc_arena *tmp, rc_error *err)
{
    const char *other;
    char safe[80];
    if (rc_path_is_link(path) || (rc_path_exists(path) && !rc_path_is_directory(path)))
        return RC_FAIL(err, RC_E_IO, (rc_where){.file = path},
                       "is in the way of a checkpoint; move it elsewhere");
    if (!rc_path_exists(path))
        return RC_OK;
    RC_TRY(find_other(path, tmp, &other, err));
    if (other)
        return RC_FAIL(err, RC_E_IO, (rc_where){.file = path},
                       "is in the way of a checkpoint and holds %s, which no save writes; move "
                       "it elsewhere",
                       rc_text_printable(other, strlen(other), safe, sizeof safe));
    return rc_path_remove_folder(path, err);
}

static bool is_complete(const char *path, rc_arena *tmp)
{
    const char *name;
    for (int i = 0; i <= RC_CHECKPOINT_FILES; i++) {
        const char *base =
            i < RC_CHECKPOINT_FILES ? rc_checkpoint_file_names[i] : rc_state_name;
        if (rc_arena_printf(tmp, &name, NULL, "%s/%s", path, base) != RC_OK ||
            !rc_path_exists(name))
            return false;
    }
    return true;
}

/* iter_N.tmp always; iter_N.old where iter_N is there, for else it may be the one checkpoint that
 * the pointer means. */
static bool is_leaving(const char *folder, const char *name, rc_arena *tmp)
{
    int64_t iteration;
    const char *made;
    if (is_file_of(name, rc_pointer_name, true))
        return true;
    if (rc_checkpoint_parse_name(name, ".tmp", &iteration))
        return true;
    return rc_checkpoint_parse_name(name, ".old", &iteration) &&
           rc_checkpoint_path(folder, iteration, tmp, &made, NULL) == RC_OK &&
           is_complete(made, tmp);
}

/* A run that was killed while it saved an iteration a second time, between the two renames: what
 * the pointer means gets its name back. */
static rc_code restore(const char *folder, rc_arena *tmp, rc_error *err)
{
    static const char suffix[] = ".old";
    const char *old, *made;
    if (rc_checkpoint_find(folder, tmp, &old, NULL) != RC_OK || !old)
        return RC_OK; /* who resumes from it is told */
    size_t n = strlen(old), n_suffix = sizeof suffix - 1;
    if (strcmp(old + n - n_suffix, suffix) != 0 || !is_complete(old, tmp))
        return RC_OK;
    RC_TRY(rc_arena_copy(tmp, old, n - n_suffix, &made, err));
    RC_TRY(rc_path_rename(old, made, err));
    return rc_path_sync_directory(folder, err);
}

rc_code rc_checkpoint_clean(const char *folder, rc_arena *tmp, rc_error *err)
{
    const char **names, *path;
    size_t n;
    rc_mark mark = rc_arena_mark(tmp);
    RC_TRY(restore(folder, tmp, err));
    RC_TRY(rc_path_list(folder, tmp, &names, &n, err));
    for (size_t i = 0; i < n; i++) {
        if (!is_leaving(folder, names[i], tmp))
            continue;
        RC_TRY(rc_arena_printf(tmp, &path, err, "%s/%s", folder, names[i]));
        bool is_file = is_file_of(names[i], rc_pointer_name, true);
        rc_code code = RC_OK;
        if (is_file && !rc_path_is_directory(path) && !rc_path_is_link(path))
            code = rc_path_remove(path, NULL);
        else if (!is_file)
            code = rc_checkpoint_remove(path, tmp, NULL);
        (void)code; /* what stays is harmless, until a save of this iteration fails on it */
    }
    rc_arena_rewind(tmp, mark);
    return RC_OK;
}
