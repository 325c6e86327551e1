/* policy.c — what a setting retains: marks tensors of a graph as discarded or pinned.
 *
 * takes  graph with its regions marked by the layer builders; a setting
 * gives  rc_policy
 * next   schedule/ turns it into instructions
 */
#include <recompute/policy.h>

#include <string.h>

/* The value a view is a slice of, at its root. */
static int root_of(const rc_graph *graph, int tensor)
{
    while (graph->tensors[tensor].view_of >= 0)
        tensor = graph->tensors[tensor].view_of;
    return tensor;
}

static bool is_computed(const rc_graph *graph, int tensor)
{
    return tensor >= 0 && graph->tensors[root_of(graph, tensor)].producer >= 0;
}

static bool is_produced_in(const rc_graph *graph, int tensor, int first, int last)
{
    int producer = graph->tensors[root_of(graph, tensor)].producer;
    return producer >= first && producer <= last;
}

/* The last forward op that reads a value or a slice of it, for every root; -1 where none does. */
static rc_code find_last_readers(const rc_graph *graph, rc_arena *mem, int **out, rc_error *err)
{
    RC_TRY(RC_NEW(mem, out, graph->n_tensors, err));
    for (int i = 0; i < graph->n_tensors; i++)
        (*out)[i] = -1;
    for (int i = 0; i < graph->n_ops; i++)
        for (int k = 0; k < RC_OP_MAX_IN; k++)
            if (graph->ops[i].in[k] >= 0)
                (*out)[root_of(graph, graph->ops[i].in[k])] = i;
    return RC_OK;
}

static void discard(rc_policy *policy, int tensor, int label)
{
    if (policy->graph->tensors[tensor].kind == RC_TENSOR_LOSS)
        return;
    policy->is_discarded[tensor] = true;
    if (policy->discarded_by[tensor] < 0)
        policy->discarded_by[tensor] = label;
}

/* Marks one active region. The per-row statistics of a discarded norm stay in the engine: they are
 * 8 bytes a token against 4h, and Megatron profiles drop them (they run the norm without grad). */
static void activate(rc_policy *policy, const int *last_reader, const rc_region *region,
                     rc_mechanism mechanism, int label)
{
    const rc_graph *graph = policy->graph;
    const int first = region->first, last = region->last;
    policy->n_active_regions++;
    for (int i = first; i <= last; i++) {
        const rc_op *op = &graph->ops[i];
        for (int k = 0; k < RC_OP_MAX_IN; k++)
            if (is_computed(graph, op->in[k]) && !is_produced_in(graph, op->in[k], first, last))
                policy->is_pinned[op->in[k]] = true;
        for (int k = 0; k < RC_OP_MAX_OUT; k++) {
            if (op->out[k] < 0)
                continue;
            bool is_output = last_reader[op->out[k]] > last; /* nothing before it reads it */
            bool is_stats = graph->tensors[op->out[k]].kind == RC_TENSOR_STATS;
            if (mechanism == RC_MECHANISM_CHECKPOINT
                    ? !is_output
                    : !is_stats || graph->profile != RC_PROFILE_ENGINE)
                discard(policy, op->out[k], label);
        }
    }
}

static void activate_labels(rc_policy *policy, const int *last_reader)
{
    const rc_graph *graph = policy->graph;
    for (int i = 0; i < graph->n_regions; i++) {
        const rc_region *region = &graph->regions[i];
        if (policy->setting.labels >> region->label & 1u)
            activate(policy, last_reader, region, rc_label_find_facts(region->label)->mechanism,
                     (int)region->label);
    }
}

/* uniform: groups of num_layers, the last may be shorter. block: the first num_layers layers, each
 * a group of its own. Source: megatron/core/recompute.py. */
static void activate_full(rc_policy *policy, const int *last_reader)
{
    const rc_graph *graph = policy->graph;
    int64_t n_layers = graph->dims.L, n = policy->setting.num_layers;
    bool is_block = policy->setting.method == RC_METHOD_BLOCK;
    int64_t end = is_block && n < n_layers ? n : n_layers;
    int64_t step = is_block ? 1 : n < n_layers ? n : n_layers;
    for (int64_t layer = 0; layer < end; layer += step) {
        int64_t last = layer + step - 1 < end ? layer + step - 1 : end - 1;
        rc_region group = {.first = graph->layer_first[layer], .last = graph->layer_last[last]};
        activate(policy, last_reader, &group, RC_MECHANISM_CHECKPOINT, RC_LABEL_COUNT);
    }
}

