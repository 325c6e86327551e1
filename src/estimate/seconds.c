/* seconds.c — what a chunk takes on a GPU, from the roofline of each of its ops.
 *
 * takes  schedules of segments, the rates of a GPU
 * gives  seconds of forward, backward and replay of one micro-batch
 * next   estimate.c makes steps of them, plan orders settings
 *
 * An op takes as long as its products or its bytes do, whichever is longer, and what it sends. A backward moves what
 * forward does and as many gradients.
 */
#include "estimate/seconds.h"

typedef enum efficiency {
#define RC_EFFICIENCY(name, value, source) EFFICIENCY_##name,
#include "defs/efficiencies.def"
#undef RC_EFFICIENCY
    N_EFFICIENCIES
} efficiency;

static const struct row {
    const char *name, *source;
    double value;
} rows[N_EFFICIENCIES] = {
#define RC_EFFICIENCY(name, value, source) {#name, source, value},
#include "defs/efficiencies.def"
#undef RC_EFFICIENCY
};

/* GPUs of a node, and bytes a second of a port of 400 Gb/s. */
enum { GPUS_OF_NODE = 8 };
static const double port_rate = 50e9;

static int64_t ranks_of(const rc_dims *dims, rc_comm_group group)
{
    switch (group) {
    case RC_GROUP_TP:
        return dims->t;
    case RC_GROUP_CP:
        return dims->c;
    case RC_GROUP_EP_ETP:
        return dims->ep * dims->et;
    case RC_GROUP_ETP:
        return dims->et;
    case RC_GROUP_EP:
        return dims->ep;
    case RC_GROUP_PP:
        return 2;
    case RC_GROUP_DP:
    case RC_GROUP_NONE:
    case RC_GROUP_COUNT:
        break;
    }
    return 1;
}

/* Tensor-parallel ranks are neighbours; the others stand apart by as many. */
static bool is_in_node(const rc_dims *dims, rc_comm_group group, int64_t n)
{
    if (group == RC_GROUP_PP)
        return false;
    return (group == RC_GROUP_TP ? n : n * dims->t) <= GPUS_OF_NODE;
}

static double sending_seconds(const rc_graph *graph, rc_comm comm, const rc_gpu *gpu)
{
    const int64_t n = ranks_of(&graph->dims, comm.group);
    if (comm.kind == RC_COMM_NONE || n < 2)
        return 0;
    const double rate = is_in_node(&graph->dims, comm.group, n)
                            ? gpu->link_rate * rows[EFFICIENCY_link].value
                            : port_rate * rows[EFFICIENCY_network].value;
    const double share = (double)(n - 1) / (double)n;
    const double bytes = (double)comm.bytes * (comm.kind == RC_COMM_ALL_REDUCE ? 2 : 1);
    return bytes * share / rate;
}

static double op_seconds(const rc_graph *graph, int at, bool is_backward, const rc_gpu *gpu)
{
    const rc_op op = rc_graph_op(graph, at);
    const bool is_attention = op.kind == RC_OP_attention || op.kind == RC_OP_ring_attention;
    const double flops = (double)(is_backward ? op.bwd_flops : op.fwd_flops);
    const double bytes = (double)op.fwd_bytes * (is_backward ? 2 : 1);
    const double share = rows[is_attention ? EFFICIENCY_attention : EFFICIENCY_product].value;
    const double product = flops / (gpu->flops * share);
    const double stream = bytes / (gpu->memory_rate * rows[EFFICIENCY_memory].value);
    const double sent = sending_seconds(graph, rc_graph_comm(graph, at, is_backward), gpu);
    const bool only_sends = op.facts->fwd_comm != RC_COMM_NONE && flops <= 0;
    const double run = only_sends ? 0 : product > stream ? product : stream;
    return run + sent + rows[EFFICIENCY_launch_us].value * 1e-6;
}

static rc_seconds segment_seconds(const rc_segment *segment, const rc_gpu *gpu)
{
    const rc_schedule *s = segment->schedule;
    rc_seconds sum = {0};
    for (int i = s->micro_first; i <= s->micro_last; i++) {
        const rc_instr *instr = &s->instrs[i];
        if (instr->op < 0 || instr->kind == RC_INSTR_DISCARD)
            continue;
        const bool is_backward = instr->kind == RC_INSTR_BACKWARD;
        const double seconds = op_seconds(s->graph, instr->op, is_backward, gpu);
        const rc_op op = rc_graph_op(s->graph, instr->op);
        if (instr->kind == RC_INSTR_FORWARD)
            sum.fwd += seconds;
        else if (is_backward || s->policy->fates[op.out[0]].by == RC_BY_MODULE)
            sum.bwd += seconds;
        else
            sum.replay += seconds;
    }
    return sum;
}

rc_seconds rc_chunk_seconds(const rc_segments *segments, const rc_chunk_cost *chunk,
                            const rc_gpu *gpu)
{
    rc_seconds sum = {0};
    for (int i = 0; i < chunk->n_pieces; i++) {
        const rc_piece *piece = &chunk->pieces[i];
        const rc_seconds one = segment_seconds(&segments->at[piece->segment], gpu);
        sum.fwd += piece->n * one.fwd;
        sum.bwd += piece->n * one.bwd;
        sum.replay += piece->n * one.replay;
    }
    return sum;
}

rc_code rc_efficiencies_table(rc_arena *mem, rc_table **out, rc_error *err)
{
    static const rc_column columns[] = {{"efficiency", NULL, RC_UNIT_TEXT},
                                        {"value", NULL, RC_UNIT_TEXT},
                                        {"about", NULL, RC_UNIT_TEXT}};
    RC_TRY(rc_table_make(mem, "efficiencies", "What of a GPU's peak a kernel reaches", columns,
                         3, out, err));
    for (int i = 0; i < N_EFFICIENCIES; i++) {
        rc_cell *row;
        const char *value;
        RC_TRY(rc_table_add_row(*out, &row, err));
        RC_TRY(rc_arena_printf(mem, &value, err, "%.2f", rows[i].value));
        row[0] = rc_cell_text(rows[i].name);
        row[1] = rc_cell_text(value);
        row[2] = rc_cell_text(rows[i].source);
    }
    return RC_OK;
}
