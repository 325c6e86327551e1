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
    rc_category category;  /* of values computed now */
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

static rc_code add_instr(emitter *e, rc_instr instr)
{
    rc_schedule *s = e->schedule;
    RC_TRY(RC_GROW(e->mem, &s->instrs, (size_t)s->n_instrs, &s->n_instrs_room,
                   (size_t)s->n_instrs + 1, e->err));
    s->instrs[s->n_instrs++] = instr;
    return RC_OK;
}

static rc_instr blank_instr(rc_instr_kind kind, int op)
{
    rc_instr instr = {.kind = kind, .op = op, .tensor = RC_NO_TENSOR, .scratch = RC_NO_BUFFER};
    for (int i = 0; i < RC_OP_MAX_IN; i++)
        instr.in[i].buffer = instr.d_in[i].buffer = RC_NO_BUFFER;
    for (int i = 0; i < RC_OP_MAX_OUT; i++)
        instr.out[i].buffer = RC_NO_BUFFER;
    instr.d_out.buffer = RC_NO_BUFFER;
    return instr;
}

/* The buffer says the dtype: a weight's gradient may have another than the weight. */
static rc_ref make_ref(const emitter *e, int tensor, int buffer)
{
    const rc_tensor *t = &e->graph->tensors[tensor];
    const rc_dtype dtype = buffer < 0 ? t->dtype : e->schedule->buffers[buffer].dtype;
    return (rc_ref){.buffer = buffer, .offset = t->offset, .ld = t->ld, .dtype = dtype};
}

static rc_ref value_ref(const emitter *e, int tensor)
{
    if (tensor < 0)
        return (rc_ref){.buffer = RC_NO_BUFFER};
    return make_ref(e, tensor, e->buffer_of[e->graph->tensors[tensor].storage]);
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
    for (int t = e->graph->tensors[tensor].storage; t >= 0; t = e->next_in_storage[t])
        if (e->graph->tensors[t].view_of >= 0 && e->is_available[e->graph->tensors[t].view_of])
            e->is_available[t] = true;
}

/* The value an in-place op overwrites is gone, and so is the wider value it is a slice of. */
static void set_overwritten(emitter *e, int tensor)
{
    for (; tensor >= 0; tensor = e->graph->tensors[tensor].view_of)
        e->is_available[tensor] = false;
}

