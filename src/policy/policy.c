/* policy.c — what a setting retains: gives every tensor of a graph its fate.
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
    for (int base; (base = rc_graph_tensor(graph, tensor).view_of) >= 0;)
        tensor = base;
    return tensor;
}

static int producer_of(const rc_graph *graph, int tensor)
{
    return rc_graph_tensor(graph, root_of(graph, tensor)).producer;
}

/* Is it computed, and by an op outside [first, last]? */
static bool comes_from_outside(const rc_graph *graph, int tensor, int first, int last)
{
    const int producer = tensor < 0 ? -1 : producer_of(graph, tensor);
    return producer >= 0 && (producer < first || producer > last);
}

/* The last forward op that reads a value or a slice of it, for every root; -1 where none does. */
static rc_code find_last_readers(const rc_graph *graph, rc_arena *mem, int **out, rc_error *err)
{
    RC_TRY(RC_NEW(mem, out, graph->n_tensors, err));
    for (int i = 0; i < graph->n_tensors; i++)
        (*out)[i] = -1;
    for (int i = 0; i < graph->n_ops; i++) {
        const rc_op op = rc_graph_op(graph, i);
        for (int k = 0; k < op.n_in; k++)
            if (op.in[k] >= 0)
                (*out)[root_of(graph, op.in[k])] = i;
    }
    return RC_OK;
}

/* The first that discards a tensor is named. A region that starts from a tensor which another region
 * discards has it computed again first. */
static void discard(rc_policy *policy, int tensor, int by)
{
    rc_tensor_fate *fate = &policy->fates[tensor];
    if (fate->kind != RC_FATE_DISCARD)
        *fate = (rc_tensor_fate){RC_FATE_DISCARD, by};
}

static void pin(rc_policy *policy, int tensor)
{
    rc_tensor_fate *fate = &policy->fates[tensor];
    if (fate->kind == RC_FATE_RETAIN)
        fate->kind = RC_FATE_PIN;
}

/* Does the mechanism discard output k of an op of [first, last]? The per-row statistics of a norm that is
 * discarded stay in the engine: they are 8 bytes a token against 4h, and Megatron profiles drop them (they
 * run the norm without grad). */
static bool discards(const rc_graph *graph, rc_mechanism mechanism, rc_tensor_kind kind,
                     bool is_read_outside)
{
    if (kind == RC_TENSOR_LOSS)
        return false;
    if (mechanism == RC_MECHANISM_CHECKPOINT)
        return !is_read_outside;
    return kind != RC_TENSOR_STATS || graph->profile != RC_PROFILE_ENGINE;
}

/* Marks one active region. */
static void activate(rc_policy *policy, const int *last_reader, const rc_region *region,
                     rc_mechanism mechanism, int by)
{
    const rc_graph *graph = policy->graph;
    const int first = region->first, last = region->last;
    for (int i = first; i <= last; i++) {
        const rc_op op = rc_graph_op(graph, i);
        for (int k = 0; k < op.n_in; k++)
            if (comes_from_outside(graph, op.in[k], first, last))
                pin(policy, op.in[k]);
        for (int k = 0; k < op.n_out; k++)
            if (op.out[k] >= 0 &&
                discards(graph, mechanism, rc_graph_tensor(graph, op.out[k]).kind,
                         last_reader[op.out[k]] > last))
                discard(policy, op.out[k], by);
    }
}

static void activate_labels(rc_policy *policy, const rc_setting *setting,
                            const int *last_reader)
{
    const rc_graph *graph = policy->graph;
    for (int i = 0; i < graph->n_regions; i++) {
        const rc_region region = rc_graph_region(graph, i);
        if (!(setting->labels >> region.label & 1u))
            continue;
        activate(policy, last_reader, &region, rc_label_find_facts(region.label)->mechanism,
                 (int)region.label);
        policy->n_active_regions++;
    }
}

/* uniform: groups of num_layers, the last may be shorter. block: the first num_layers layers, each
 * a group of its own. Source: megatron/core/recompute.py. */
