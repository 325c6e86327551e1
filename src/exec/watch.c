/* watch.c — what kernels really write.
 *
 * takes  an instruction before and after its kernel ran
 * gives  an error for elements that it left unwritten; else how far into the arena it reached
 *
 * Before an instruction of the first micro-batch every element it must write gets MARK, a NaN that no
 * arithmetic produces. What still holds it afterwards was not written. So "touched" rests on bytes
 * that changed under a kernel, not on the plan: a build without kernel calls fails here. Outputs that
 * stand in the place of an operand, and gradients that are added to, cannot be marked; the
 * products among these are checked by number (gemm_check.h). Scratch counts as far as it is
 * reserved, once its op wrote its outputs: how much of it is written depends on which thread took
 * which block.
 */
#include "exec/watch.h"

#include "exec/cpu/gemm_check.h"

#include <inttypes.h>
#include <string.h>

enum { MARK_BYTE = 0xFF };

/* One output: rows of `width` bytes, `step` bytes apart. */
typedef struct target {
    unsigned char *at;
    int64_t rows, width, step;
    int element_bytes;
    bool is_marked; /* else only its place counts */
} target;

enum { MOST_TARGETS = RC_OP_MAX_IN > RC_OP_MAX_OUT ? RC_OP_MAX_IN : RC_OP_MAX_OUT };

static bool is_read(const rc_schedule *schedule, const rc_instr *instr, int buffer)
{
    bool is_backward = instr->kind == RC_INSTR_BACKWARD;
    for (int k = 0; k < instr->n_in; k++)
        if (rc_instr_in(schedule, instr)[k].buffer == buffer)
            return true;
    for (int k = 0; k < instr->n_out && is_backward; k++)
        if (rc_instr_out(schedule, instr)[k].buffer == buffer)
            return true;
    return is_backward && instr->d_out.buffer == buffer;
}

/* What the instruction writes; gives their number. */
static int list_targets(const rc_run *run, const rc_instr *instr, target out[MOST_TARGETS])
{
    const rc_schedule *schedule = run->schedule;
    const rc_op op = rc_graph_op(schedule->graph, instr->op);
    const bool is_backward = instr->kind == RC_INSTR_BACKWARD;
    const rc_ref *refs =
        is_backward ? rc_instr_d_in(schedule, instr) : rc_instr_out(schedule, instr);
    int n = 0;
    for (int k = 0; k < (is_backward ? instr->n_in : instr->n_out); k++) {
        const rc_ref *ref = &refs[k];
        if (ref->buffer < 0)
            continue;
        const rc_tensor tensor =
            rc_graph_tensor(schedule->graph, is_backward ? op.in[k] : op.out[k]);
        const int64_t bytes = rc_dtype_bytes(ref->dtype);
        out[n++] = (target){
            .at = (unsigned char *)rc_run_at(run, ref->buffer) + ref->offset * bytes,
            .rows = tensor.rows,
            .width = tensor.n_elem / tensor.rows * bytes,
            .step = tensor.ld * bytes,
            .element_bytes = (int)bytes,
            .is_marked = !ref->is_added && !is_read(schedule, instr, ref->buffer),
        };
    }
    return n;
}

/* A linear op's products run one after another on all threads: y, dx, dw. */
static int64_t linear_room(const rc_op_attr *attr)
{
    const int64_t rooms[] = {rc_gemm_check_room(attr->n, attr->out, attr->in),
                             rc_gemm_check_room(attr->n, attr->in, attr->out),
                             rc_gemm_check_room(attr->out, attr->in, attr->n)};
    int64_t most = 0;
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++)
        most = rooms[i] > most ? rooms[i] : most;
    return most;
}

rc_code rc_watch_open(rc_run *run, rc_error *err)
{
    const rc_graph *graph = run->schedule->graph;
    int64_t most = 0;
    for (int i = 0; i < graph->n_ops; i++) {
        const rc_op op = rc_graph_op(graph, i);
        const rc_op_attr *attr = &op.attr;
        /* Each thread has a head's products, [s,s] over d or [s,d] over s; none is larger than this. */
        const int64_t head_room =
            rc_gemm_check_room(attr->s, attr->s + attr->d, attr->s + attr->d);
        if (!op.facts->library_bytes)
            continue;
        if (op.kind == RC_OP_linear)
            most = linear_room(attr) > most ? linear_room(attr) : most;
        else if (head_room > run->check_room)
            run->check_room = head_room;
    }
    const int64_t heads_room = run->check_room * run->schedule->n_threads;
    return RC_NEW(run->mem, &run->check, most > heads_room ? most : heads_room, err);
}

void rc_watch_before(rc_run *run, const rc_instr *instr)
{
    target targets[MOST_TARGETS];
    const int n = list_targets(run, instr, targets);
    for (int i = 0; i < n; i++)
        for (int64_t r = 0; targets[i].is_marked && r < targets[i].rows; r++)
            memset(targets[i].at + r * targets[i].step, MARK_BYTE, (size_t)targets[i].width);
}

RC_CLONES static int64_t count_words(const uint32_t *words, int64_t n)
{
    int64_t n_marked = 0;
#pragma omp simd reduction(+ : n_marked)
    for (int64_t i = 0; i < n; i++)
        n_marked += words[i] == UINT32_MAX;
    return n_marked;
}

/* Elements of one row that still hold the mark. What the engine computes in has four bytes. */
static int64_t count_marked(const unsigned char *row, int64_t width, int element_bytes)
{
    static const unsigned char mark[8] = {MARK_BYTE, MARK_BYTE, MARK_BYTE, MARK_BYTE,
                                          MARK_BYTE, MARK_BYTE, MARK_BYTE, MARK_BYTE};
    int64_t n = 0;
    if (element_bytes == 4)
        return count_words((const void *)row, width / 4);
    for (int64_t i = 0; i < width; i += element_bytes)
        n += memcmp(row + i, mark, (size_t)element_bytes) == 0;
    return n;
}

static void touch(rc_run *run, const void *end)
{
    int64_t bytes = (const char *)end - run->arena;
    bytes = (bytes + RC_ALIGN - 1) / RC_ALIGN * RC_ALIGN;
    if (bytes > run->touched_bytes)
        run->touched_bytes = bytes;
}

void rc_watch_scratch(rc_run *run, int buffer)
{
    if (buffer >= 0)
        touch(run, (char *)rc_run_at(run, buffer) + run->schedule->buffers[buffer].bytes);
}

rc_code rc_watch_after(rc_run *run, const rc_instr *instr, rc_error *err)
{
    const rc_schedule *s = run->schedule;
    target targets[MOST_TARGETS];
    char name[RC_GRAPH_NAME_BYTES];
    const int n = list_targets(run, instr, targets);
    for (int i = 0; i < n; i++) {
        const target *t = &targets[i];
        int64_t n_unwritten = 0;
        for (int64_t r = 0; t->is_marked && r < t->rows; r++)
            n_unwritten += count_marked(t->at + r * t->step, t->width, t->element_bytes);
        if (n_unwritten > 0)
            return RC_FAIL(err, RC_E_BUG, RC_NOWHERE,
                           "%s of %s left %" PRId64 " of the %" PRId64
                           " elements that it must write untouched (backend %s)",
                           rc_instr_kind_name(instr->kind),
                           rc_graph_op_name(s->graph, instr->op, name), n_unwritten,
                           t->rows * t->width / t->element_bytes, run->backend->name);
        touch(run, t->at + (t->rows - 1) * t->step + t->width);
    }
    rc_watch_scratch(run, instr->scratch);
    return RC_OK;
}
