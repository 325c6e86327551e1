/* exec.h — rc_run: executes a schedule.
 *
 * A run owns one arena of schedule->arena_bytes, aligned for huge pages, and takes nothing more
 * while it runs. It walks the instruction list and hands each to a kernel of its backend.
 */
#ifndef RECOMPUTE_EXEC_H
#define RECOMPUTE_EXEC_H

#include <recompute/schedule.h>

RC_EXTERN_C_BEGIN

typedef struct rc_run rc_run;

typedef struct rc_run_options {
    /* "cpu"; NULL is cpu. "naive": plain loops in double */
    const char *backend;
    /* of dropout and initial weights */
    uint64_t seed;
    /* of one step: each adds 1/n of its gradient */
    int n_micro_batches;
    /* Fill every buffer with 0xFF (reads as NaN) before its first and after its last instruction, so
     * that a liveness fault is a NaN at the culprit. */
    bool is_poisoned;
} rc_run_options;

/* One weight as the loop around the run sees it; pointers into the arena. */
typedef struct rc_run_param {
    /* "decoder.layers.3.mlp.linear_fc1.weight" */
    const char *name;
    /* shape, n_elem, has_weight_decay */
    rc_tensor tensor;
    void *weight, *grad, *moment1, *moment2;
} rc_run_param;

/* What a process takes beside its arena for a run at most, threads and the math library's code included,
 * in resident bytes: what it had before the run comes on top. Measured 17 to 30 MiB, of which the
 * library's pages and the code it makes are nearly all. */
RC_API int64_t rc_run_beside_bytes(int n_threads);

/* Addresses that the stack of each thread but the first takes: OMP_STACKSIZE, or the shell's limit. */
RC_API int64_t rc_run_stack_bytes(void);

/* Threads that OpenMP gives at most: OMP_THREAD_LIMIT. A schedule for more is refused. */
RC_API int rc_run_most_threads(void);

/* Takes the arena, starts the threads and tries the math library on some products whose result is known:
 * what follows takes no memory from the host.
 *
 * takes   schedule  in the engine profile; must outlive the run
 *         options   as above
 * gives   *out      to be closed; the arena is zeroed
 * errors  RC_E_UNSUPPORTED when the backend has no kernel for an op or dtype, parallel sizes are not 1,
 *         or the math library is missing or computes wrongly; RC_E_MEMORY when the host refuses the
 *         arena, a thread, or the library's code; RC_E_INPUT past rc_run_most_threads */
RC_MUST_CHECK
RC_API rc_code rc_run_open(const rc_schedule *schedule, const rc_run_options *options,
                           rc_run **out, rc_error *err);
/* Gives back the arena and ends the threads. NULL does nothing. */
RC_API void rc_run_close(rc_run *run);

/* The weights in the order of schedule->params: *n of them, as long as the run is open. */
RC_API const rc_run_param *rc_run_params(const rc_run *run, int *n);
/* Weights as their rows in the graph say: normal(0, std), ones, zeros; a function of the seed. */
RC_API void rc_run_init_weights(rc_run *run);

/* The samples of one micro-batch, and which draws of dropout they get. */
typedef struct rc_batch {
    /* [b*s], row i_b*s + i_s; a target of -1 has no loss */
    const int32_t *tokens, *targets;
    /* from 0; an evaluation draws nothing */
    int64_t step;
    /* 0 to n_micro_batches - 1 */
    int micro;
} rc_batch;

/**
 * One micro-batch forward and backward; the first of a step (micro 0) zeroes the gradients.
 *
 * takes   batch  borrowed for the call
 * gives   *loss  mean over the targets that have one; NAN after an error
 * errors  RC_E_INPUT for a token or target outside the vocabulary: nothing has then changed.
 *         RC_E_MEMORY when the math library finds no memory for a product, RC_E_UNSUPPORTED when it
 *         gives wrong numbers, RC_E_BUG when a kernel leaves elements of an output unwritten (both
 *         looked at in the first micro-batch, later one instruction's products each time). The
 *         gradients are then of no use; weights and moments are what they were
 */
RC_MUST_CHECK
RC_API rc_code rc_run_micro(rc_run *run, const rc_batch *batch, double *loss, rc_error *err);

/* Forward only, without dropout; gradients, weights and moments stay what they are.
 *
 * takes   batch  borrowed for the call; its step and micro are not read
 * gives   *loss  as above
 * errors  as above */
RC_MUST_CHECK
RC_API rc_code rc_run_eval(rc_run *run, const rc_batch *batch, double *loss, rc_error *err);

typedef struct rc_update {
    double lr, weight_decay, beta1, beta2, eps;
    /* 0 never clips */
    double clip_grad;
    /* from 1: bias correction */
    int64_t step;
} rc_update;

/* Clips the gradients and updates weights and moments as AdamW does.
 *
 * takes   update  rates of this step
 * gives   *norm   global norm of the gradients before clipping
 * errors  none on one process; RC_E_ codes are for several
 * source  Loshchilov and Hutter 2019, algorithm 2; clipping as torch.nn.utils.clip_grad_norm_ */
RC_MUST_CHECK
RC_API rc_code rc_run_update(rc_run *run, const rc_update *update, double *norm, rc_error *err);

/* The logits of the last rc_run_eval: only a run opened for the naive or cpu backend keeps them
 * until the next call. [b*s, W]; its values are undefined before the first. */
RC_API const void *rc_run_logits(const rc_run *run);

/* Measured in the first micro-batch, 0 before: bytes of the arena from its start to the last one that
 * was seen to change under a kernel, rounded up to RC_ALIGN (scratch: to the end of what was
 * reserved), and what the math library took beside its scratch. */
RC_API int64_t rc_run_touched_bytes(const rc_run *run);
/* Most that the math library worked in during one op so far. */
RC_API int64_t rc_run_library_bytes(const rc_run *run);
/* The arena: schedule->arena_bytes. */
RC_API int64_t rc_run_arena_bytes(const rc_run *run);
/* Seconds spent in each instruction since the run was opened, [schedule->n_instrs]. */
RC_API const double *rc_run_seconds(const rc_run *run);

RC_EXTERN_C_END

#endif
