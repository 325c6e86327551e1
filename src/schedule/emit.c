/* emit.c — the instruction list: forward, discards, backward with what must be recomputed, update.
 *
 * takes  a policy: which tensors are discarded or pinned
 * gives  instructions whose operands name buffers
 * next   live.c finds each buffer's first and last instruction
 *
 * Recompute is on demand. Before a backward instruction, every value it reads that is not at hand
 * is produced by running its op again, after the values that op reads, and so on back to retained
 * ones. So a replay starts at its first reader, leaves out products that backward does not read,
 * and a value that comes back stays until its last reader: no op runs a third time. Both of
 * Megatron's mechanisms come out of this, they differ in what the policy discards.
 *
 * A gradient has one buffer per value; slices of a value have theirs inside it. The first writer
 * overwrites, later ones add. Where an op passes its gradient on unchanged (the residual side of an
 * add) or transforms it in place, the buffer changes hands instead of being copied.
 */
#include "schedule/passes.h"

#include <string.h>

typedef struct emitter {
    const rc_policy *policy;
    const rc_graph *graph;
    rc_schedule *schedule;
    rc_arena *mem;
    rc_error *err;
    bool *is_retained;     /* [storage] after forward */
    bool *is_available;    /* [tensor] the value is at hand */
    int *buffer_of;        /* [storage] current buffer */
    int *grad_of;          /* [tensor, a root] gradient's buffer */
    bool *is_grad_written; /* [tensor] */
    int *last_forward;     /* [storage] last forward op that touches it */
    int *next_in_storage;  /* [tensor] list of the tensors of one storage */
    int *param_of;         /* [tensor] index into schedule->params */
    struct waiting *stack; /* replays under way */
    int n_stack;
    size_t n_stack_room;
    rc_category category; /* of values computed now */
} emitter;

static rc_code add_buffer(emitter *e, rc_buffer buffer, int *out)
{
    rc_schedule *s = e->schedule;
    RC_TRY(RC_GROW(e->mem, &s->buffers, (size_t)s->n_buffers, &s->n_buffers_room,
                   (size_t)s->n_buffers + 1, e->err));
    *out = s->n_buffers;
    s->buffers[s->n_buffers++] = buffer;
    return RC_OK;
}

/* An instruction on its way: its operands lie together in the schedule once it is added. */
typedef struct draft {
    rc_instr instr;
    rc_ref in[RC_OP_MAX_IN], out[RC_OP_MAX_OUT], d_in[RC_OP_MAX_IN];
} draft;

static draft draft_of(rc_instr_kind kind, int at, const rc_op *op)
{
    draft d = {.instr = {.kind = kind,
                         .op = at,
                         .tensor = RC_NO_TENSOR,
                         .scratch = RC_NO_BUFFER,
                         .n_in = op ? op->n_in : 0,
                         .n_out = op ? op->n_out : 0,
                         .d_out = {.buffer = RC_NO_BUFFER}}};
    for (int i = 0; i < RC_OP_MAX_IN; i++)
        d.in[i].buffer = d.d_in[i].buffer = RC_NO_BUFFER;
    for (int i = 0; i < RC_OP_MAX_OUT; i++)
        d.out[i].buffer = RC_NO_BUFFER;
    return d;
}

static void add_refs(rc_schedule *s, const rc_ref *refs, int n)
{
    if (n > 0)
        memcpy(s->refs + s->n_refs, refs, (size_t)n * sizeof *refs);
    s->n_refs += n;
}

static rc_code add_instr(emitter *e, const draft *d)
{
    rc_schedule *s = e->schedule;
    const int n_refs = 2 * d->instr.n_in + d->instr.n_out;
    RC_TRY(RC_GROW(e->mem, &s->instrs, (size_t)s->n_instrs, &s->n_instrs_room,
                   (size_t)s->n_instrs + 1, e->err));
    RC_TRY(RC_GROW(e->mem, &s->refs, (size_t)s->n_refs, &s->n_refs_room,
                   (size_t)(s->n_refs + n_refs), e->err));
    s->instrs[s->n_instrs] = d->instr;
    s->instrs[s->n_instrs++].first_ref = s->n_refs;
    add_refs(s, d->in, d->instr.n_in);
    add_refs(s, d->out, d->instr.n_out);
    add_refs(s, d->d_in, d->instr.n_in);
    return RC_OK;
}

