/* exec.c — walks a schedule and calls kernels.
 *
 * takes  rc_schedule: instructions whose operands name buffers, buffers with
 * offsets gives  losses, gradients, updated weights, all inside one arena
 *
 * An operand's address is arena + buffer offset + element offset; that is all
 * there is to it.
 */
#define _DEFAULT_SOURCE /* madvise, clock_gettime */
#include <recompute/exec.h>

#include "base/random.h"
#include "exec/cpu/gemm.h"
#include "exec/cpu/optimizer.h"
#include "exec/cpu/team.h"
#include "exec/run.h"
#include "exec/watch.h"

#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static const struct {
    const char *name;
    const rc_backend *backend;
} backends[] = {
#define RC_BACKEND(name, help) {#name, &rc_backend_##name},
#include "defs/backends.def"
#undef RC_BACKEND
};

static const rc_backend *find_backend(const char *name)
{
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++)
        if (strcmp(backends[i].name, name ? name : "cpu") == 0)
            return backends[i].backend;
    return NULL;
}

static rc_code need_supported(const rc_graph *graph, const rc_backend *backend, rc_error *err)
{
    const rc_dims *dims = &graph->dims;
    if (graph->profile != RC_PROFILE_ENGINE)
        return RC_FAIL(err, RC_E_UNSUPPORTED, RC_NOWHERE,
                       "a graph of profile %s can be costed but not run",
                       rc_profile_name(graph->profile));
    if (dims->t != 1 || dims->p != 1 || dims->c != 1)
        return RC_FAIL(err, RC_E_UNSUPPORTED, RC_NOWHERE,
                       "the engine runs one process; tensor_model_parallel_size, "
                       "pipeline_model_parallel_size and context_parallel_size must be 1");
    if (graph->dtype != RC_F32)
        return RC_FAIL(err, RC_E_UNSUPPORTED, RC_NOWHERE,
                       "the engine computes in f32, not %s; set model.bf16=false and "
                       "model.fp16=false",
                       rc_dtype_name(graph->dtype));
    for (int i = 0; i < graph->n_ops; i++) {
        const rc_op op = rc_graph_op(graph, i);
        if (op.kind >= RC_OP_COUNT || !backend->fwd[op.kind] || !backend->bwd[op.kind])
            return RC_FAIL(err, RC_E_UNSUPPORTED, RC_NOWHERE, "backend %s has no kernel for %s",
                           backend->name, op.facts->name);
    }
    return RC_OK;
}

/* ---- the arena ---- */

enum { HUGE_PAGE_BYTES = 2 << 20 };

static rc_code take_arena(rc_run *run, rc_error *err)
{
    size_t bytes = (size_t)run->schedule->arena_bytes;
    size_t room = (bytes + HUGE_PAGE_BYTES - 1) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    run->arena = aligned_alloc(HUGE_PAGE_BYTES, room);
    if (!run->arena)
        return RC_FAIL(err, RC_E_MEMORY, RC_NOWHERE,
                       "the host refuses %zu bytes for the step arena", bytes);
    madvise(run->arena, room, MADV_HUGEPAGE); /* a wish: without it things are only slower */
    memset(run->arena, 0, bytes);             /* and every page of it is there from now on */
    run->touched_bytes = run->schedule->persistent_bytes;
    return RC_OK;
}

static rc_code list_params(rc_run *run, rc_error *err)
{
    const rc_schedule *s = run->schedule;
    RC_TRY(RC_NEW(run->mem, &run->params, s->n_params, err));
    for (int i = 0; i < s->n_params; i++) {
        const rc_param *param = &s->params[i];
        char buf[RC_GRAPH_NAME_BYTES];
        const char *name;
        RC_TRY(rc_arena_printf(run->mem, &name, err, "%s",
                               rc_graph_tensor_name(s->graph, param->tensor, buf)));
        run->params[i] =
            (rc_run_param){.name = name,
                           .tensor = rc_graph_tensor(s->graph, param->tensor),
                           .weight = rc_run_at(run, param->buffer[RC_PARAM_WEIGHT]),
                           .grad = rc_run_at(run, param->buffer[RC_PARAM_GRAD]),
                           .moment1 = rc_run_at(run, param->buffer[RC_PARAM_MOMENT1]),
                           .moment2 = rc_run_at(run, param->buffer[RC_PARAM_MOMENT2])};
    }
    return RC_OK;
}