static void activate_full(rc_policy *policy, const rc_setting *setting, const int *last_reader)
{
    const rc_graph *graph = policy->graph;
    int64_t n_layers = graph->dims.L, n = setting->num_layers;
    bool is_block = setting->method == RC_METHOD_BLOCK;
    int64_t end = is_block && n < n_layers ? n : n_layers;
    int64_t step = is_block ? 1 : n < n_layers ? n : n_layers;
    for (int64_t layer = 0; layer < end; layer += step) {
        int64_t last = layer + step - 1 < end ? layer + step - 1 : end - 1;
        rc_region group;
        rc_graph_layer_ops(graph, (int)layer, (int)last, &group.first, &group.last);
        activate(policy, last_reader, &group, RC_MECHANISM_CHECKPOINT, RC_BY_FULL);
        policy->n_active_regions++;
    }
}

/* What modules drop by themselves; a label or a group that drops it too is named before. */
static void activate_modules(rc_policy *policy, const int *last_reader)
{
    for (int i = 0; i < policy->graph->n_ops; i++) {
        const rc_region op = {.first = i, .last = i};
        if (rc_graph_op(policy->graph, i).facts->drops_output)
            activate(policy, last_reader, &op, RC_MECHANISM_DISCARD, RC_BY_MODULE);
    }
}

static rc_code open_policy(const rc_graph *graph, const char *name, rc_arena *mem,
                           rc_policy **out, rc_error *err)
{
    RC_TRY(RC_NEW(mem, out, 1, err));
    (*out)->graph = graph;
    RC_TRY(rc_arena_copy(mem, name, strlen(name), &(*out)->name, err));
    return RC_NEW(mem, &(*out)->fates, graph->n_tensors, err);
}

rc_code rc_policy_make(const rc_graph *graph, const rc_setting *setting, rc_arena *mem,
                       rc_policy **out, rc_error *err)
{
    char name[160];
    int *last_reader;
    RC_TRY(open_policy(graph, rc_setting_name(setting, name), mem, out, err));
    RC_TRY(find_last_readers(graph, mem, &last_reader, err));
    if (setting->granularity == RC_GRANULARITY_SELECTIVE)
        activate_labels(*out, setting, last_reader);
    else if (setting->granularity == RC_GRANULARITY_FULL)
        activate_full(*out, setting, last_reader);
    activate_modules(*out, last_reader);
    return rc_policy_verify(*out, err);
}

rc_code rc_policy_make_of(const rc_graph *graph, const rc_tensor_fate *fates, const char *name,
                          rc_arena *mem, rc_policy **out, rc_error *err)
{
    RC_TRY(open_policy(graph, name, mem, out, err));
    memcpy((*out)->fates, fates, (size_t)graph->n_tensors * sizeof *fates);
    return rc_policy_verify(*out, err);
}

rc_code rc_policy_keep_last_layer(const rc_policy *policy, rc_arena *mem, rc_policy **out,
                                  rc_error *err)
{
    const rc_graph *graph = policy->graph;
    *out = NULL;
    for (int i = 0; i < graph->n_tensors; i++) {
        if (policy->fates[i].kind != RC_FATE_DISCARD || policy->fates[i].by == RC_BY_MODULE ||
            rc_graph_tensor(graph, i).layer != graph->dims.L - 1)
            continue;
        if (!*out) {
            RC_TRY(rc_policy_make_of(graph, policy->fates, policy->name, mem, out, err));
            (*out)->n_active_regions = policy->n_active_regions;
            (*out)->is_last_layer_kept = true;
        }
        (*out)->fates[i] = (rc_tensor_fate){RC_FATE_RETAIN, 0};
    }
    return RC_OK;
}

rc_code rc_policy_verify(const rc_policy *policy, rc_error *err)
{
    const rc_graph *graph = policy->graph;
    for (int i = 0; i < graph->n_tensors; i++) {
        const rc_tensor tensor = rc_graph_tensor(graph, i);
        char name[RC_GRAPH_NAME_BYTES];
        if (policy->fates[i].kind != RC_FATE_DISCARD)
            continue;
        if (tensor.producer < 0 || tensor.kind == RC_TENSOR_LOSS)
            return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE, "%s cannot be discarded: %s; retain it",
                           rc_graph_tensor_name(graph, i, name),
                           tensor.view_of >= 0 ? "a slice goes with the value it is a slice of"
                           : tensor.producer < 0 ? "no op computes it"
                                                 : "it is the result of the step");
    }
    return RC_OK;
}