/* The buffer says the dtype: a weight's gradient may have another than the weight. */
static rc_ref make_ref(const emitter *e, int tensor, int buffer)
{
    const rc_tensor t = rc_graph_tensor(e->graph, tensor);
    const rc_dtype dtype = buffer < 0 ? t.dtype : e->schedule->buffers[buffer].dtype;
    return (rc_ref){.buffer = buffer, .offset = t.offset, .ld = t.ld, .dtype = dtype};
}

static int storage_of(const emitter *e, int tensor)
{
    return rc_graph_tensor(e->graph, tensor).storage;
}

static rc_ref value_ref(const emitter *e, int tensor)
{
    if (tensor < 0)
        return (rc_ref){.buffer = RC_NO_BUFFER};
    return make_ref(e, tensor, e->buffer_of[storage_of(e, tensor)]);
}

/* ---- values: what is at hand ---- */

static void set_storage_available(emitter *e, int storage, bool is_available)
{
    for (int t = storage; t >= 0; t = e->next_in_storage[t])
        e->is_available[t] = is_available;
}

/* `tensor` was just computed: it and all its slices are at hand. */
static void set_available(emitter *e, int tensor)
{
    e->is_available[tensor] = true;
    for (int t = storage_of(e, tensor); t >= 0; t = e->next_in_storage[t]) {
        const int base = rc_graph_tensor(e->graph, t).view_of;
        if (base >= 0 && e->is_available[base])
            e->is_available[t] = true;
    }
}

/* The value an in-place op overwrites is gone, and so is the wider value it is a slice of. */
static void set_overwritten(emitter *e, int tensor)
{
    for (; tensor >= 0; tensor = rc_graph_tensor(e->graph, tensor).view_of)
        e->is_available[tensor] = false;
}

static rc_code open_outputs(emitter *e, const rc_op *op)
{
    for (int k = 0; k < op->n_out; k++) {
        int out = op->out[k];
        if (out < 0 || (k == 0 && op->is_in_place) || e->is_available[out])
            continue;
        const rc_tensor tensor = rc_graph_tensor(e->graph, out);
        if (tensor.kind == RC_TENSOR_LOSS) {
            e->buffer_of[out] = e->schedule->loss;
            continue;
        }
        set_storage_available(e, tensor.storage, false);
        rc_buffer buffer = {.category = e->category,
                            .tensor = tensor.storage,
                            .dtype = rc_graph_tensor(e->graph, tensor.storage).dtype,
                            .bytes = rc_graph_tensor(e->graph, tensor.storage).bytes};
        RC_TRY(add_buffer(e, buffer, &e->buffer_of[tensor.storage]));
    }
    return RC_OK;
}

static rc_code add_scratch(emitter *e, int64_t bytes, int *out)
{
    return add_buffer(e,
                      (rc_buffer){.category = RC_CATEGORY_SCRATCH,
                                  .tensor = RC_NO_TENSOR,
                                  .dtype = RC_U8,
                                  .bytes = bytes},
                      out);
}

/* What a kernel works in, and behind it the math library. */
static rc_code add_op_scratch(emitter *e, const rc_op *op, bool is_backward, int *out)
{
    const rc_op_scratch scratch = rc_op_scratch_of(op->facts, &op->attr, e->graph->dtype,
                                                   e->schedule->n_threads, is_backward);
    const int64_t bytes = scratch.own_bytes + scratch.library_bytes;
    *out = RC_NO_BUFFER;
    return bytes > 0 ? add_scratch(e, bytes, out) : RC_OK;
}

/* Runs the forward of one op, the first time or again. */
static rc_code emit_forward(emitter *e, int at, rc_instr_kind kind)
{
    const rc_op op = rc_graph_op(e->graph, at);
    draft d = draft_of(kind, at, &op);
    d.instr.flops = op.fwd_flops;
    RC_TRY(open_outputs(e, &op));
    for (int k = 0; k < op.n_in; k++)
        d.in[k] = value_ref(e, op.in[k]);
    for (int k = 0; k < op.n_out; k++)
        d.out[k] = value_ref(e, op.out[k]);
    RC_TRY(add_op_scratch(e, &op, false, &d.instr.scratch));
    RC_TRY(add_instr(e, &d));
    if (op.is_in_place)
        set_overwritten(e, op.in[0]);
    for (int k = 0; k < op.n_out; k++)
        if (op.out[k] >= 0)
            set_available(e, op.out[k]);
    return RC_OK;
}

