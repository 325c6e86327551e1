/* print_retained.c — what a profile's graph keeps from forward to backward, a row per storage.
 *
 *   print_retained PROFILE SETTING KEY=VALUE...
 *
 * Rows: bytes, dtype, shape, storage, and the operations whose backward reads it ("pinned": a replay
 * starts from it). Of the layers the first is printed. Behind them what the layer's operations send, forward and backward.
 */
#include "../laws/law.h"

static const char *part_of_op(const rc_graph *graph, int op)
{
    static char buf[RC_GRAPH_NAME_BYTES];
    static const char prefix[] = "decoder.layers.0.";
    const char *name = rc_graph_op_name(graph, op, buf);
    return strncmp(name, prefix, sizeof prefix - 1) == 0 ? name + sizeof prefix - 1 : name;
}

static bool is_of(const rc_graph *graph, int tensor, int storage)
{
    return tensor >= 0 && rc_graph_tensor(graph, tensor).storage == storage;
}

static bool is_read_by(const rc_graph *graph, const rc_op *op, int storage)
{
    bool is_read = false;
    for (int k = 0; k < op->n_in; k++)
        is_read = is_read || ((op->needs_in >> k & 1u) && is_of(graph, op->in[k], storage));
    for (int k = 0; k < op->n_out; k++)
        is_read = is_read || ((op->needs_out >> k & 1u) && is_of(graph, op->out[k], storage));
    return is_read;
}

static void print_row(const rc_graph *graph, const rc_policy *policy, int storage)
{
    const rc_tensor tensor = rc_graph_tensor(graph, storage);
    printf("%8lld %-4s %-18s %s <-", (long long)tensor.bytes, rc_dtype_name(tensor.dtype),
           tensor.shape, tensor.part);
    for (int i = 0; i < graph->n_ops; i++) {
        const rc_op op = rc_graph_op(graph, i);
        if (is_read_by(graph, &op, storage))
            printf(" %s", part_of_op(graph, i));
    }
    for (int i = 0; i < graph->n_tensors; i++)
        if (is_of(graph, i, storage) && policy->fates[i].kind == RC_FATE_PIN)
            printf(" pinned(%s)", rc_graph_tensor(graph, i).part);
    putchar('\n');
}

static void print_layer(const rc_policy *policy, const bool *is_retained, int layer,
                        const char *what)
{
    const rc_graph *graph = policy->graph;
    int64_t sum = 0;
    printf("\n%s\n", what);
    for (int i = 0; i < graph->n_tensors; i++) {
        const rc_tensor tensor = rc_graph_tensor(graph, i);
        if (!is_retained[i] || tensor.layer != layer)
            continue;
        print_row(graph, policy, i);
        sum += tensor.bytes;
    }
    printf("%8lld bytes\n", (long long)sum);
}

static void print_exchanges(const rc_graph *graph, bool is_backward)
{
    printf("\nsent in %s\n", is_backward ? "backward" : "forward");
    for (int i = 0; i < graph->n_ops; i++) {
        const rc_comm comm = rc_graph_comm(graph, i, is_backward);
        if (rc_graph_op(graph, i).layer == 0 && comm.kind != RC_COMM_NONE)
            printf("%8lld %-14s %s\n", (long long)comm.bytes, rc_comm_kind_name(comm.kind),
                   part_of_op(graph, i));
    }
}

static rc_code print_all(rc_profile profile, const char *name, const char *const *words,
                         size_t n, rc_arena *mem, rc_error *err)
{
    rc_doc *doc;
    rc_config *cfg;
    rc_setting setting;
    bool *is_retained;
    if (!rc_setting_parse(name, &setting))
        return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE, "%s is no setting", name);
    RC_TRY(rc_override_read(words, n, mem, &doc, err));
    RC_TRY(rc_config_make(&(rc_input){doc, RC_FROM_OVERRIDE}, 1, mem, &cfg, err));
    rc_passes passes = {.cfg = cfg, .profile = profile, .setting = &setting};
    RC_TRY(rc_passes_make(&passes, RC_NOUN_POLICY, mem, err));
    const rc_graph *graph = passes.graph;
    const rc_policy *policy = passes.policy;
    RC_TRY(rc_policy_retained(policy, mem, &is_retained, err));
    const rc_dims *dims = &graph->dims;
    printf("%s, %s: N %lld, n %lld\n", rc_profile_name(profile), name, (long long)dims->N,
           (long long)dims->n);
    print_layer(policy, is_retained, -1, "before the layers");
    print_layer(policy, is_retained, 0, "a layer");
    print_layer(policy, is_retained, (int)dims->L, "behind the layers");
    print_exchanges(graph, false);
    print_exchanges(graph, true);
    return RC_OK;
}

int main(int argc, char **argv)
{
    rc_error err = {0};
    rc_profile profile;
    if (argc < 4 || !rc_profile_find(argv[1], &profile)) {
        fprintf(stderr, "usage: print_retained PROFILE SETTING KEY=VALUE...\n");
        return 2;
    }
    rc_arena *mem = rc_arena_open();
    rc_code code =
        print_all(profile, argv[2], (const char *const *)argv + 3, (size_t)argc - 3, mem, &err);
    if (code != RC_OK)
        fprintf(stderr, "%s\n", err.msg);
    rc_arena_close(mem);
    return code == RC_OK ? 0 : 2;
}