/* A value of the storage is wanted after forward: backward reads it, or a replay starts at it. */
static bool is_wanted(const rc_policy *policy, int tensor, const bool *is_read)
{
    if (policy->fates[root_of(policy->graph, tensor)].kind == RC_FATE_DISCARD)
        return false;
    return is_read[tensor] || policy->fates[tensor].kind == RC_FATE_PIN;
}

static void mark_read(const int *operands, int n, uint32_t needs, bool *is_read)
{
    for (int k = 0; k < n; k++)
        if (operands[k] >= 0 && (needs >> k & 1u))
            is_read[operands[k]] = true;
}

rc_code rc_policy_retained(const rc_policy *policy, rc_arena *mem, bool **is_retained,
                           rc_error *err)
{
    const rc_graph *graph = policy->graph;
    bool *is_read;
    RC_TRY(RC_NEW(mem, is_retained, graph->n_tensors, err));
    RC_TRY(RC_NEW(mem, &is_read, graph->n_tensors, err));
    for (int i = 0; i < graph->n_ops; i++) {
        const rc_op op = rc_graph_op(graph, i);
        mark_read(op.in, op.n_in, op.needs_in, is_read);
        mark_read(op.out, op.n_out, op.needs_out, is_read);
    }
    for (int i = 0; i < graph->n_tensors; i++) {
        const rc_tensor tensor = rc_graph_tensor(graph, i);
        if (tensor.kind == RC_TENSOR_WEIGHT || tensor.kind == RC_TENSOR_INPUT)
            continue;
        if (is_wanted(policy, i, is_read))
            (*is_retained)[tensor.storage] = true;
    }
    return RC_OK;
}

static const char *fate_name(rc_tensor_fate fate)
{
    static const char *const names[] = {
        [RC_FATE_RETAIN] = "-", [RC_FATE_DISCARD] = "discarded", [RC_FATE_PIN] = "pinned"};
    return names[fate.kind];
}

/* Who discards; NULL of the other fates. */
static const char *discarder(rc_tensor_fate fate)
{
    if (fate.kind != RC_FATE_DISCARD)
        return NULL;
    return fate.by == RC_BY_FULL     ? "full"
           : fate.by == RC_BY_MODULE ? "module"
           : fate.by == RC_BY_CALLER ? "caller"
                                     : rc_label_find_facts((rc_label)fate.by)->name;
}

void rc_policy_print(const rc_policy *policy, FILE *to)
{
    char name[RC_GRAPH_NAME_BYTES];
    fprintf(to, "policy %s, %d active regions\n", policy->name, policy->n_active_regions);
    for (int i = 0; i < policy->graph->n_tensors; i++) {
        const rc_tensor_fate fate = policy->fates[i];
        const char *by = discarder(fate);
        if (fate.kind != RC_FATE_RETAIN)
            fprintf(to, "%-10s %s%s%s\n", fate_name(fate),
                    rc_graph_tensor_name(policy->graph, i, name), by ? " by " : "",
                    by ? by : "");
    }
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
        const rc_tensor tensor = rc_graph_tensor(policy->graph, i);
        char buf[RC_GRAPH_NAME_BYTES];
        const char *name;
        rc_cell *row;
        if (policy->fates[i].kind == RC_FATE_RETAIN)
            continue;
        RC_TRY(rc_arena_printf(mem, &name, err, "%s",
                               rc_graph_tensor_name(policy->graph, i, buf)));
        RC_TRY(rc_table_add_row(*out, &row, err));
        row[0] = rc_cell_text(name);
        row[1] = rc_cell_int(tensor.layer);
        row[2] = rc_cell_int(tensor.bytes);
        row[3] = rc_cell_text(fate_name(policy->fates[i]));
        row[4] = rc_cell_text(discarder(policy->fates[i]));
    }
    return RC_OK;
}