/* A replay that waits: operands before `next_in` are at hand. */
typedef struct waiting {
    int op, next_in;
} waiting;

/* Waits for the op that computes `tensor`, or nothing where it is at hand. */
static rc_code wait_for(emitter *e, int tensor)
{
    while (tensor >= 0 && !e->is_available[tensor]) {
        const rc_tensor t = rc_graph_tensor(e->graph, tensor);
        if (t.view_of < 0) {
            RC_ASSERT(t.producer >= 0);
            RC_TRY(RC_GROW(e->mem, &e->stack, (size_t)e->n_stack, &e->n_stack_room,
                           (size_t)e->n_stack + 1, e->err));
            e->stack[e->n_stack++] = (waiting){.op = t.producer};
            return RC_OK;
        }
        tensor = t.view_of;
    }
    return RC_OK;
}

/* What a module drops by itself is no cost of the setting. */
static void count_replay(emitter *e, const rc_op *op)
{
    if (e->policy->fates[op->out[0]].by == RC_BY_MODULE)
        return;
    e->schedule->recompute_flops += op->fwd_flops;
    e->schedule->recompute_moved_bytes += op->fwd_bytes;
}

/* Depth first, over a stack of our own: a group of thousands of layers is as deep as it is long. */
static rc_code ensure_available(emitter *e, int tensor)
{
    RC_TRY(wait_for(e, tensor));
    while (e->n_stack > 0) {
        waiting *top = &e->stack[e->n_stack - 1];
        const rc_op op = rc_graph_op(e->graph, top->op);
        if (top->next_in < op.n_in) {
            RC_TRY(wait_for(e, op.in[top->next_in++]));
            continue;
        }
        count_replay(e, &op);
        RC_TRY(emit_forward(e, e->stack[--e->n_stack].op, RC_INSTR_RECOMPUTE));
    }
    return RC_OK;
}

/* ---- gradients ---- */

/* The value whose gradient buffer holds this one's: a slice's is inside its base's; an op that
 * rotates or normalises in place hands its gradient down in place too. */
static int grad_root(const emitter *e, int tensor)
{
    for (;;) {
        const rc_tensor t = rc_graph_tensor(e->graph, tensor);
        if (t.view_of >= 0) {
            tensor = t.view_of;
            continue;
        }
        if (t.producer < 0)
            return tensor;
        const rc_op op = rc_graph_op(e->graph, t.producer);
        if (!op.is_in_place || op.out[0] != tensor || !(op.facts->grad_in_place & 1u))
            return tensor;
        tensor = op.in[0];
    }
}

/* Whether the gradient of in[k] may take over the buffer of the gradient of out[0]. */
static bool takes_over(const emitter *e, const rc_op *op, int k)
{
    const rc_op_facts *facts = op->facts;
    const uint32_t alone =
        facts->grad_in_place | (op->attr.p > 0 ? 0 : facts->passes_undropped_grad);
    if (!((facts->passes_grad | alone) >> k & 1u))
        return false;
    const rc_tensor x = rc_graph_tensor(e->graph, op->in[k]);
    if (x.view_of >= 0 || x.bytes != rc_graph_tensor(e->graph, op->out[0]).bytes)
        return false;
    return (facts->passes_grad >> k & 1u) || x.n_consumers == 1;
}

static rc_code open_gradient(emitter *e, const rc_op *op, int k, int d_out)
{
    int root = grad_root(e, op->in[k]);
    if (e->grad_of[root] != RC_NO_BUFFER)
        return RC_OK;
    if (op->facts->grad_over_input >> k & 1u) {
        e->grad_of[root] = e->buffer_of[storage_of(e, root)];
        return RC_OK;
    }
    if (takes_over(e, op, k)) {
        e->grad_of[root] = d_out;
        return RC_OK;
    }
    return add_buffer(e,
                      (rc_buffer){.category = RC_CATEGORY_ACTIVATION_GRADIENTS,
                                  .tensor = root,
                                  .dtype = rc_graph_tensor(e->graph, root).dtype,
                                  .bytes = rc_graph_tensor(e->graph, root).bytes},
                      &e->grad_of[root]);
}