static rc_code prepare(rc_run *run, rc_error *err)
{
    const rc_schedule *s = run->schedule;
    RC_TRY(RC_NEW(run->mem, &run->seconds, s->n_instrs, err));
    RC_TRY(RC_NEW(run->mem, &run->workspace, 1, err));
    RC_TRY(rc_watch_open(run, err));
    RC_TRY(take_arena(run, err));
    RC_TRY(list_params(run, err));
    RC_TRY(rc_team_open(s->n_threads, err));
    const rc_team_mode before = rc_team_enter();
    rc_code code = rc_gemm_open(s->n_threads, err);
    rc_team_leave(&before);
    return code;
}

rc_code rc_run_open_on(const rc_backend *backend, const rc_schedule *schedule,
                       const rc_run_options *options, rc_run **out, rc_error *err)
{
    rc_run *run = NULL;
    *out = NULL;
    RC_TRY(need_supported(schedule->graph, backend, err));
    rc_arena *mem = rc_arena_open();
    if (!mem)
        return RC_FAIL(err, RC_E_MEMORY, RC_NOWHERE, "the host is out of memory");
    rc_code code = RC_NEW(mem, &run, 1, err);
    if (code == RC_OK) {
        *run =
            (rc_run){.schedule = schedule, .backend = backend, .options = *options, .mem = mem};
        code = prepare(run, err);
    }
    if (code != RC_OK) {
        if (run)
            free(run->arena);
        rc_arena_close(mem);
        return code;
    }
    *out = run;
    return RC_OK;
}

rc_code rc_run_open(const rc_schedule *schedule, const rc_run_options *options, rc_run **out,
                    rc_error *err)
{
    *out = NULL;
    const rc_backend *backend = find_backend(options->backend);
    if (!backend)
        return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE, "no backend %s; there are cpu and naive",
                       options->backend);
    return rc_run_open_on(backend, schedule, options, out, err);
}

void rc_run_close(rc_run *run)
{
    if (!run)
        return;
    free(run->arena);
    rc_arena_close(run->mem); /* the run itself lies in it */
}

const rc_run_param *rc_run_params(const rc_run *run, int *n)
{
    *n = run->schedule->n_params;
    return run->params;
}

/* ---- instructions ---- */

static rc_operand resolve(const rc_run *run, const rc_ref *ref)
{
    if (ref->buffer < 0)
        return (rc_operand){0};
    char *at = rc_run_at(run, ref->buffer);
    return (rc_operand){.at = at + ref->offset * rc_dtype_bytes(ref->dtype),
                        .ld = ref->ld,
                        .dtype = ref->dtype,
                        .is_added = ref->is_added};
}

/* The kernel's own scratch comes first in the buffer, the math library's behind it. */
static void enter_library(rc_run *run, const rc_instr *instr, const rc_op_scratch *scratch)
{
    rc_workspace *w = run->workspace;
    w->at = scratch->library_bytes > 0
                ? (char *)rc_run_at(run, instr->scratch) + scratch->own_bytes
                : NULL;
    w->bytes = scratch->library_bytes;
    w->most_bytes = w->outside_bytes = 0;
    rc_workspace_enter(w);
}

static void leave_library(rc_run *run)
{
    rc_workspace *w = run->workspace;
    if (!rc_workspace_leave(w))
        rc_fault_note(&run->fault, RC_FAULT_LIBRARY_KEEPS);
    if (w->most_bytes > run->library_bytes)
        run->library_bytes = w->most_bytes;
    if (w->outside_bytes > run->library_extra_bytes)
        run->library_extra_bytes = w->outside_bytes;
}

