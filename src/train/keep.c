/* train/keep.c — what a run takes from disk when it starts, and leaves there.
 *
 * takes  an opened run and the folders of checkpoint.*
 * gives  filled weights; checkpoints of nothing but finite values
 * next   loop.c says when
 */
#include "train/training.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A run that was just killed may still hold the folder for a moment. */
enum { PATIENCE_MS = 5000 };

static void set_weight(rc_weight *weight, const rc_tensor *tensor, const char *name,
                       rc_dtype dtype, void *at)
{
    *weight = (rc_weight){.name = name, .dtype = dtype, .n_dims = 1, .at = at};
    weight->n_padding = tensor->n_elem - tensor->n_used;
    weight->dims[0] = tensor->n_elem;
    if (!strchr(tensor->shape, ','))
        return;
    weight->n_dims = 2;
    weight->dims[0] = tensor->rows;
    weight->dims[1] = tensor->n_elem / tensor->rows;
}

rc_code rc_training_list_weights(rc_training *training, rc_error *err)
{
    int n;
    const rc_run_param *params = rc_run_params(training->run, &n);
    training->n_weights = (size_t)n;
    training->n_moments = 2 * (size_t)n;
    RC_TRY(RC_NEW(training->mem, &training->weights, n, err));
    RC_TRY(RC_NEW(training->mem, &training->moments, 2 * n, err));
    for (int i = 0; i < n; i++) {
        const rc_tensor *tensor = &params[i].tensor;
        const char *name = params[i].name;
        const char *first, *second;
        RC_TRY(rc_arena_printf(training->mem, &first, err, "exp_avg.%s", name));
        RC_TRY(rc_arena_printf(training->mem, &second, err, "exp_avg_sq.%s", name));
        set_weight(&training->weights[i], tensor, name, tensor->dtype, params[i].weight);
        set_weight(&training->moments[2 * i], tensor, first, RC_F32, params[i].moment1);
        set_weight(&training->moments[2 * i + 1], tensor, second, RC_F32, params[i].moment2);
    }
    return RC_OK;
}

static rc_checkpoint checkpoint_of(const rc_training *training)
{
    return (rc_checkpoint){.weights = training->weights,
                           .moments = training->moments,
                           .n_weights = training->n_weights,
                           .n_moments = training->n_moments,
                           .n_threads = training->set.n_threads};
}

/* --- start --- */

rc_code rc_training_open_folder(rc_training *training, rc_error *err)
{
    const char *folder = training->cfg->save, *path;
    bool is_locked;
    rc_out_file file;
    if (!folder)
        return RC_OK;
    RC_TRY(rc_path_make_directory(folder, err));
    RC_TRY(rc_path_lock(folder, PATIENCE_MS, &training->save_lock, &is_locked, err));
    if (!is_locked)
        return RC_FAIL(
            err, RC_E_IO, training->cfg->origin[RC_FIELD_save].where,
            "checkpoint.save: another run is saving to %.200s; each needs a folder of "
            "its own",
            folder);
    RC_TRY(rc_checkpoint_clean(folder, training->mem, err));
    RC_TRY(rc_arena_printf(training->mem, &path, err, "%s/%s", folder, rc_pointer_name));
    RC_TRY(rc_out_file_open(path, &file, err));
    rc_out_file_abort(&file);
    return RC_OK;
}

/* "resuming from PATH", and what else is to be known about a checkpoint that was taken. */
static rc_code describe_loaded(const rc_training *training, const char *path, const char **out,
                               rc_error *err)
{
    const rc_state *state = &training->state;
    const rc_config *cfg = training->cfg;
    const bool is_dropping = cfg->hidden_dropout > 0 || cfg->attention_dropout > 0;
    rc_text text = {.mem = training->mem};
    RC_TRY(rc_text_printf(&text, err, "resuming from %s", path));
    if (state->differs)
        RC_TRY(rc_text_printf(&text, err,
                              " (%s: sums run in another order%s not be those of a run without "
                              "a stop)",
                              state->differs,
                              is_dropping ? ", and by another micro-batch or attention backend "
                                            "dropout draws other masks, so losses will"
                                          : ", so the last digits will"));
    if (state->is_unsealed)
        RC_TRY(
            rc_text_printf(&text, err,
                           "; an earlier version wrote it without checksums, so damage to it "
                           "and changes of its data files cannot be noticed"));
    *out = text.at;
    return RC_OK;
}

