/* persistent.c — the buffers that live across steps: the one place that knows them and their bytes.
 *
 * takes  a graph, whose layout says what a parameter has
 * gives  a buffer for every role of a weight, and one for tokens, targets and loss
 * next   emit.c opens them, outline.c adds them up
 */
#include "schedule/passes.h"

static const rc_category category_of[RC_PARAM_ROLE_COUNT] = {
    [RC_PARAM_WEIGHT] = RC_CATEGORY_WEIGHTS,    [RC_PARAM_GRAD] = RC_CATEGORY_GRADIENTS,
    [RC_PARAM_MASTER] = RC_CATEGORY_OPTIMIZER,  [RC_PARAM_MOMENT1] = RC_CATEGORY_OPTIMIZER,
    [RC_PARAM_MOMENT2] = RC_CATEGORY_OPTIMIZER,
};

bool rc_persistent_buffer(const rc_graph *graph, int tensor, rc_param_role role, rc_buffer *out)
{
    const rc_tensor facts = rc_graph_tensor(graph, tensor);
    const bool is_weight = facts.kind == RC_TENSOR_WEIGHT;
    const bool is_input =
        tensor == graph->tokens || tensor == graph->targets || tensor == graph->loss;
    *out = (rc_buffer){.category = is_weight ? category_of[role] : RC_CATEGORY_INPUTS,
                       .tensor = tensor,
                       .dtype = facts.dtype,
                       .is_persistent = true,
                       .bytes = facts.bytes};
    if (!is_weight)
        return is_input && role == RC_PARAM_WEIGHT;
    if (!rc_graph_param_dtype(graph, &facts, role, &out->dtype))
        return false;
    /* Far below 2^63: the graph counted 64 times what a weight moves. */
    out->bytes = facts.n_elem * rc_dtype_bytes(out->dtype);
    return true;
}