static void run_kernel(rc_run *run, const rc_instr *instr, const rc_op *op, const rc_call *call)
{
    const bool is_backward = instr->kind == RC_INSTR_BACKWARD;
    const rc_op_scratch scratch = rc_op_scratch_of(
        op->facts, &op->attr, run->schedule->graph->dtype, call->n_threads, is_backward);
    if (scratch.library_bytes > 0)
        enter_library(run, instr, &scratch);
    (is_backward ? run->backend->bwd : run->backend->fwd)[op->kind](call);
    if (scratch.library_bytes > 0)
        leave_library(run);
}

static rc_code tell_fault(const rc_run *run, const rc_instr *instr, rc_error *err)
{
    char name[RC_GRAPH_NAME_BYTES];
    const rc_fault_kind kind = (rc_fault_kind)run->fault.kind;
    const rc_code code = kind == RC_FAULT_LIBRARY_MEMORY ? RC_E_MEMORY : RC_E_UNSUPPORTED;
    return RC_FAIL(
        err, code, RC_NOWHERE,
        "%s %s in the %s of %s, and nothing was updated with it; try engine.threads=1, "
        "or another version of the library",
        rc_gemm_name(), rc_fault_text(kind), rc_instr_kind_name(instr->kind),
        rc_graph_op_name(run->schedule->graph, instr->op, name));
}

static rc_code run_op(rc_run *run, int at, uint64_t draw, rc_error *err)
{
    const rc_instr *instr = &run->schedule->instrs[at];
    const bool is_checked = run->is_watched || at == run->check_at;
    const rc_op op = rc_graph_op(run->schedule->graph, instr->op);
    rc_op_attr attr = op.attr;
    attr.loss_scale = 1.0 / run->options.n_micro_batches;
    if (!run->is_training)
        attr.p = 0;
    rc_call call = {.attr = &attr,
                    .d_out = resolve(run, &instr->d_out),
                    .scratch = instr->scratch < 0 ? NULL : rc_run_at(run, instr->scratch),
                    .n_threads = run->schedule->n_threads,
                    .seed = run->options.seed,
                    .draw = draw,
                    .fault = &run->fault,
                    .check = is_checked ? run->check : NULL,
                    .check_room = run->check_room,
                    .level = omp_get_level()};
    for (int k = 0; k < instr->n_in; k++) {
        call.in[k] = resolve(run, &rc_instr_in(run->schedule, instr)[k]);
        call.d_in[k] = resolve(run, &rc_instr_d_in(run->schedule, instr)[k]);
    }
    for (int k = 0; k < instr->n_out; k++)
        call.out[k] = resolve(run, &rc_instr_out(run->schedule, instr)[k]);
    if (run->is_watched)
        rc_watch_before(run, instr);
    run_kernel(run, instr, &op, &call);
    if (run->fault.kind != RC_FAULT_NONE)
        return tell_fault(run, instr, err);
    return run->is_watched ? rc_watch_after(run, instr, err) : RC_OK;
}

static void poison(rc_run *run, int at, bool is_begin)
{
    const rc_schedule *s = run->schedule;
    for (int i = 0; i < s->n_buffers; i++) {
        const rc_buffer *b = &s->buffers[i];
        if (!b->is_persistent && (is_begin ? b->first : b->last) == at)
            memset(rc_run_at(run, i), 0xFF, (size_t)b->bytes);
    }
}

/* All parameters' buffers of one kind lie side by side: place.c. */
static float *slab(const rc_run *run, rc_category category, int64_t *n)
{
    const rc_schedule *s = run->schedule;
    int64_t first = INT64_MAX, end = 0;
    for (int i = 0; i < s->n_buffers; i++) {
        const rc_buffer *b = &s->buffers[i];
        if (!b->is_persistent || b->category != category)
            continue;
        first = b->offset < first ? b->offset : first;
        end = b->offset + b->bytes > end ? b->offset + b->bytes : end;
    }
    *n = (end - first) / (int64_t)sizeof(float);
    return (float *)(void *)(run->arena + first);
}

