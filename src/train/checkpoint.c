/* train/checkpoint.c — saves a run so that its continuation cannot be told from no stop at all.
 *
 * The order of a save; each step is on disk (fsync of the file, or of the directory whose names
 * change) before the next begins:
 *
 *   1 iter_N.tmp is made    2 its files are written     3 iter_N, if there is one, becomes iter_N.old
 *   4 iter_N.tmp becomes iter_N      5 the pointer file is replaced       6 iter_N.old is removed
 *
 * So whatever the pointer names is complete at every moment, whether the program is killed or the
 * machine fails: iter_N, or between 3 and 4 iter_N.old.
 */
#include "train/checkpoint.h"

#include "base/num.h"
#include "base/text.h"

#include <inttypes.h>
#include <string.h>

static rc_code join(const char *folder, const char *name, rc_arena *mem, const char **out,
                    rc_error *err)
{
    return rc_arena_printf(mem, out, err, "%s/%s", folder, name);
}

static rc_weights_io io_of(const rc_checkpoint *checkpoint, int file)
{
    return (rc_weights_io){.at = file == 0 ? checkpoint->weights : checkpoint->moments,
                           .n = file == 0 ? checkpoint->n_weights : checkpoint->n_moments,
                           .is_moments = file == 1,
                           .n_threads = checkpoint->n_threads};
}

rc_code rc_checkpoint_check(const rc_checkpoint *checkpoint, rc_error *err)
{
    for (int i = 0; i < RC_CHECKPOINT_FILES; i++) {
        rc_weights_io of = io_of(checkpoint, i);
        RC_TRY(rc_weights_check(&of, err));
    }
    return RC_OK;
}

/* --- save --- */

static rc_code save_pointer(const char *folder, int64_t iteration, rc_arena *tmp, rc_error *err)
{
    rc_out_file file;
    const char *path, *text;
    RC_TRY(join(folder, rc_pointer_name, tmp, &path, err));
    RC_TRY(rc_arena_printf(tmp, &text, err, "%" PRId64 "\n", iteration));
    RC_TRY(rc_out_file_open(path, &file, err));
    RC_TRY(rc_out_file_end(&file, rc_out_file_write(&file, text, strlen(text), err), err));
    return rc_path_sync_directory(folder, err);
}

/* Steps 1 and 2. */
static rc_code save_files(const char *making, const rc_state *state,
                          const rc_checkpoint *checkpoint, rc_arena *tmp, rc_error *err)
{
    rc_file_seal seals[RC_CHECKPOINT_FILES];
    const char *path;
    RC_TRY(rc_path_make_directory(making, err));
    for (int i = 0; i < RC_CHECKPOINT_FILES; i++) {
        rc_weights_io of = io_of(checkpoint, i);
        RC_TRY(join(making, rc_checkpoint_file_names[i], tmp, &path, err));
        RC_TRY(rc_weights_save(path, &of, &seals[i], tmp, err));
    }
    RC_TRY(join(making, rc_state_name, tmp, &path, err));
    RC_TRY(rc_state_write(path, state, seals, tmp, err));
    return rc_path_sync_directory(making, err);
}

typedef struct names {
    const char *folder, *made, *making, *old;
} names;

/* Steps 3 and 4. Where there is no `made`, `old` may be the one checkpoint that the pointer means. */
static rc_code put_in_place(const names *of, rc_arena *tmp, rc_error *err)
{
    bool is_replacing = rc_path_exists(of->made);
    if (is_replacing) {
        RC_TRY(rc_checkpoint_remove(of->old, tmp, err));
        RC_TRY(rc_path_rename(of->made, of->old, err));
    }
    rc_code code = rc_path_sync_directory(of->folder, err);
    if (code == RC_OK)
        code = rc_path_rename(of->making, of->made, err);
    if (code != RC_OK && is_replacing) {
        rc_code restored = rc_path_rename(of->old, of->made, NULL);
        (void)restored; /* else rc_checkpoint_find takes `old` */
    }
    RC_TRY(code);
    return rc_path_sync_directory(of->folder, err);
}

static rc_code save(const names *of, const rc_state *state, const rc_checkpoint *checkpoint,
                    rc_arena *tmp, rc_error *err)
{
    RC_TRY(rc_checkpoint_remove(of->making, tmp, err));
    rc_code code = save_files(of->making, state, checkpoint, tmp, err);
    if (code == RC_OK)
        code = put_in_place(of, tmp, err);
    if (code != RC_OK) {
        rc_code cleaned = rc_path_remove_folder(of->making, NULL);
        (void)cleaned; /* the failure to tell is the first one */
        return code;
    }
    RC_TRY(save_pointer(of->folder, state->iteration, tmp, err));
    code = rc_checkpoint_remove(of->old, tmp, NULL);
    (void)code; /* the save is complete; the next one tries again */
    return RC_OK;
}

rc_code rc_checkpoint_save(const char *folder, const rc_state *state,
                           const rc_checkpoint *checkpoint, rc_arena *tmp, rc_error *err)
{
    names of = {.folder = folder};
    rc_mark mark = rc_arena_mark(tmp);
    RC_TRY(rc_path_make_directory(folder, err));
    RC_TRY(rc_checkpoint_path(folder, state->iteration, tmp, &of.made, err));
    RC_TRY(rc_arena_printf(tmp, &of.making, err, "%s.tmp", of.made));
    RC_TRY(rc_arena_printf(tmp, &of.old, err, "%s.old", of.made));
    RC_TRY(save(&of, state, checkpoint, tmp, err)); /* an error names paths in `tmp` */
    rc_arena_rewind(tmp, mark);
    return RC_OK;
}