static rc_code resume(rc_training *training, const char *path, const char **origin,
                      rc_error *err)
{
    const char *folder = training->cfg->save, *made;
    rc_checkpoint checkpoint = checkpoint_of(training);
    rc_state *state = &training->state;
    RC_TRY(rc_checkpoint_load(path, &checkpoint, state, training->mem, err));
    if (folder) {
        RC_TRY(rc_checkpoint_path(folder, state->iteration, training->mem, &made, err));
        if (rc_path_is_same(made, path)) {
            training->saved_at = state->iteration;
            training->saved_path = made;
        }
    }
    return describe_loaded(training, path, origin, err);
}

/* Weights that others made may hold anything. */
static rc_code start_from(rc_training *training, const char *path, rc_error *err)
{
    rc_weights_io of = {.at = training->weights,
                        .n = training->n_weights,
                        .n_threads = training->set.n_threads};
    rc_error bad = {0};
    RC_TRY(rc_weights_start_from(path, training->weights, training->n_weights, training->mem,
                                 err));
    if (rc_weights_check(&of, &bad) == RC_OK)
        return RC_OK;
    return RC_FAIL(err, RC_E_INPUT, (rc_where){.file = path}, "%s", bad.msg);
}

rc_code rc_training_place_weights(rc_training *training, const char **origin, rc_error *err)
{
    const rc_config *cfg = training->cfg;
    const char *path = NULL;
    if (cfg->load && rc_path_exists(cfg->load) && !rc_path_is_directory(cfg->load))
        return RC_FAIL(err, RC_E_INPUT, cfg->origin[RC_FIELD_load].where,
                       "checkpoint.load is no folder; checkpoints lie in one");
    if (cfg->load)
        RC_TRY(rc_checkpoint_find(cfg->load, training->mem, &path, err));
    if (path)
        return resume(training, path, origin, err);
    if (cfg->pretrained_checkpoint) {
        RC_TRY(rc_checkpoint_find(cfg->pretrained_checkpoint, training->mem, &path, err));
        path = path ? path : cfg->pretrained_checkpoint;
        RC_TRY(start_from(training, path, err));
        return rc_arena_printf(
            training->mem, origin, err, "weights from %s%s", path,
            training->is_function_told
                ? ""
                : " (no config.json beside them says of which function; names "
                  "and shapes fit)");
    }
    rc_run_init_weights(training->run);
    return rc_arena_printf(training->mem, origin, err, "weights from seed %" PRId64 "%s%s",
                           training->set.seed, cfg->load ? ", no checkpoint yet in " : "",
                           cfg->load ? cfg->load : "");
}

/* --- after steps --- */

rc_code rc_training_check_weights(const rc_training *training, rc_error *err)
{
    rc_checkpoint checkpoint = checkpoint_of(training);
    return rc_checkpoint_check(&checkpoint, err);
}

rc_code rc_training_save(rc_training *training, rc_error *err)
{
    const char *folder = training->cfg->save;
    rc_checkpoint checkpoint = checkpoint_of(training);
    RC_TRY(rc_checkpoint_save(folder, &training->state, &checkpoint, training->mem, err));
    RC_TRY(rc_checkpoint_path(folder, training->state.iteration, training->mem,
                              &training->saved_path, err));
    training->saved_at = training->state.iteration;
    return RC_OK;
}

const char *rc_training_tell_left(const rc_training *training, char buf[RC_LEFT_BYTES])
{
    rc_checkpoint checkpoint = checkpoint_of(training);
    rc_error bad = {0};
    const char *path = training->saved_path;
    if (training->saved_at < 0)
        snprintf(buf, RC_LEFT_BYTES, "no checkpoint was written in this run");
    else if (rc_checkpoint_verify(path, &checkpoint, &training->state, training->mem, &bad) ==
             RC_OK)
        snprintf(buf, RC_LEFT_BYTES,
                 "the last checkpoint, %.100s, was read back and is unharmed", path);
    else
        snprintf(buf, RC_LEFT_BYTES, "the last checkpoint, %.60s, cannot be resumed: %.80s",
                 path, bad.msg);
    return buf;
}
