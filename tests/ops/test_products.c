/* test_products.c — wrong products are found, right ones never: the check itself (gemm_check.h), over
 * shapes, forms and the faults that a library or a short team makes; and the memory that the library is
 * given to work in.
 */
#include "exec/cpu/gemm.h"
#include "exec/cpu/gemm_check.h"
#include "exec/cpu/team.h"
#include "exec/cpu/workspace.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 512 };

typedef struct fixture {
    float a[MOST * MOST], b[MOST * MOST], c[MOST * MOST];
    double room[10 * MOST];
} fixture;

/* Values of a product's operands: of both signs, all positive, or with a few large columns. */
typedef enum kind { SIGNED, POSITIVE, SPIKED, N_KINDS } kind;

static float draw(uint32_t *x, kind of)
{
    *x = *x * 1664525u + 1013904223u;
    float u = (float)(*x >> 8) / (float)(1u << 24);
    if (of == POSITIVE)
        return u;
    return of == SPIKED && *x % 97 == 0 ? 1000 * (u - 0.5f) : u - 0.5f;
}

static rc_gemm make(fixture *f, int form, const int64_t size[3], kind of)
{
    uint32_t x = (uint32_t)(size[0] * 31 + size[1] * 17 + size[2] + form);
    for (int64_t i = 0; i < (int64_t)MOST * MOST; i++) {
        f->a[i] = draw(&x, of);
        f->b[i] = draw(&x, of);
        f->c[i] = draw(&x, of);
    }
    rc_gemm g = {.is_a_transposed = form == 2,
                 .is_b_transposed = form == 0,
                 .m = size[0],
                 .n = size[1],
                 .k = size[2],
                 .alpha = form == 1 ? 0.125f : 1,
                 .beta = form == 2 ? 1 : 0,
                 .a = f->a,
                 .lda = MOST,
                 .b = f->b,
                 .ldb = MOST,
                 .c = f->c,
                 .ldc = MOST};
    assert_true(rc_gemm_check_room(g.m, g.n, g.k) <=
                (int64_t)(sizeof f->room / sizeof *f->room));
    return g;
}

static const int64_t sizes[][3] = {{1, 1, 1},     {1, 7, 300},  {300, 1, 7},    {17, 64, 1},
                                   {33, 47, 29},  {64, 64, 64}, {128, 300, 77}, {500, 500, 500},
                                   {512, 3, 512}, {2, 512, 511}};
enum { N_SIZES = sizeof sizes / sizeof *sizes };

static void right_products_pass(void **state)
{
    fixture *f = *state;
    for (int form = 0; form < 3; form++)
        for (int i = 0; i < N_SIZES; i++)
            for (int of = 0; of < N_KINDS; of++) {
                rc_gemm g = make(f, form, sizes[i], (kind)of);
                rc_gemm_check_begin(&g, f->room, 2);
                assert_int_equal(rc_gemm_run(&g, 2), RC_FAULT_NONE);
                if (!rc_gemm_check_end(&g, f->room, 2))
                    fail_msg("form %d, %d x %d x %d, kind %d", form, (int)g.m, (int)g.n,
                             (int)g.k, of);
            }
}

/* What can happen to a result. */
typedef enum damage {
    NOT_WRITTEN, /* all is as before, or whatever was there */
    HALF_ROWS,
    HALF_COLUMNS,
    ONE_ROW_ZERO,
    ONE_ELEMENT_STALE,
    ONE_ELEMENT_OFF, /* by a hundredth of a typical element */
    ADDED_TWICE,
    ONE_NAN,
    N_DAMAGES
} damage;

/* Elements from [first_row, first_column] on as they were before. */
static void put_back(const rc_gemm *g, const float *before, int64_t first_row,
                     int64_t first_column)
{
    for (int64_t i = first_row; i < g->m; i++)
        for (int64_t j = first_column; j < g->n; j++)
            g->c[i * g->ldc + j] = before[i * g->ldc + j];
}

static void harm(const rc_gemm *g, const float *before, damage what)
{
    float *last = g->c + (g->m - 1) * g->ldc + g->n - 1;
    switch (what) {
    case HALF_ROWS:
        put_back(g, before, g->m / 2, 0);
        break;
    case HALF_COLUMNS:
        put_back(g, before, 0, g->n / 2);
        break;
    case ONE_ROW_ZERO:
        memset(g->c + g->m / 2 * g->ldc, 0, (size_t)g->n * sizeof *g->c);
        break;
    case ONE_ELEMENT_STALE:
        put_back(g, before, g->m - 1, g->n - 1);
        break;
    case ONE_ELEMENT_OFF:
        *last += 0.01f * g->alpha * sqrtf((float)g->k);
        break;
    case ADDED_TWICE:
        for (int64_t i = 0; i < g->m; i++)
            for (int64_t j = 0; j < g->n; j++)
                g->c[i * g->ldc + j] *= 2;
        break;
    case ONE_NAN:
        g->c[g->m / 2 * g->ldc] = NAN;
        break;
    case NOT_WRITTEN:
    case N_DAMAGES:
    default:
        put_back(g, before, 0, 0);
    }
}