static void run_zero(rc_run *run)
{
    int64_t n;
    float *grads = slab(run, RC_CATEGORY_GRADIENTS, &n);
    rc_cpu_fill(grads, n, 0, run->schedule->n_threads);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static rc_code run_range(rc_run *run, int first, int last, uint64_t draw, rc_error *err)
{
    const rc_team_mode before = rc_team_enter();
    double start = now();
    rc_code code = RC_OK;
    for (int i = first; i <= last && code == RC_OK; i++) {
        const rc_instr *instr = &run->schedule->instrs[i];
        if (run->options.is_poisoned)
            poison(run, i, true);
        if (instr->kind != RC_INSTR_DISCARD)
            code = run_op(run, i, draw, err);
        if (run->options.is_poisoned)
            poison(run, i, false);
        double end = now();
        run->seconds[i] += end - start;
        start = end;
    }
    rc_team_leave(&before);
    return code;
}

/* Kernels use both as row numbers and look no further. */
static rc_code need_words(const rc_dims *dims, const rc_batch *batch, rc_error *err)
{
    for (int64_t i = 0; i < dims->N; i++)
        if (batch->tokens[i] < 0 || batch->tokens[i] >= dims->W || batch->targets[i] >= dims->W)
            return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE,
                           "token %" PRId64 " of the batch is %" PRId32
                           " and its target %" PRId32 "; the vocabulary has 0 to %" PRId64,
                           i, batch->tokens[i], batch->targets[i], dims->W - 1);
    return RC_OK;
}

static rc_code load_inputs(rc_run *run, const rc_batch *batch, rc_error *err)
{
    const rc_schedule *s = run->schedule;
    size_t bytes = (size_t)s->buffers[s->tokens].bytes;
    RC_TRY(need_words(&s->graph->dims, batch, err));
    memcpy(rc_run_at(run, s->tokens), batch->tokens, bytes);
    memcpy(rc_run_at(run, s->targets), batch->targets, bytes);
    return RC_OK;
}

static double loss_of(const rc_run *run)
{
    float loss;
    memcpy(&loss, rc_run_at(run, run->schedule->loss), sizeof loss);
    return (double)loss;
}

rc_code rc_run_micro(rc_run *run, const rc_batch *batch, double *loss, rc_error *err)
{
    const rc_schedule *s = run->schedule;
    /* The number of its first sample in the run: unique though a resumed run may have smaller or
     * larger micro-batches. */
    uint64_t draw = ((uint64_t)batch->step * (uint64_t)run->options.n_micro_batches +
                     (uint64_t)batch->micro) *
                    (uint64_t)s->graph->dims.b;
    *loss = (double)NAN;
    RC_TRY(load_inputs(run, batch, err));
    if (batch->micro == 0)
        run_zero(run);
    run->is_training = true;
    run->is_watched = !run->was_watched;
    RC_TRY(run_range(run, s->micro_first, s->micro_last, draw, err));
    run->was_watched = true;
    run->check_at = run->check_at < s->micro_last ? run->check_at + 1 : s->micro_first;
    *loss = loss_of(run);
    return RC_OK;
}

rc_code rc_run_eval(rc_run *run, const rc_batch *batch, double *loss, rc_error *err)
{
    *loss = (double)NAN;
    RC_TRY(load_inputs(run, batch, err));
    run->is_training = false;
    run->is_watched = false;
    RC_TRY(run_range(run, run->schedule->micro_first, run->schedule->forward_last, 0, err));
    *loss = loss_of(run);
    return RC_OK;
}