static rc_code emit_gradients(emitter *e, const rc_op *op, draft *d)
{
    for (int k = 0; k < op->n_in; k++) {
        int in = op->in[k];
        if (in < 0 || !(op->facts->grads >> k & 1u))
            continue;
        if (rc_graph_tensor(e->graph, in).kind == RC_TENSOR_WEIGHT) {
            d->d_in[k] =
                make_ref(e, in, e->schedule->params[e->param_of[in]].buffer[RC_PARAM_GRAD]);
            d->d_in[k].is_added = true;
            continue;
        }
        RC_TRY(open_gradient(e, op, k, d->instr.d_out.buffer));
        d->d_in[k] = make_ref(e, in, e->grad_of[grad_root(e, in)]);
        d->d_in[k].is_added = e->is_grad_written[in];
        e->is_grad_written[in] = true;
    }
    return RC_OK;
}

static rc_code read_operands(emitter *e, const rc_op *op, draft *d)
{
    for (int k = 0; k < op->n_in; k++)
        if (op->needs_in >> k & 1u)
            RC_TRY(ensure_available(e, op->in[k]));
    for (int k = 0; k < op->n_out; k++)
        if (op->needs_out >> k & 1u)
            RC_TRY(ensure_available(e, op->out[k]));
    for (int k = 0; k < op->n_in; k++)
        if (op->needs_in >> k & 1u)
            d->in[k] = value_ref(e, op->in[k]);
    for (int k = 0; k < op->n_out; k++)
        if (op->needs_out >> k & 1u)
            d->out[k] = value_ref(e, op->out[k]);
    return RC_OK;
}

static rc_code emit_backward(emitter *e, int at)
{
    const rc_op op = rc_graph_op(e->graph, at);
    draft d = draft_of(RC_INSTR_BACKWARD, at, &op);
    d.instr.flops = op.bwd_flops;
    RC_TRY(read_operands(e, &op, &d));
    if (!op.facts->seeds_grad) {
        int grad = e->grad_of[grad_root(e, op.out[0])];
        char name[RC_GRAPH_NAME_BYTES];
        if (grad == RC_NO_BUFFER)
            return RC_FAIL(e->err, RC_E_BUG, RC_NOWHERE, "nothing gives %s a gradient",
                           rc_graph_op_name(e->graph, at, name));
        d.instr.d_out = make_ref(e, op.out[0], grad);
    }
    RC_TRY(emit_gradients(e, &op, &d));
    RC_TRY(add_op_scratch(e, &op, true, &d.instr.scratch));
    return add_instr(e, &d);
}

/* ---- the step ---- */

static rc_code add_persistent(emitter *e, int tensor, rc_param_role role, int *out)
{
    rc_buffer buffer;
    *out = RC_NO_BUFFER;
    if (tensor < 0 || !rc_persistent_buffer(e->graph, tensor, role, &buffer))
        return RC_OK;
    return add_buffer(e, buffer, out);
}

/* A chunk may have none. */
static rc_code open_input(emitter *e, int tensor, int *out)
{
    RC_TRY(add_persistent(e, tensor, RC_PARAM_WEIGHT, out));
    if (tensor < 0)
        return RC_OK;
    e->buffer_of[tensor] = *out;
    e->is_available[tensor] = true;
    return RC_OK;
}

static rc_code open_persistent(emitter *e)
{
    rc_schedule *s = e->schedule;
    const rc_graph *graph = e->graph;
    RC_TRY(RC_NEW(e->mem, &s->params, graph->n_tensors, e->err));
    for (int i = 0; i < graph->n_tensors; i++) {
        if (rc_graph_tensor(graph, i).kind != RC_TENSOR_WEIGHT)
            continue;
        e->param_of[i] = s->n_params;
        rc_param *param = &s->params[s->n_params++];
        param->tensor = i;
        for (int role = 0; role < RC_PARAM_ROLE_COUNT; role++)
            RC_TRY(add_persistent(e, i, (rc_param_role)role, &param->buffer[role]));
        e->buffer_of[i] = param->buffer[RC_PARAM_WEIGHT];
        e->is_available[i] = true;
    }
    RC_TRY(open_input(e, graph->tokens, &s->tokens));
    RC_TRY(open_input(e, graph->targets, &s->targets));
    return add_persistent(e, graph->loss, RC_PARAM_WEIGHT, &s->loss);
}

static void note_last(emitter *e, const int *operands, int n, int at)
{
    for (int k = 0; k < n; k++)
        if (operands[k] >= 0)
            e->last_forward[storage_of(e, operands[k])] = at;
}

