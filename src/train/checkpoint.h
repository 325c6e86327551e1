/* checkpoint.h — a run on disk: weights, optimizer and the place in the data.
 *
 *   FOLDER/latest_checkpointed_iteration.txt     "100": read first, written last
 *   FOLDER/iter_0000100/model.safetensors        parameters under Megatron's names
 *   FOLDER/iter_0000100/optimizer.safetensors    exp_avg.NAME and exp_avg_sq.NAME
 *   FOLDER/iter_0000100/state.json               iteration, samples consumed, settings, checksums
 *
 * checkpoint.c is the order of what is written and read, state.c is state.json, cleanup.c what a
 * killed run leaves behind.
 */
#ifndef RC_TRAIN_CHECKPOINT_H
#define RC_TRAIN_CHECKPOINT_H

#include "train/weights.h"

/* When a run evaluates, and from where on that was so: the settings may change on resume, the
 * samples counted before stay counted. */
typedef struct rc_valid_plan {
    /* steps between evaluations, samples of one; 0: never */
    int64_t interval, n_batch_samples;
    /* of the run; after the last it evaluates too */
    int64_t n_steps;
    int64_t from_iteration, from_samples;
} rc_valid_plan;

/* Validation samples consumed after `iteration` steps, at or after from_iteration. */
int64_t rc_valid_plan_count(const rc_valid_plan *plan, int64_t iteration);

/* One setting that the rest of the run depends on. */
typedef struct rc_same {
    /* as text */
    const char *key, *value;
    /* What a checkpoint had that does not name it, being older than the setting; NULL: it differs. */
    const char *if_absent;
} rc_same;

typedef struct rc_state {
    int64_t iteration;
    /* consumed */
    int64_t n_train_samples, n_valid_samples;
    /* samples of a step */
    int64_t n_global;
    rc_valid_plan valid;
    /* Compared one by one on resume. */
    const rc_same *identity;
    size_t n_identity;
    /* Settings that may change, and with them the order of sums: a difference is told. */
    const rc_pair *order;
    size_t n_order;
    /* "engine.threads was 2 and is 1"; NULL where nothing does */
    const char *differs;
    /* read from an older version's checkpoint, which has no checksums */
    bool is_unsealed;
} rc_state;

/* What a checkpoint carries. */
typedef struct rc_checkpoint {
    /* of each weight the first moment, then the second */
    const rc_weight *weights, *moments;
    size_t n_weights, n_moments;
    /* that look for what is not finite, and compute checksums */
    int n_threads;
} rc_checkpoint;

/**
 * Are all values finite, and second moments 0 or more?
 *
 * errors  RC_E_RANGE naming the first tensor where they are not, and how many of its values
 * cost    reads everything once
 */
RC_MUST_CHECK
rc_code rc_checkpoint_check(const rc_checkpoint *checkpoint, rc_error *err);

/**
 * Writes FOLDER/iter_NNNNNNN and then points latest_checkpointed_iteration.txt at it. A crash at
 * any moment, of the program or the machine, leaves the last complete checkpoint in place.
 *
 * takes   checkpoint  checked
 * errors  RC_E_IO, RC_E_MEMORY; half a checkpoint is not left behind
 */
RC_MUST_CHECK
rc_code rc_checkpoint_save(const char *folder, const rc_state *state,
                           const rc_checkpoint *checkpoint, rc_arena *tmp, rc_error *err);

/**
 * The newest checkpoint of a folder.
 *
 * gives   *path  its directory, or NULL when the folder holds none (as at a first start)
 * errors  RC_E_INPUT when latest_checkpointed_iteration.txt is no number, or that of no checkpoint
 */
RC_MUST_CHECK
rc_code rc_checkpoint_find(const char *folder, rc_arena *mem, const char **path, rc_error *err);

/**
 * Reads a checkpoint back. All of it is verified before anything is changed: settings, counts,
 * names, shapes, checksums, and that every value is finite.
 *
 * takes   state  n_global, valid, identity and order set: what this run has
 * gives   *state iteration, samples, differs, is_unsealed; the arrays of `checkpoint` are filled
 * errors  RC_E_INPUT naming the first setting, count or tensor that is wrong
 */
RC_MUST_CHECK
rc_code rc_checkpoint_load(const char *path, const rc_checkpoint *checkpoint, rc_state *state,
                           rc_arena *mem, rc_error *err);

/* As rc_checkpoint_load, but takes nothing over. */
RC_MUST_CHECK
rc_code rc_checkpoint_verify(const char *path, const rc_checkpoint *checkpoint,
                             const rc_state *state, rc_arena *mem, rc_error *err);

/* --- state.c --- */

/* The two files beside state.json, which says what they were. ORDER model, optimizer */
enum { RC_CHECKPOINT_FILES = 2 };
extern const char *const rc_checkpoint_file_names[RC_CHECKPOINT_FILES];
extern const char rc_state_name[], rc_pointer_name[];

RC_MUST_CHECK
rc_code rc_state_write(const char *path, const rc_state *state,
                       const rc_file_seal seals[RC_CHECKPOINT_FILES], rc_arena *tmp,
                       rc_error *err);

/**
 * Reads state.json, which no run is held against yet.
 *
 * gives   *is_unsealed  an older version wrote it, without a checksum
 * errors  RC_E_INPUT when it is not as it was written, RC_E_UNSUPPORTED for a version not known here
 */
RC_MUST_CHECK
rc_code rc_state_open(const char *path, rc_arena *mem, rc_doc **root, bool *is_unsealed,
                      rc_error *err);

/**
 * Reads state.json and holds it against this run.
 *
 * takes   iteration  that of the folder's name
 *         state      as rc_checkpoint_load
 * gives   *state     changed only when all is right
 *         seals      of the other two files, unless state->is_unsealed
 */
RC_MUST_CHECK
rc_code rc_state_read(const char *path, int64_t iteration, rc_state *state,
                      rc_file_seal seals[RC_CHECKPOINT_FILES], rc_arena *mem, rc_error *err);

/* --- cleanup.c --- */

/* Is it "iter_0000100", with `suffix` behind it? */
bool rc_checkpoint_parse_name(const char *name, const char *suffix, int64_t *iteration);
/* FOLDER/iter_0000100 */
RC_MUST_CHECK
rc_code rc_checkpoint_path(const char *folder, int64_t iteration, rc_arena *mem,
                           const char **out, rc_error *err);

/**
 * Removes what killed saves left in a folder: iter_N.tmp, iter_N.old beside a complete iter_N, and
 * half-written pointer files; never what holds any file that a save does not write. An iter_N.old that
 * the pointer means becomes iter_N again.
 *
 * errors  RC_E_IO when the folder cannot be read or written to; what cannot be removed stays
 */
RC_MUST_CHECK
rc_code rc_checkpoint_clean(const char *folder, rc_arena *tmp, rc_error *err);

/* Removes iter_N.tmp or iter_N.old; one that is not there is fine.
 * errors  RC_E_IO naming a file in it that no save has written */
RC_MUST_CHECK
rc_code rc_checkpoint_remove(const char *path, rc_arena *tmp, rc_error *err);

#endif
