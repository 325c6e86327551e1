/* operands.c — shapes of every op's operands, filled and guarded. */
#include "operands.h"

#include "base/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 32, SCRATCH_GUARD_BYTES = 256 };
static const float guard_value = 1234567.0f;
static const unsigned char scratch_guard = 0xA5;

typedef struct shape {
    int64_t rows, width; /* width 0: no such operand */
    bool is_index;
} shape;

static shape in_shape(rc_op_kind kind, const rc_op_attr *a, int slot)
{
    const shape q = {a->n, a->a * a->d, false}, k = {a->n, a->g * a->d, false};
    const shape square = {1, a->b * a->a * a->s * a->s, false}, none = {0};
    const shape heads = {a->n, a->groups * a->d, false};
    const shape all[RC_OP_COUNT][RC_OP_MAX_IN] = {
        [RC_OP_embedding] = {{1, a->n, true}, {a->V, a->h, false}, {a->s, a->h, false}},
        [RC_OP_layernorm] = {{a->n, a->groups * a->h, false},
                             {1, a->h, false},
                             {1, a->h, false}},
        [RC_OP_rmsnorm] = {{a->n, a->groups * a->h, false}, {1, a->h, false}, none},
        [RC_OP_linear] = {{a->n, a->in, false}, {a->out, a->in, false}, {1, a->out, false}},
        [RC_OP_rope] = {heads, none, none},
        [RC_OP_attention] = {q, k, k},
        [RC_OP_attn_scores] = {q, k, none},
        [RC_OP_softmax] = {square, none, none},
        [RC_OP_dropout] = {{1, a->n_elem, false}, none, none},
        [RC_OP_attn_context] = {square, k, none},
        [RC_OP_bias_dropout_add] = {{a->n, a->h, false}, {a->n, a->h, false}, {1, a->h, false}},
        [RC_OP_activation] = {{a->n, a->is_gated ? 2 * a->f : a->f, false}, none, none},
        [RC_OP_cross_entropy] = {{a->n, a->V, false}, {1, a->n, true}, none},
        [RC_OP_contiguous] = {{a->n, a->h, false}, none, none},
    };
    return all[kind][slot];
}

static shape out_shape(rc_op_kind kind, const rc_op_attr *a, int slot)
{
    const shape q = {a->n, a->a * a->d, false};
    const shape square = {1, a->b * a->a * a->s * a->s, false}, none = {0};
    const shape heads = {a->n, a->groups * a->d, false};
    const shape row = {1, a->n * a->groups, false}, wide = {a->n, a->groups * a->h, false};
    const shape all[RC_OP_COUNT][RC_OP_MAX_OUT] = {
        [RC_OP_embedding] = {{a->n, a->h, false}, none, none},
        [RC_OP_layernorm] = {wide, row, row},
        [RC_OP_rmsnorm] = {wide, row, none},
        [RC_OP_linear] = {{a->n, a->out, false}, none, none},
        [RC_OP_rope] = {heads, none, none},
        [RC_OP_attention] = {q, {1, a->b * a->a * a->s, false}, none},
        [RC_OP_attn_scores] = {square, none, none},
        [RC_OP_softmax] = {square, none, none},
        [RC_OP_dropout] = {{1, a->n_elem, false}, none, none},
        [RC_OP_attn_context] = {q, none, none},
        [RC_OP_bias_dropout_add] = {{a->n, a->h, false}, none, none},
        [RC_OP_activation] = {{a->n, a->f, false}, none, none},
        [RC_OP_cross_entropy] = {{1, 1, false}, {1, a->n, false}, none},
        [RC_OP_contiguous] = {{a->n, a->h, false}, none, none},
    };
    return all[kind][slot];
}

static void *must_take(rc_arena *mem, int64_t bytes)
{
    void *at = NULL;
    if (rc_arena_take(mem, (size_t)bytes, 1, &at, NULL) != RC_OK) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return at;
}