static void find_last_forward(emitter *e)
{
    for (int i = 0; i < e->graph->n_ops; i++) {
        const rc_op op = rc_graph_op(e->graph, i);
        note_last(e, op.in, op.n_in, i);
        note_last(e, op.out, op.n_out, i);
    }
}

/* A DISCARD for every storage that backward wants and the policy drops, after its last reader. */
static rc_code emit_discards(emitter *e, const int *operands, int n, int at)
{
    for (int k = 0; k < n; k++) {
        if (operands[k] < 0)
            continue;
        int storage = storage_of(e, operands[k]);
        if (e->last_forward[storage] != at || e->is_retained[storage] ||
            e->policy->fates[storage].kind != RC_FATE_DISCARD)
            continue;
        e->last_forward[storage] = -1; /* once */
        draft d = draft_of(RC_INSTR_DISCARD, at, NULL);
        d.instr.tensor = storage;
        RC_TRY(add_instr(e, &d));
    }
    return RC_OK;
}

static rc_code emit_micro_batch(emitter *e)
{
    rc_schedule *s = e->schedule;
    const rc_graph *graph = e->graph;
    s->micro_first = s->n_instrs;
    e->category = RC_CATEGORY_ACTIVATIONS;
    for (int i = 0; i < graph->n_ops; i++) {
        RC_TRY(emit_forward(e, i, RC_INSTR_FORWARD));
        s->forward_last = s->n_instrs - 1;
        const rc_op op = rc_graph_op(graph, i);
        s->fwd_flops += op.fwd_flops;
        s->bwd_flops += op.bwd_flops;
        RC_TRY(emit_discards(e, op.in, op.n_in, i));
        RC_TRY(emit_discards(e, op.out, op.n_out, i));
    }
    for (int i = 0; i < graph->n_tensors; i++) {
        const rc_tensor t = rc_graph_tensor(graph, i);
        if (t.kind != RC_TENSOR_WEIGHT && t.kind != RC_TENSOR_INPUT &&
            !e->is_retained[t.storage])
            e->is_available[i] = false;
    }
    e->category = RC_CATEGORY_RECOMPUTED;
    for (int i = graph->n_ops - 1; i >= 0; i--)
        RC_TRY(emit_backward(e, i));
    s->micro_last = s->n_instrs - 1;
    return RC_OK;
}

static rc_code emitter_open(emitter *e)
{
    int n = e->graph->n_tensors;
    RC_TRY(RC_NEW(e->mem, &e->is_available, n, e->err));
    RC_TRY(RC_NEW(e->mem, &e->buffer_of, n, e->err));
    RC_TRY(RC_NEW(e->mem, &e->grad_of, n, e->err));
    RC_TRY(RC_NEW(e->mem, &e->is_grad_written, n, e->err));
    RC_TRY(RC_NEW(e->mem, &e->last_forward, n, e->err));
    RC_TRY(RC_NEW(e->mem, &e->next_in_storage, n, e->err));
    RC_TRY(RC_NEW(e->mem, &e->param_of, n, e->err));
    for (int i = 0; i < n; i++)
        e->buffer_of[i] = e->grad_of[i] = e->next_in_storage[i] = RC_NO_BUFFER;
    for (int i = n - 1; i >= 0;
         i--) { /* a storage's list starts at its owner, in graph order */
        int storage = storage_of(e, i);
        if (storage == i)
            continue;
        e->next_in_storage[i] = e->next_in_storage[storage];
        e->next_in_storage[storage] = i;
    }
    find_last_forward(e);
    return rc_policy_retained(e->policy, e->mem, &e->is_retained, e->err);
}

rc_code rc_schedule_emit(const rc_policy *policy, rc_schedule *schedule, rc_arena *mem,
                         rc_error *err)
{
    emitter e = {
        .policy = policy, .graph = policy->graph, .schedule = schedule, .mem = mem, .err = err};
    RC_TRY(emitter_open(&e));
    RC_TRY(open_persistent(&e));
    const draft zero = draft_of(RC_INSTR_ZERO, -1, NULL);
    const draft update = draft_of(RC_INSTR_UPDATE, -1, NULL);
    draft norm = draft_of(RC_INSTR_NORM, -1, NULL);
    RC_TRY(add_instr(&e, &zero));
    RC_TRY(emit_micro_batch(&e));
    RC_TRY(add_scratch(&e, RC_NORM_SCRATCH_BYTES, &norm.instr.scratch));
    RC_TRY(add_instr(&e, &norm));
    return add_instr(&e, &update);
}