/* --- find --- */

/* The largest iteration that a folder has, or -1. */
static int64_t find_newest(const char *folder, rc_arena *tmp)
{
    const char **names_in;
    size_t n;
    int64_t newest = -1, iteration;
    if (rc_path_list(folder, tmp, &names_in, &n, NULL) != RC_OK)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (rc_checkpoint_parse_name(names_in[i], "", &iteration) && iteration > newest)
            newest = iteration;
    return newest;
}

static rc_code missing(const char *folder, const char *pointer, int64_t iteration,
                       rc_arena *tmp, rc_error *err)
{
    int64_t newest = find_newest(folder, tmp);
    if (newest < 0)
        return RC_FAIL(err, RC_E_INPUT, (rc_where){.file = pointer},
                       "names iteration %" PRId64 ", but the folder holds no checkpoint",
                       iteration);
    return RC_FAIL(err, RC_E_INPUT, (rc_where){.file = pointer},
                   "names iteration %" PRId64
                   ", which is not there; the newest that is there is "
                   "%" PRId64,
                   iteration, newest);
}

/* One number, with space around it as editors leave it. */
static bool parse_pointer(const char *text, size_t n, int64_t *iteration)
{
    static const char spaces[] = " \t\r\n";
    char word[32];
    size_t first = strspn(text, spaces), n_digits = strspn(text + first, "0123456789");
    size_t end = first + n_digits + strspn(text + first + n_digits, spaces);
    if (end != n || n_digits >= sizeof word)
        return false;
    snprintf(word, sizeof word, "%.*s", (int)n_digits, text + first);
    return rc_parse_int(word, iteration);
}

rc_code rc_checkpoint_find(const char *folder, rc_arena *mem, const char **path, rc_error *err)
{
    const char *pointer, *text, *made, *old;
    size_t n;
    int64_t iteration;
    bool has_pointer, is_made, is_old = false;
    *path = NULL;
    RC_TRY(join(folder, rc_pointer_name, mem, &pointer, err));
    RC_TRY(rc_path_look(pointer, &has_pointer, err)); /* else a run would start afresh */
    if (!has_pointer)
        return RC_OK;
    RC_TRY(rc_file_read(pointer, 1024, mem, &text, &n, err));
    if (!parse_pointer(text, n, &iteration))
        return RC_FAIL(err, RC_E_INPUT, (rc_where){.file = pointer},
                       "holds no iteration number; a checkpoint's is 0 or more");
    RC_TRY(rc_checkpoint_path(folder, iteration, mem, &made, err));
    RC_TRY(rc_arena_printf(mem, &old, err, "%s.old", made));
    RC_TRY(rc_path_look(made, &is_made, err)); /* else an earlier one would be taken for it */
    if (!is_made)
        RC_TRY(rc_path_look(old, &is_old, err)); /* killed between steps 3 and 4 */
    if (!is_made && !is_old)
        return missing(folder, pointer, iteration, mem, err);
    *path = is_made ? made : old;
    return RC_OK;
}

/* --- load --- */

static rc_code find_iteration(const char *path, int64_t *iteration, rc_error *err)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (rc_checkpoint_parse_name(name, "", iteration) ||
        rc_checkpoint_parse_name(name, ".old", iteration))
        return RC_OK;
    return RC_FAIL(err, RC_E_INPUT, (rc_where){.file = path},
                   "is no folder of a checkpoint; iter_ and 7 digits are its name");
}

/* Nothing is taken over before both files are verified. */
static rc_code load(const char *path, const rc_checkpoint *checkpoint, rc_state *state,
                    bool is_taken, rc_arena *mem, rc_error *err)
{
    rc_file_seal seals[RC_CHECKPOINT_FILES];
    rc_safetensors files[RC_CHECKPOINT_FILES];
    rc_state read = *state;
    const char *name;
    int64_t iteration;
    int n_open = 0;
    rc_code code = RC_OK;
    RC_TRY(find_iteration(path, &iteration, err));
    RC_TRY(join(path, rc_state_name, mem, &name, err));
    RC_TRY(rc_state_read(name, iteration, &read, seals, mem, err));
    for (int i = 0; i < RC_CHECKPOINT_FILES && code == RC_OK; i++) {
        rc_weights_io of = io_of(checkpoint, i);
        code = join(path, rc_checkpoint_file_names[i], mem, &name, err);
        if (code == RC_OK)
            code = rc_weights_open(name, &of, read.is_unsealed ? NULL : &seals[i], &files[i],
                                   mem, err);
        n_open += code == RC_OK;
    }
    for (int i = 0; i < n_open; i++) {
        rc_weights_io to = io_of(checkpoint, i);
        if (code == RC_OK && is_taken)
            rc_weights_take(&files[i], &to);
        rc_safetensors_close(&files[i]);
    }
    if (code == RC_OK)
        *state = read;
    return code;
}

rc_code rc_checkpoint_load(const char *path, const rc_checkpoint *checkpoint, rc_state *state,
                           rc_arena *mem, rc_error *err)
{
    return load(path, checkpoint, state, true, mem, err);
}

rc_code rc_checkpoint_verify(const char *path, const rc_checkpoint *checkpoint,
                             const rc_state *state, rc_arena *mem, rc_error *err)
{
    rc_state copy = *state;
    return load(path, checkpoint, &copy, false, mem, err);
}