static box box_make(const char *name, int slot, shape size, int64_t gap, rc_arena *mem)
{
    box b = {.rows = size.rows, .width = size.width};
    snprintf(b.name, sizeof b.name, "%s[%d]", name, slot);
    if (size.width == 0)
        return b;
    b.op.ld = size.width + (size.rows > 1 ? gap : 0);
    b.op.dtype = size.is_index ? RC_I32 : RC_F32;
    b.n_store = size.rows * b.op.ld + 2 * GUARD;
    b.store = must_take(mem, b.n_store * (int64_t)sizeof(float));
    b.op.at = b.store + GUARD;
    for (int64_t i = 0; i < b.n_store; i++)
        b.store[i] = guard_value;
    return b;
}

int64_t box_count(const box *a)
{
    return a->op.at ? a->rows * a->width : 0;
}

static float *element(const box *a, int64_t i)
{
    return (float *)a->op.at + i / a->width * a->op.ld + i % a->width;
}

double box_get(const box *a, int64_t i)
{
    return (double)*element(a, i);
}

void box_add(box *a, int64_t i, double x)
{
    *element(a, i) += (float)x;
}

/* Multiples of 2^-12 in [-1, 1): a small power of two can be added without rounding. */
static void box_fill(box *b, const op_case *at, uint32_t id)
{
    const rc_random random = {.seed = 42, .draw = (uint64_t)(at - op_cases), .id = id};
    const double magnitude = at->magnitude > 0 ? at->magnitude : 1;
    for (int64_t i = 0; i < box_count(b); i++) {
        uint32_t bits = rc_random_bits(&random, (uint64_t)i);
        if (b->op.dtype == RC_I32) {
            int32_t index = (int32_t)(bits % (uint32_t)at->attr.V);
            bool is_masked = at->kind == RC_OP_cross_entropy && (bits >> 16) % 4 == 0;
            ((int32_t *)b->op.at)[i] = is_masked ? -1 : index;
            continue;
        }
        double x = ((double)(bits >> 19) - 4096) / 4096;
        if (at->avoids_zero)
            x += x < 0 ? -0.25 : 0.25;
        *element(b, i) = (float)(x * magnitude);
    }
}

/* Backward of softmax and attention reads what forward wrote, so outputs are not filled here. */
op_set set_make(const op_case *at, rc_arena *mem)
{
    const rc_op_facts *facts = rc_op_find(at->kind);
    op_set set = {.at = at};
    for (int i = 0; i < RC_OP_MAX_IN; i++) {
        shape size = in_shape(at->kind, &at->attr, i);
        if (at->absent >> i & 1)
            size.width = 0;
        set.in[i] = box_make("in", i, size, at->gap, mem);
        box_fill(&set.in[i], at, (uint32_t)i);
        if (facts->grads >> i & 1)
            set.d_in[i] = box_make("d_in", i, size, at->gap, mem);
        box_fill(&set.d_in[i], at, 10 + (uint32_t)i);
    }
    for (int i = 0; i < RC_OP_MAX_OUT; i++)
        set.out[i] = box_make("out", i, out_shape(at->kind, &at->attr, i), at->gap, mem);
    if (at->kind != RC_OP_cross_entropy) {
        set.d_out = box_make("d_out", 0, out_shape(at->kind, &at->attr, 0), at->gap, mem);
        box_fill(&set.d_out, at, 20);
    }
    return set;
}

static void box_copy(box *to, const box *from)
{
    if (from->store)
        memcpy(to->store, from->store, (size_t)from->n_store * sizeof(float));
}

void set_copy(op_set *to, const op_set *from)
{
    for (int i = 0; i < RC_OP_MAX_IN; i++) {
        box_copy(&to->in[i], &from->in[i]);
        box_copy(&to->d_in[i], &from->d_in[i]);
    }
    for (int i = 0; i < RC_OP_MAX_OUT; i++)
        box_copy(&to->out[i], &from->out[i]);
    box_copy(&to->d_out, &from->d_out);
}