static rc_code open_outputs(emitter *e, const rc_op *op)
{
    for (int k = 0; k < RC_OP_MAX_OUT; k++) {
        int out = op->out[k];
        if (out < 0 || (k == 0 && op->is_in_place) || e->is_available[out])
            continue;
        const rc_tensor *tensor = &e->graph->tensors[out];
        if (tensor->kind == RC_TENSOR_LOSS) {
            e->buffer_of[out] = e->schedule->loss;
            continue;
        }
        set_storage_available(e, tensor->storage, false);
        rc_buffer buffer = {.category = e->category,
                            .tensor = tensor->storage,
                            .dtype = e->graph->tensors[tensor->storage].dtype,
                            .bytes = e->graph->tensors[tensor->storage].bytes};
        RC_TRY(add_buffer(e, buffer, &e->buffer_of[tensor->storage]));
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
    const rc_op_scratch scratch = rc_op_scratch_of(op->kind, &op->attr, e->graph->dtype,
                                                   e->schedule->n_threads, is_backward);
    const int64_t bytes = scratch.own_bytes + scratch.library_bytes;
    *out = RC_NO_BUFFER;
    return bytes > 0 ? add_scratch(e, bytes, out) : RC_OK;
}

/* Runs the forward of one op, the first time or again. */
static rc_code emit_forward(emitter *e, int at, rc_instr_kind kind)
{
    const rc_op *op = &e->graph->ops[at];
    rc_instr instr = blank_instr(kind, at);
    instr.flops = op->fwd_flops;
    RC_TRY(open_outputs(e, op));
    for (int k = 0; k < RC_OP_MAX_IN; k++)
        instr.in[k] = value_ref(e, op->in[k]);
    for (int k = 0; k < RC_OP_MAX_OUT; k++)
        instr.out[k] = value_ref(e, op->out[k]);
    RC_TRY(add_op_scratch(e, op, false, &instr.scratch));
    RC_TRY(add_instr(e, instr));
    if (op->is_in_place)
        set_overwritten(e, op->in[0]);
    for (int k = 0; k < RC_OP_MAX_OUT; k++)
        if (op->out[k] >= 0)
            set_available(e, op->out[k]);
    return RC_OK;
}

static rc_code ensure_available(emitter *e, int tensor)
{
    const rc_graph *graph = e->graph;
    if (tensor < 0 || e->is_available[tensor])
        return RC_OK;
    if (graph->tensors[tensor].view_of >= 0)
        return ensure_available(e, graph->tensors[tensor].view_of);
    int producer = graph->tensors[tensor].producer;
    RC_ASSERT(producer >= 0);
    for (int k = 0; k < RC_OP_MAX_IN; k++)
        RC_TRY(ensure_available(e, graph->ops[producer].in[k]));
    e->schedule->recompute_flops += graph->ops[producer].fwd_flops;
    e->schedule->recompute_moved_bytes += graph->ops[producer].fwd_bytes;
    return emit_forward(e, producer, RC_INSTR_RECOMPUTE);
}

/* ---- gradients ---- */

/* The value whose gradient buffer holds this one's: a slice's is inside its base's; an op that
 * rotates or normalises in place hands its gradient down in place too. */
static int grad_root(const emitter *e, int tensor)
{
    for (;;) {
        const rc_tensor *t = &e->graph->tensors[tensor];
        if (t->view_of >= 0) {
            tensor = t->view_of;
            continue;
        }
        if (t->producer < 0)
            return tensor;
        const rc_op *op = &e->graph->ops[t->producer];
        bool is_handed_down = op->is_in_place && op->out[0] == tensor &&
                              op->kind != RC_OP_bias_dropout_add &&
                              (rc_op_find(op->kind)->grad_in_place & 1u);
        if (!is_handed_down)
            return tensor;
        tensor = op->in[0];
    }
}

/* Whether the gradient of in[k] may take over the buffer of the gradient of out[0]. */
static bool takes_over(const emitter *e, const rc_op *op, int k)
{
    const rc_tensor *x = &e->graph->tensors[op->in[k]];
    const rc_tensor *y = &e->graph->tensors[op->out[0]];
    if (!(rc_op_find(op->kind)->grad_in_place >> k & 1u) || x->view_of >= 0 ||
        x->bytes != y->bytes)
        return false;
    if (op->kind != RC_OP_bias_dropout_add)
        return x->n_consumers == 1;
    /* The residual's gradient is dy itself; x's too when nothing is dropped. Both may then stand in
     * dy's buffer: the branch reads it before the norm at its start adds to it. */
    return k == 1 || (op->attr.p == 0 && x->n_consumers == 1);
}

static rc_code open_gradient(emitter *e, const rc_op *op, int k, int d_out)
{
    int root = grad_root(e, op->in[k]);
    if (e->grad_of[root] != RC_NO_BUFFER)
        return RC_OK;
    if (op->kind == RC_OP_cross_entropy) { /* over the logits, which nobody reads again */
        e->grad_of[root] = e->buffer_of[e->graph->tensors[root].storage];
        return RC_OK;
    }
    if (takes_over(e, op, k)) {
        e->grad_of[root] = d_out;
        return RC_OK;
    }
    const rc_tensor *tensor = &e->graph->tensors[root];
    return add_buffer(e,
                      (rc_buffer){.category = RC_CATEGORY_ACTIVATION_GRADIENTS,
                                  .tensor = root,
                                  .dtype = tensor->dtype,
                                  .bytes = tensor->bytes},
                      &e->grad_of[root]);
}

static rc_code emit_gradients(emitter *e, const rc_op *op, rc_instr *instr)
{
    uint32_t grads = rc_op_find(op->kind)->grads;
    for (int k = 0; k < RC_OP_MAX_IN; k++) {
        int in = op->in[k];
        if (in < 0 || !(grads >> k & 1u))
            continue;
        if (e->graph->tensors[in].kind == RC_TENSOR_WEIGHT) {
            instr->d_in[k] =
                make_ref(e, in, e->schedule->params[e->param_of[in]].buffer[RC_PARAM_GRAD]);
            instr->d_in[k].is_added = true;
            continue;
        }
        RC_TRY(open_gradient(e, op, k, instr->d_out.buffer));
        instr->d_in[k] = make_ref(e, in, e->grad_of[grad_root(e, in)]);
        instr->d_in[k].is_added = e->is_grad_written[in];
        e->is_grad_written[in] = true;
    }
    return RC_OK;
}

static rc_code emit_backward(emitter *e, int at)
{
    const rc_op *op = &e->graph->ops[at];
    rc_instr instr = blank_instr(RC_INSTR_BACKWARD, at);
    instr.flops = op->bwd_flops;
    for (int k = 0; k < RC_OP_MAX_IN; k++)
        if (op->needs_in >> k & 1u)
            RC_TRY(ensure_available(e, op->in[k]));
    for (int k = 0; k < RC_OP_MAX_OUT; k++)
        if (op->needs_out >> k & 1u)
            RC_TRY(ensure_available(e, op->out[k]));
    for (int k = 0; k < RC_OP_MAX_IN; k++)
        if (op->needs_in >> k & 1u)
            instr.in[k] = value_ref(e, op->in[k]);
    for (int k = 0; k < RC_OP_MAX_OUT; k++)
        if (op->needs_out >> k & 1u)
            instr.out[k] = value_ref(e, op->out[k]);
    if (op->kind != RC_OP_cross_entropy) {
        int grad = e->grad_of[grad_root(e, op->out[0])];
        if (grad == RC_NO_BUFFER)
            return RC_FAIL(e->err, RC_E_BUG, RC_NOWHERE, "nothing gives %s a gradient",
                           op->name);
        instr.d_out = make_ref(e, op->out[0], grad);
    }
    RC_TRY(emit_gradients(e, op, &instr));
    RC_TRY(add_op_scratch(e, op, true, &instr.scratch));
    return add_instr(e, instr);
}

/* ---- the step ---- */

static rc_code add_persistent(emitter *e, int tensor, rc_param_role role, int *out)
{
    rc_buffer buffer;
    *out = RC_NO_BUFFER;
    if (!rc_persistent_buffer(e->graph, tensor, role, &buffer))
        return RC_OK;
    return add_buffer(e, buffer, out);
}

static rc_code open_persistent(emitter *e)
{
    rc_schedule *s = e->schedule;
    const rc_graph *graph = e->graph;
    RC_TRY(RC_NEW(e->mem, &s->params, graph->n_tensors, e->err));
    for (int i = 0; i < graph->n_tensors; i++) {
        if (graph->tensors[i].kind != RC_TENSOR_WEIGHT)
            continue;
        e->param_of[i] = s->n_params;
        rc_param *param = &s->params[s->n_params++];
        param->tensor = i;
        for (int role = 0; role < RC_PARAM_ROLE_COUNT; role++)
            RC_TRY(add_persistent(e, i, (rc_param_role)role, &param->buffer[role]));
        e->buffer_of[i] = param->buffer[RC_PARAM_WEIGHT];
        e->is_available[i] = true;
    }
    RC_TRY(add_persistent(e, graph->tokens, RC_PARAM_WEIGHT, &s->tokens));
    RC_TRY(add_persistent(e, graph->targets, RC_PARAM_WEIGHT, &s->targets));
    RC_TRY(add_persistent(e, graph->loss, RC_PARAM_WEIGHT, &s->loss));
    e->buffer_of[graph->tokens] = s->tokens;
    e->buffer_of[graph->targets] = s->targets;
    e->is_available[graph->tokens] = e->is_available[graph->targets] = true;
    return RC_OK;
}

static void find_last_forward(emitter *e)
{
    const rc_graph *graph = e->graph;
    for (int i = 0; i < graph->n_ops; i++) {
        for (int k = 0; k < RC_OP_MAX_IN; k++)
            if (graph->ops[i].in[k] >= 0)
                e->last_forward[graph->tensors[graph->ops[i].in[k]].storage] = i;
        for (int k = 0; k < RC_OP_MAX_OUT; k++)
            if (graph->ops[i].out[k] >= 0)
                e->last_forward[graph->tensors[graph->ops[i].out[k]].storage] = i;
    }
}

/* A DISCARD for every storage that backward wants and the policy drops, after its last reader. */
static rc_code emit_discards(emitter *e, int at)
{
    const rc_op *op = &e->graph->ops[at];
    int touched[RC_OP_MAX_IN + RC_OP_MAX_OUT];
    memcpy(touched, op->in, sizeof op->in);
    memcpy(touched + RC_OP_MAX_IN, op->out, sizeof op->out);
    for (int k = 0; k < RC_OP_MAX_IN + RC_OP_MAX_OUT; k++) {
        if (touched[k] < 0)
            continue;
        int storage = e->graph->tensors[touched[k]].storage;
        if (e->last_forward[storage] != at || e->is_retained[storage] ||
            !e->policy->is_discarded[storage])
            continue;
        e->last_forward[storage] = -1; /* once */
        rc_instr instr = blank_instr(RC_INSTR_DISCARD, at);
        instr.tensor = storage;
        instr.in[0] = value_ref(e, storage);
        RC_TRY(add_instr(e, instr));
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
        s->fwd_flops += graph->ops[i].fwd_flops;
        s->bwd_flops += graph->ops[i].bwd_flops;
        RC_TRY(emit_discards(e, i));
    }
    for (int i = 0; i < graph->n_tensors; i++) {
        rc_tensor_kind kind = graph->tensors[i].kind;
        if (kind != RC_TENSOR_WEIGHT && kind != RC_TENSOR_INPUT &&
            !e->is_retained[graph->tensors[i].storage])
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
        int storage = e->graph->tensors[i].storage;
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
    RC_TRY(add_instr(&e, blank_instr(RC_INSTR_ZERO, -1)));
    RC_TRY(emit_micro_batch(&e));
    rc_instr norm = blank_instr(RC_INSTR_NORM, -1);
    RC_TRY(add_scratch(&e, RC_NORM_SCRATCH_BYTES, &norm.scratch));
    RC_TRY(add_instr(&e, norm));
    return add_instr(&e, blank_instr(RC_INSTR_UPDATE, -1));
}
