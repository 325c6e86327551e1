/* schedule.c — makes a schedule from a policy, checks its laws, prints it.
 *
 * takes  graph + policy
 * gives  rc_schedule
 * next   cost/ prices it, exec/ runs it
 */
#include "schedule/passes.h"

#include <inttypes.h>
#include <string.h>

static const char *const kind_names[] = {"zero",     "forward", "discard", "recompute",
                                         "backward", "norm",    "update"};
static const char *const category_names[] = {"weights",
                                             "gradients",
                                             "optimizer",
                                             "inputs",
                                             "activations",
                                             "recomputed",
                                             "activation gradients",
                                             "scratch"};

const char *rc_instr_kind_name(rc_instr_kind kind)
{
    return kind_names[kind];
}

const char *rc_category_name(rc_category category)
{
    return category_names[category];
}

rc_code rc_schedule_unplaced(const rc_policy *policy, int n_threads, rc_arena *mem,
                             rc_schedule **out, rc_error *err)
{
    RC_TRY(RC_NEW(mem, out, 1, err));
    **out = (rc_schedule){.policy = policy, .graph = policy->graph, .n_threads = n_threads};
    RC_TRY(rc_schedule_emit(policy, *out, mem, err));
    return rc_schedule_live(*out, mem, err);
}

rc_code rc_schedule_choose(const rc_policy *policy, int n_threads, rc_arena *mem,
                           rc_schedule **out, rc_error *err)
{
    rc_policy *kept;
    rc_schedule *other;
    RC_TRY(rc_schedule_unplaced(policy, n_threads, mem, out, err));
    RC_TRY(rc_policy_keep_last_layer(policy, mem, &kept, err));
    if (!kept)
        return RC_OK;
    RC_TRY(rc_schedule_unplaced(kept, n_threads, mem, &other, err));
    if (rc_schedule_keeps_last_layer((*out)->bound_bytes, other->bound_bytes))
        *out = other;
    return RC_OK;
}

rc_code rc_schedule_make_as(const rc_policy *policy, bool is_last_layer_kept, int n_threads,
                            rc_arena *mem, rc_schedule **out, rc_error *err)
{
    rc_policy *kept = NULL;
    if (is_last_layer_kept)
        RC_TRY(rc_policy_keep_last_layer(policy, mem, &kept, err));
    RC_TRY(rc_schedule_unplaced(kept ? kept : policy, n_threads, mem, out, err));
    return rc_schedule_place(*out, mem, err);
}

rc_code rc_schedule_make(const rc_policy *policy, int n_threads, rc_arena *mem,
                         rc_schedule **out, rc_error *err)
{
    RC_TRY(rc_schedule_choose(policy, n_threads, mem, out, err));
    return rc_schedule_place(*out, mem, err);
}

/* ---- laws ---- */

#define BROKEN(err, ...) RC_FAIL((err), RC_E_BUG, RC_NOWHERE, __VA_ARGS__)

static rc_code verify_no_overlap(const rc_schedule *s, rc_error *err)
{
    for (int i = 0; i < s->n_buffers; i++) {
        const rc_buffer *a = &s->buffers[i];
        if (a->last < 0)
            continue;
        if (a->offset % RC_ALIGN != 0 || a->offset < 0 ||
            a->offset + rc_buffer_room(a) > s->arena_bytes)
            return BROKEN(err, "buffer %d lies outside the arena", i);
        for (int j = i + 1; j < s->n_buffers; j++) {
            const rc_buffer *b = &s->buffers[j];
            if (b->last < 0 || a->last < b->first || b->last < a->first)
                continue;
            if (a->offset < b->offset + rc_buffer_room(b) &&
                b->offset < a->offset + rc_buffer_room(a))
                return BROKEN(err, "buffers %d and %d overlap and live together", i, j);
        }
    }
    return RC_OK;
}

static rc_code verify_read(const rc_schedule *s, const bool *is_written, const rc_ref *ref,
                           int at, rc_error *err)
{
    if (ref->buffer == RC_NO_BUFFER)
        return RC_OK;
    const rc_buffer *b = &s->buffers[ref->buffer];
    if (at < b->first || at > b->last)
        return BROKEN(err, "instruction %d reads buffer %d outside its life", at, ref->buffer);
    if (!b->is_persistent && !is_written[ref->buffer])
        return BROKEN(err, "instruction %d reads buffer %d before it is written", at,
                      ref->buffer);
    return RC_OK;
}