rc_code rc_policy_make(const rc_graph *graph, const rc_setting *setting, rc_arena *mem,
                       rc_policy **out, rc_error *err)
{
    RC_TRY(RC_NEW(mem, out, 1, err));
    rc_policy *policy = *out;
    int *last_reader;
    policy->graph = graph;
    policy->setting = *setting;
    RC_TRY(RC_NEW(mem, &policy->is_discarded, graph->n_tensors, err));
    RC_TRY(RC_NEW(mem, &policy->is_pinned, graph->n_tensors, err));
    RC_TRY(RC_NEW(mem, &policy->discarded_by, graph->n_tensors, err));
    RC_TRY(find_last_readers(graph, mem, &last_reader, err));
    for (int i = 0; i < graph->n_tensors; i++)
        policy->discarded_by[i] = -1;
    if (setting->granularity == RC_GRANULARITY_SELECTIVE)
        activate_labels(policy, last_reader);
    else if (setting->granularity == RC_GRANULARITY_FULL)
        activate_full(policy, last_reader);
    return rc_policy_verify(policy, err);
}

rc_code rc_policy_verify(const rc_policy *policy, rc_error *err)
{
    const rc_graph *graph = policy->graph;
    for (int i = 0; i < graph->n_tensors; i++) {
        const rc_tensor *tensor = &graph->tensors[i];
        if (policy->is_discarded[i] && tensor->producer < 0)
            return RC_FAIL(err, RC_E_BUG, RC_NOWHERE, "%s is discarded but nothing computes it",
                           tensor->name);
    }
    return RC_OK;
}

/* A value of the storage is wanted after forward: backward reads it, or a recompute starts at it. */
static bool is_wanted(const rc_policy *policy, int tensor, const bool *is_read)
{
    int root = root_of(policy->graph, tensor);
    if (policy->is_discarded[root])
        return false;
    return is_read[tensor] || policy->is_pinned[tensor];
}

rc_code rc_policy_retained(const rc_policy *policy, rc_arena *mem, bool **is_retained,
                           rc_error *err)
{
    const rc_graph *graph = policy->graph;
    bool *is_read;
    RC_TRY(RC_NEW(mem, is_retained, graph->n_tensors, err));
    RC_TRY(RC_NEW(mem, &is_read, graph->n_tensors, err));
    for (int i = 0; i < graph->n_ops; i++) {
        const rc_op *op = &graph->ops[i];
        for (int k = 0; k < RC_OP_MAX_IN; k++)
            if (op->in[k] >= 0 && (op->needs_in >> k & 1u))
                is_read[op->in[k]] = true;
        for (int k = 0; k < RC_OP_MAX_OUT; k++)
            if (op->out[k] >= 0 && (op->needs_out >> k & 1u))
                is_read[op->out[k]] = true;
    }
    for (int i = 0; i < graph->n_tensors; i++) {
        rc_tensor_kind kind = graph->tensors[i].kind;
        if (kind == RC_TENSOR_WEIGHT || kind == RC_TENSOR_INPUT)
            continue;
        if (is_wanted(policy, i, is_read))
            (*is_retained)[graph->tensors[i].storage] = true;
    }
    return RC_OK;
}

static const char *fate(const rc_policy *policy, int tensor)
{
    return policy->is_discarded[tensor] ? "discarded"
           : policy->is_pinned[tensor]  ? "pinned"
                                        : "-";
}

static const char *discarder(const rc_policy *policy, int tensor)
{
    int label = policy->discarded_by[tensor];
    return label < 0                 ? NULL
           : label == RC_LABEL_COUNT ? "full"
                                     : rc_label_find_facts((rc_label)label)->name;
}

void rc_policy_print(const rc_policy *policy, FILE *to)
{
    char name[160];
    fprintf(to, "policy %s, %d active regions\n", rc_setting_name(&policy->setting, name),
            policy->n_active_regions);
    for (int i = 0; i < policy->graph->n_tensors; i++)
        if (policy->is_discarded[i] || policy->is_pinned[i])
            fprintf(to, "%-10s %s%s%s\n", fate(policy, i), policy->graph->tensors[i].name,
                    discarder(policy, i) ? " by " : "",
                    discarder(policy, i) ? discarder(policy, i) : "");
}

rc_code rc_policy_table(const rc_policy *policy, rc_arena *mem, rc_table **out, rc_error *err)
{
    static const rc_column columns[] = {{"tensor", NULL, RC_UNIT_TEXT},
                                        {"layer", NULL, RC_UNIT_COUNT},
                                        {"bytes", NULL, RC_UNIT_BYTES},
                                        {"fate", NULL, RC_UNIT_TEXT},
                                        {"label", NULL, RC_UNIT_TEXT}};
    RC_TRY(rc_table_make(mem, "policy", "tensors a setting discards or pins", columns, 5, out,
                         err));
    for (int i = 0; i < policy->graph->n_tensors; i++) {
        const rc_tensor *tensor = &policy->graph->tensors[i];
        if (!policy->is_discarded[i] && !policy->is_pinned[i])
            continue;
        rc_cell *row;
        RC_TRY(rc_table_add_row(*out, &row, err));
        row[0] = rc_cell_text(tensor->name);
        row[1] = rc_cell_int(tensor->layer);
        row[2] = rc_cell_int(tensor->bytes);
        row[3] = rc_cell_text(fate(policy, i));
        row[4] = rc_cell_text(discarder(policy, i));
    }
    return RC_OK;
}