const void *rc_run_logits(const rc_run *run)
{
    const rc_schedule *s = run->schedule;
    return rc_run_at(run, rc_instr_in(s, &s->instrs[s->forward_last])[0].buffer);
}

rc_code rc_run_update(rc_run *run, const rc_update *update, double *out, rc_error *err)
{
    (void)err; /* what can fail here comes with more than one process */
    const rc_schedule *s = run->schedule;
    const rc_instr *norm_instr = &s->instrs[s->micro_last + 1];
    RC_ASSERT(rc_cpu_sum_squares_scratch_bytes() <= RC_NORM_SCRATCH_BYTES);
    int64_t n;
    const float *grads = slab(run, RC_CATEGORY_GRADIENTS, &n);
    const rc_team_mode before = rc_team_enter();
    double norm =
        sqrt(rc_cpu_sum_squares(grads, n, rc_run_at(run, norm_instr->scratch), s->n_threads));
    /* as torch.nn.utils.clip_grad_norm_ and Megatron's clip_grads: 1e-6 keeps it
   * finite */
    double scale = update->clip_grad > 0 ? update->clip_grad / (norm + 1e-6) : 1;
    for (int i = 0; i < s->n_params; i++) {
        const rc_run_param *param = &run->params[i];
        rc_adamw arg = {.p = param->weight,
                        .m = param->moment1,
                        .v = param->moment2,
                        .g = param->grad,
                        .n = param->tensor.n_elem,
                        .g_scale = scale < 1 ? scale : 1,
                        .lr = update->lr,
                        .weight_decay =
                            param->tensor.has_weight_decay ? update->weight_decay : 0,
                        .beta1 = update->beta1,
                        .beta2 = update->beta2,
                        .eps = update->eps,
                        .step = update->step};
        rc_cpu_adamw(&arg, s->n_threads);
    }
    rc_team_leave(&before);
    rc_watch_scratch(run, norm_instr->scratch);
    *out = norm;
    return RC_OK;
}

void rc_run_init_weights(rc_run *run)
{
    for (int i = 0; i < run->schedule->n_params; i++) {
        const rc_run_param *param = &run->params[i];
        const rc_tensor *tensor = &param->tensor;
        rc_random random = {.seed = run->options.seed, .id = UINT32_MAX - (uint32_t)i};
        float *rest = (float *)param->weight + tensor->n_used;
        if (tensor->init == RC_INIT_NORMAL)
            rc_random_normal(&random, 0, tensor->n_used, 0, tensor->init_std, param->weight);
        else
            rc_cpu_fill(param->weight, tensor->n_used, tensor->init == RC_INIT_ONE,
                        run->schedule->n_threads);
        rc_cpu_fill(rest, tensor->n_elem - tensor->n_used, 0, run->schedule->n_threads);
    }
}

int64_t rc_run_touched_bytes(const rc_run *run)
{
    return run->was_watched ? run->touched_bytes + run->library_extra_bytes : 0;
}

int64_t rc_run_library_bytes(const rc_run *run)
{
    return run->library_bytes + run->library_extra_bytes;
}

int64_t rc_run_arena_bytes(const rc_run *run)
{
    return run->schedule->arena_bytes;
}

const double *rc_run_seconds(const rc_run *run)
{
    return run->seconds;
}

/* ---- faults ---- */

void rc_fault_note(rc_fault *fault, rc_fault_kind kind)
{
    int none = RC_FAULT_NONE;
    atomic_compare_exchange_strong(&fault->kind, &none, (int)kind);
}

const char *rc_fault_text(rc_fault_kind kind)
{
    static const char *const texts[] = {
        [RC_FAULT_NONE] = "computes",
        [RC_FAULT_LIBRARY_MEMORY] = "finds no memory",
        [RC_FAULT_LIBRARY] = "refuses to compute",
        [RC_FAULT_LIBRARY_KEEPS] = "keeps memory that it only works in",
        [RC_FAULT_PRODUCT] = "gives wrong numbers",
    };
    return texts[kind];
}
