/* check_ops.c — every op of ops.def: `check_ops OP naive|grad|recompute`.
 *
 *   naive      the CPU kernel agrees with the plain loops within the op's own tolerance, forward
 *              and every gradient, added to or overwritten, and writes nothing else
 *   grad       the plain loops' gradient is the derivative of their forward (central differences)
 *   recompute  the same call gives the same bits: again, on other thread counts, in place, and
 *              with only one gradient wanted
 */
#include "exec/cpu/gemm.h"
#include "operands.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int n_failures;

static void fail(const op_case *at, const char *what, const box *b, double value)
{
    fprintf(stderr, "%s, case '%s': %s %s (%.3g)\n", rc_op_find(at->kind)->name, at->name, what,
            b ? b->name : "", value);
    n_failures++;
}

static double worst; /* over a run, printed: how much of the tolerance is used */

static void must_agree(const op_case *at, const box *a, const box *b)
{
    double difference = box_difference(a, b);
    worst = fmax(worst, difference);
    if (!(difference <= rc_op_find(at->kind)->tolerance))
        fail(at, "differs from the plain loops:", a, difference);
}

static void check_naive(const op_case *at, rc_arena *mem)
{
    op_set fresh = set_make(at, mem), fast = set_make(at, mem), plain = set_make(at, mem);
    for (int is_added = 0; is_added < 2; is_added++) {
        set_copy(&fast, &fresh);
        set_copy(&plain, &fresh);
        set_is_added(&fast, is_added);
        set_is_added(&plain, is_added);
        run_fwd(&rc_backend_cpu, &fast, 2);
        run_fwd(&rc_backend_naive, &plain, 2);
        for (int i = 0; i < RC_OP_MAX_OUT; i++)
            must_agree(at, &fast.out[i], &plain.out[i]);
        if (!set_guards_hold(&fast))
            fail(at, "forward wrote outside its operands", NULL, 0);
        set_copy(&plain, &fast); /* both backwards read the same numbers */
        run_bwd(&rc_backend_cpu, &fast, 2);
        run_bwd(&rc_backend_naive, &plain, 2);
        for (int i = 0; i < RC_OP_MAX_IN; i++) {
            must_agree(at, &fast.d_in[i], &plain.d_in[i]);
            if (!box_same_bits(&fast.in[i], &fresh.in[i]))
                fail(at, "an input was changed:", &fast.in[i], 0);
        }
        if (!box_same_bits(&fast.d_out, &fresh.d_out))
            fail(at, "the output's gradient was changed", NULL, 0);
        if (!set_guards_hold(&fast))
            fail(at, "backward wrote outside its operands", NULL, 0);
    }
}

/* The number whose gradient backward is: out[0] times d_out. */
static double objective(op_set *set)
{
    double sum = 0;
    run_fwd(&rc_backend_naive, set, 1);
    if (set->at->kind == RC_OP_cross_entropy)
        return box_get(&set->out[0], 0) * set->at->attr.loss_scale;
    for (int64_t e = 0; e < box_count(&set->out[0]); e++)
        sum += box_get(&set->out[0], e) * box_get(&set->d_out, e);
    return sum;
}

/* Element e's part of direction k: all elements, or one of them. */
static double direction(int k, int64_t e, int64_t n)
{
    if (k >= 4)
        return e == (int64_t)k * 7919 % n;
    return (e * 2654435761 + k * 40503) % 64 < 32 ? -1 : 1;
}

static double shifted(op_set *set, int slot, int k, double by)
{
    const int64_t n = box_count(&set->in[slot]);
    for (int64_t e = 0; e < n; e++)
        box_add(&set->in[slot], e, by * direction(k, e, n));
    double value = objective(set);
    for (int64_t e = 0; e < n; e++)
        box_add(&set->in[slot], e, -by * direction(k, e, n));
    return value;
}

/* Central differences at h and 2 h, so that the error is of order h^4. */
static void check_slot(op_set *set, int slot)
{
    const double h = 1.0 / 64;
    const int64_t n = box_count(&set->in[slot]);
    double length = 0;
    for (int64_t e = 0; e < n; e++)
        length += pow(box_get(&set->d_in[slot], e), 2);
    for (int k = 0; k < 10; k++) {
        double exact = 0;
        for (int64_t e = 0; e < n; e++)
            exact += box_get(&set->d_in[slot], e) * direction(k, e, n);
        double d1 = shifted(set, slot, k, h) - shifted(set, slot, k, -h);
        double d2 = shifted(set, slot, k, 2 * h) - shifted(set, slot, k, -2 * h);
        double numeric = (8 * d1 - d2) / (12 * h);
        double off = fabs(numeric - exact) / (sqrt(length) + fabs(exact) + 1e-3);
        worst = fmax(worst, off);
        if (!(off < 5e-4))
            fail(set->at, "the gradient is not the derivative:", &set->d_in[slot], off);
    }
}