static rc_code verify_instr(const rc_schedule *s, bool *is_written, int at, rc_error *err)
{
    const rc_instr *instr = &s->instrs[at];
    if (instr->kind == RC_INSTR_DISCARD)
        return RC_OK;
    bool is_backward = instr->kind == RC_INSTR_BACKWARD;
    const rc_ref *in = rc_instr_in(s, instr), *out = rc_instr_out(s, instr);
    const rc_ref *d_in = rc_instr_d_in(s, instr);
    for (int k = 0; k < instr->n_in; k++)
        RC_TRY(verify_read(s, is_written, &in[k], at, err));
    for (int k = 0; k < instr->n_out && is_backward; k++)
        RC_TRY(verify_read(s, is_written, &out[k], at, err));
    RC_TRY(verify_read(s, is_written, &instr->d_out, at, err));
    for (int k = 0; k < instr->n_out && !is_backward; k++)
        if (out[k].buffer >= 0)
            is_written[out[k].buffer] = true;
    for (int k = 0; k < instr->n_in; k++) {
        if (d_in[k].is_added)
            RC_TRY(verify_read(s, is_written, &d_in[k], at, err));
        if (d_in[k].buffer >= 0)
            is_written[d_in[k].buffer] = true;
    }
    return RC_OK;
}

rc_code rc_schedule_verify(const rc_schedule *schedule, rc_arena *mem, rc_error *err)
{
    bool *is_written;
    RC_TRY(RC_NEW(mem, &is_written, schedule->n_buffers, err));
    RC_TRY(verify_no_overlap(schedule, err));
    for (int i = 0; i < schedule->n_instrs; i++)
        RC_TRY(verify_instr(schedule, is_written, i, err));
    if (schedule->arena_bytes < schedule->bound_bytes)
        return BROKEN(err, "the arena is smaller than what lives in it");
    return RC_OK;
}

/* ---- printing ---- */

static const char *instr_subject(const rc_schedule *s, const rc_instr *instr,
                                 char buf[RC_GRAPH_NAME_BYTES])
{
    if (instr->kind == RC_INSTR_DISCARD)
        return rc_graph_tensor_name(s->graph, instr->tensor, buf);
    return instr->op >= 0 ? rc_graph_op_name(s->graph, instr->op, buf) : "all weights";
}

void rc_schedule_print(const rc_schedule *s, FILE *to)
{
    char name[RC_GRAPH_NAME_BYTES];
    fprintf(to,
            "schedule %s: %d instructions, arena %" PRId64 " bytes, bound %" PRId64
            " at instruction %d\n",
            s->policy->name, s->n_instrs, s->arena_bytes, s->bound_bytes, s->peak_instr);
    for (int i = 0; i < s->n_instrs; i++)
        fprintf(to, "%5d %-9s %-60s %" PRId64 "\n", i, rc_instr_kind_name(s->instrs[i].kind),
                instr_subject(s, &s->instrs[i], name), s->instrs[i].live_bytes);
    for (int i = 0; i < s->n_buffers; i++) {
        const rc_buffer *b = &s->buffers[i];
        fprintf(to, "buffer %5d %-20s [%d, %d] at %" PRId64 ", %" PRId64 " bytes: %s\n", i,
                rc_category_name(b->category), b->first, b->last, b->offset, b->bytes,
                b->tensor >= 0 ? rc_graph_tensor_name(s->graph, b->tensor, name) : "scratch");
    }
}

rc_code rc_schedule_table(const rc_schedule *s, rc_arena *mem, rc_table **out, rc_error *err)
{
    static const rc_column columns[] = {{"index", NULL, RC_UNIT_COUNT},
                                        {"kind", NULL, RC_UNIT_TEXT},
                                        {"subject", NULL, RC_UNIT_TEXT},
                                        {"flops", NULL, RC_UNIT_FLOPS},
                                        {"live_bytes", NULL, RC_UNIT_BYTES}};
    RC_TRY(rc_table_make(mem, "schedule", "instructions of one step", columns, 5, out, err));
    for (int i = 0; i < s->n_instrs; i++) {
        char buf[RC_GRAPH_NAME_BYTES];
        const char *subject;
        rc_cell *row;
        RC_TRY(rc_arena_printf(mem, &subject, err, "%s", instr_subject(s, &s->instrs[i], buf)));
        RC_TRY(rc_table_add_row(*out, &row, err));
        row[0] = rc_cell_int(i);
        row[1] = rc_cell_text(rc_instr_kind_name(s->instrs[i].kind));
        row[2] = rc_cell_text(subject);
        row[3] = rc_cell_int(s->instrs[i].flops);
        row[4] = rc_cell_int(s->instrs[i].live_bytes);
    }
    return RC_OK;
}