void set_is_added(op_set *set, bool is_added)
{
    for (int i = 0; i < RC_OP_MAX_IN; i++)
        set->d_in[i].op.is_added = is_added;
}

typedef int64_t (*scratch_question)(const rc_op_attr *attr, rc_dtype dtype, int n_threads);

/* Exactly what the facts ask for, poisoned with NaN, and a guard behind it. */
static rc_call call_open(op_set *set, scratch_question ask, int n_threads)
{
    rc_call call = {.attr = &set->at->attr, .n_threads = n_threads, .seed = 7, .draw = 3};
    for (int i = 0; i < RC_OP_MAX_IN; i++) {
        call.in[i] = set->in[i].op;
        call.d_in[i] = set->d_in[i].op;
    }
    for (int i = 0; i < RC_OP_MAX_OUT; i++)
        call.out[i] = set->out[i].op;
    call.d_out = set->d_out.op;
    set->scratch_bytes = ask ? ask(&set->at->attr, RC_F32, n_threads) : 0;
    size_t bytes = (size_t)set->scratch_bytes + SCRATCH_GUARD_BYTES;
    set->scratch = aligned_alloc(RC_ALIGN, (bytes + RC_ALIGN - 1) / RC_ALIGN * RC_ALIGN);
    memset(set->scratch, 0xFF, (size_t)set->scratch_bytes);
    memset(set->scratch + set->scratch_bytes, scratch_guard, SCRATCH_GUARD_BYTES);
    call.scratch = set->scratch_bytes ? set->scratch : NULL;
    return call;
}

static void call_close(op_set *set)
{
    for (int i = 0; i < SCRATCH_GUARD_BYTES; i++)
        if (set->scratch[set->scratch_bytes + i] != scratch_guard) {
            fprintf(stderr, "%s: scratch of %lld bytes was overrun\n", set->at->name,
                    (long long)set->scratch_bytes);
            exit(1);
        }
    free(set->scratch);
    set->scratch = NULL;
}

void run_fwd(const rc_backend *backend, op_set *set, int n_threads)
{
    rc_call call = call_open(set, rc_op_find(set->at->kind)->fwd_scratch_bytes, n_threads);
    backend->fwd[set->at->kind](&call);
    call_close(set);
}

void run_bwd(const rc_backend *backend, op_set *set, int n_threads)
{
    rc_call call = call_open(set, rc_op_find(set->at->kind)->bwd_scratch_bytes, n_threads);
    backend->bwd[set->at->kind](&call);
    call_close(set);
}

static bool box_guards_hold(const box *b)
{
    for (int64_t i = 0; i < b->n_store; i++) {
        int64_t at = i - GUARD;
        bool is_inside = at >= 0 && at < b->rows * b->op.ld && at % b->op.ld < b->width;
        if (!is_inside && b->store[i] != guard_value) {
            fprintf(stderr, "%s: guard at element %lld was overwritten\n", b->name,
                    (long long)at);
            return false;
        }
    }
    return true;
}

bool set_guards_hold(const op_set *set)
{
    bool is_held = box_guards_hold(&set->d_out);
    for (int i = 0; i < RC_OP_MAX_IN; i++)
        is_held = box_guards_hold(&set->in[i]) && box_guards_hold(&set->d_in[i]) && is_held;
    for (int i = 0; i < RC_OP_MAX_OUT; i++)
        is_held = box_guards_hold(&set->out[i]) && is_held;
    return is_held;
}

double box_difference(const box *a, const box *b)
{
    double most = 0, size = 1e-30;
    for (int64_t i = 0; i < box_count(b); i++) {
        double x = box_get(a, i), y = box_get(b, i);
        if (!isfinite(x) || !isfinite(y))
            return INFINITY;
        most = fmax(most, fabs(x - y));
        size = fmax(size, fabs(y));
    }
    return most / size;
}

bool box_same_bits(const box *a, const box *b)
{
    for (int64_t i = 0; i < box_count(b); i++)
        if (memcmp(element(a, i), element(b, i), sizeof(float)) != 0)
            return false;
    return true;
}