static void wrong_products_are_found(void **state)
{
    fixture *f = *state;
    float *before = malloc(sizeof f->c);
    assert_non_null(before);
    for (int form = 0; form < 3; form++)
        for (int i = 0; i < N_SIZES; i++)
            for (int what = 0; what < N_DAMAGES; what++) {
                rc_gemm g = make(f, form, sizes[i], SIGNED);
                memcpy(before, f->c, sizeof f->c);
                rc_gemm_check_begin(&g, f->room, 2);
                assert_int_equal(rc_gemm_run(&g, 2), RC_FAULT_NONE);
                harm(&g, before, (damage)what);
                if (rc_gemm_check_end(&g, f->room, 2))
                    fail_msg("form %d, %d x %d x %d: damage %d passes", form, (int)g.m,
                             (int)g.n, (int)g.k, what);
            }
    free(before);
}

/* ---- the workspace ---- */

typedef struct block {
    char *at;
    size_t bytes;
} block;

static void blocks_do_not_overlap_and_come_back(void **state)
{
    enum { N = 40 };
    block blocks[N];
    uint32_t x = 7;
    rc_workspace *w = calloc(1, sizeof *w);
    char *room = aligned_alloc(64, 1 << 20);
    (void)state;
    assert_true(w && room);
    w->at = room + 64; /* not at a page, as in an arena */
    w->bytes = (1 << 20) - 64;
    rc_workspace_enter(w);
    for (int round = 0; round < 200; round++) {
        for (int i = 0; i < N; i++) {
            void *at;
            x = x * 1664525u + 1013904223u;
            size_t align = x >> 16 & 1 ? 4096 : 128;
            blocks[i].bytes = 1 + x % 9000;
            rc_workspace_take(align, blocks[i].bytes, &at);
            blocks[i].at = at;
            assert_true((char *)at >= w->at &&
                        (char *)at + blocks[i].bytes <= w->at + w->bytes);
            assert_int_equal((uintptr_t)at % align, 0);
            for (int k = 0; k < i; k++)
                assert_true(blocks[k].at + blocks[k].bytes <= (char *)at ||
                            (char *)at + blocks[i].bytes <= blocks[k].at);
        }
        for (int i = 0; i < N; i++)
            rc_workspace_give(blocks[(i * 7) % N].at);
        assert_int_equal(w->n_live, 0);
    }
    assert_int_equal(w->outside_bytes, 0);
    assert_true(rc_workspace_leave(w));
    free(room);
    free(w);
}

static void what_does_not_fit_comes_from_the_host_and_is_counted(void **state)
{
    void *inside, *outside, *kept;
    rc_workspace *w = calloc(1, sizeof *w);
    (void)state;
    assert_non_null(w);
    w->bytes = 8192;
    w->at = aligned_alloc(4096, (size_t)w->bytes);
    assert_non_null(w->at);
    rc_workspace_enter(w);
    rc_workspace_take(128, 8192, &inside);
    rc_workspace_take(128, 5000, &outside);
    rc_workspace_take(64, 100, &kept); /* is no working memory: counts nowhere */
    assert_ptr_equal(inside, w->at);
    assert_true(outside && ((char *)outside < w->at || (char *)outside >= w->at + w->bytes));
    assert_int_equal(w->outside_bytes, 5000);
    assert_int_equal(w->most_bytes, 8192);
    rc_workspace_give(outside);
    rc_workspace_take(128, 5000, &outside); /* one after the other: not both at one time */
    rc_workspace_give(outside);
    assert_int_equal(w->outside_bytes, 5000);
    rc_workspace_give(kept);
    assert_false(rc_workspace_leave(w)); /* one block was not given back */
    rc_workspace_enter(w);
    assert_true(rc_workspace_leave(w));
    free(w->at);
    free(w);
}

/* ---- a host without memory ---- */

static bool
    is_refusing; /* what is aligned to more than a cache line: the library's working memory */

/* In the place of the C library's, for this program. */
RC_API int posix_memalign(void **out, size_t align, size_t bytes);
RC_API int posix_memalign(void **out, size_t align, size_t bytes)
{
    if (is_refusing && align > 64)
        return ENOMEM;
    *out = aligned_alloc(align, (bytes + align - 1) / align * align);
    return *out ? 0 : ENOMEM;
}

/* The library without a workspace and a host that refuses: a fault is told, or the product is right. */
static void a_refused_product_is_told(void **state)
{
    fixture *f = *state;
    int n_faults = 0;
    for (int form = 0; form < 3; form++)
        for (int i = 0; i < N_SIZES; i++)
            for (int n_threads = 1; n_threads <= 2; n_threads++) {
                rc_gemm g = make(f, form, sizes[i], SIGNED);
                rc_fault fault = {0};
                rc_call call = {.fault = &fault, .check = f->room};
                is_refusing = true;
                rc_gemm_call(&call, &g, n_threads);
                is_refusing = false;
                if (fault.kind == RC_FAULT_NONE)
                    continue; /* and the check has passed */
                assert_int_equal(fault.kind, RC_FAULT_LIBRARY_MEMORY);
                n_faults++;
            }
    if (rc_gemm_has_workspace())
        assert_true(n_faults > 0); /* else nothing was tried here */
}

static int open_library(void **state)
{
    *state = malloc(sizeof(fixture));
    return *state && rc_team_open(2, NULL) == RC_OK && rc_gemm_open(2, NULL) == RC_OK ? 0 : -1;
}

static int close_library(void **state)
{
    free(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_products_pass),
        cmocka_unit_test(wrong_products_are_found),
        cmocka_unit_test(blocks_do_not_overlap_and_come_back),
        cmocka_unit_test(a_refused_product_is_told),
        cmocka_unit_test(what_does_not_fit_comes_from_the_host_and_is_counted),
    };
    return cmocka_run_group_tests(tests, open_library, close_library);
}