static void check_grad(const op_case *at, rc_arena *mem)
{
    op_set set = set_make(at, mem);
    /* Differences of steep functions need inputs that are not saturated. */
    if (at->magnitude > 7)
        return;
    run_fwd(&rc_backend_naive, &set, 1);
    run_bwd(&rc_backend_naive, &set, 1);
    for (int slot = 0; slot < RC_OP_MAX_IN; slot++)
        if (set.d_in[slot].op.at)
            check_slot(&set, slot);
}

static void must_be_same(const op_set *a, const op_set *b, const char *what)
{
    for (int i = 0; i < RC_OP_MAX_OUT; i++)
        if (a->out[i].op.at && !box_same_bits(&a->out[i], &b->out[i]))
            fail(a->at, what, &a->out[i], box_difference(&a->out[i], &b->out[i]));
    for (int i = 0; i < RC_OP_MAX_IN; i++)
        if (a->d_in[i].op.at && !box_same_bits(&a->d_in[i], &b->d_in[i]))
            fail(a->at, what, &a->d_in[i], box_difference(&a->d_in[i], &b->d_in[i]));
}

static void run_both(op_set *set, const op_set *fresh, int n_threads)
{
    set_copy(set, fresh);
    run_fwd(&rc_backend_cpu, set, n_threads);
    run_bwd(&rc_backend_cpu, set, n_threads);
}

static void check_in_place(const op_set *fresh, const op_set *once, rc_arena *mem)
{
    const op_case *at = fresh->at;
    const rc_op_facts *facts = rc_op_find(at->kind);
    op_set set = set_make(at, mem);
    for (int i = 0; i < RC_OP_MAX_OUT; i++) {
        if (!(facts->in_place >> i & 1))
            continue;
        set_copy(&set, fresh);
        box apart = set.out[i];
        set.out[i] = set.in[i];
        run_fwd(&rc_backend_cpu, &set, 2);
        if (!box_same_bits(&set.in[i], &once->out[i]))
            fail(at, "forward in place differs:", &set.out[i], 0);
        set.out[i] = apart;
    }
    for (int i = 0; i < RC_OP_MAX_IN; i++) {
        if (!(facts->grad_in_place >> i & 1))
            continue;
        set_copy(&set, once);
        box *home = at->kind == RC_OP_cross_entropy ? &set.in[0] : &set.d_out;
        box apart = set.d_in[i];
        set.d_in[i].op.at = home->op.at;
        set.d_in[i].store = home->store;
        run_bwd(&rc_backend_cpu, &set, 2);
        must_be_same(&set, once, "backward in place differs:");
        set.d_in[i] = apart;
    }
}

static void check_recompute(const op_case *at, rc_arena *mem)
{
    op_set fresh = set_make(at, mem), once = set_make(at, mem), again = set_make(at, mem);
    run_both(&once, &fresh, 2);
    for (int i = 0; i < 3; i++) {
        run_both(&again, &fresh, 2);
        must_be_same(&again, &once, "the same call gave other bits:");
    }
    /* OpenBLAS sums in another order at another thread count; the laws ask for a fixed one only. */
    bool is_any_count = strcmp(rc_gemm_name(), "oneDNN") == 0 || at->kind != RC_OP_linear;
    for (int n_threads = 1; n_threads <= 3 && is_any_count; n_threads += 2) {
        run_both(&again, &fresh, n_threads);
        must_be_same(&again, &once, "another thread count gave other bits:");
    }
    for (int only = 0; only < RC_OP_MAX_IN; only++) {
        set_copy(&again, &once);
        op_set part = again;
        for (int i = 0; i < RC_OP_MAX_IN; i++)
            if (i != only)
                part.d_in[i].op.at = NULL;
        if (!part.d_in[only].op.at)
            continue;
        run_bwd(&rc_backend_cpu, &part, 2);
        must_be_same(&part, &once, "one gradient alone differs:");
    }
    check_in_place(&fresh, &once, mem);
}

static int usage(void)
{
    fprintf(stderr, "usage: check_ops OP naive|grad|recompute\n");
    return 2;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*check)(const op_case *at, rc_arena *mem);
    } checks[] = {{"naive", check_naive}, {"grad", check_grad}, {"recompute", check_recompute}};
    int n_run = 0;
    if (argc != 3)
        return usage();
    if (rc_gemm_open(1, NULL) != RC_OK)
        return 1;
    for (size_t c = 0; c < sizeof checks / sizeof checks[0]; c++)
        for (int i = 0; i < n_op_cases; i++) {
            if (strcmp(argv[2], checks[c].name) != 0 ||
                strcmp(argv[1], rc_op_find(op_cases[i].kind)->name) != 0)
                continue;
            rc_arena *mem = rc_arena_open();
            checks[c].check(&op_cases[i], mem);
            rc_arena_close(mem);
            n_run++;
        }
    printf("%s %s: %d cases, worst difference %.2g\n", argv[1], argv[2], n_run, worst);
    if (n_run == 0)
        return usage();
    return n_failures > 0;
}
