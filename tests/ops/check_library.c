/* check_library.c — the math library works inside the scratch that the facts reserve for it, and takes
 * nothing from the host.
 *
 * Exits 77 (skipped) where its requests cannot be seen. The host's part is counted by standing in
 * for malloc, which needs glibc and no sanitizer.
 */
#include "../sanitized.h"
#include "exec/cpu/gemm.h"
#include "exec/cpu/team.h"
#include "exec/cpu/workspace.h"

#include <recompute/op.h>

#include <omp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(__GLIBC__) && defined(RC_GEMM_DNNL) && !(RC_IS_SANITIZED)
#include <errno.h>
#include <malloc.h>

void *__libc_malloc(size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);
void __libc_free(void *at);
RC_API int posix_memalign(void **to, size_t align, size_t bytes); /* POSIX hides it from C11 */

static atomic_llong live_bytes, most_bytes;

static void *count(void *at)
{
    long long now = at ? (long long)malloc_usable_size(at) : 0;
    now += atomic_fetch_add(&live_bytes, now);
    long long most = atomic_load(&most_bytes);
    while (now > most && !atomic_compare_exchange_weak(&most_bytes, &most, now))
        continue;
    return at;
}

RC_API void *malloc(size_t bytes)
{
    return count(__libc_malloc(bytes));
}

RC_API void *aligned_alloc(size_t align, size_t bytes)
{
    return count(__libc_memalign(align, bytes));
}

RC_API int posix_memalign(void **to, size_t align, size_t bytes)
{
    *to = count(__libc_memalign(align, bytes));
    return *to ? 0 : ENOMEM;
}

RC_API void free(void *at)
{
    if (at)
        atomic_fetch_sub(&live_bytes, (long long)malloc_usable_size(at));
    __libc_free(at);
}

static long long start_counting(void)
{
    const long long now = atomic_load(&live_bytes);
    atomic_store(&most_bytes, now);
    return now;
}

static long long most_counted(void)
{
    return atomic_load(&most_bytes);
}
#else
static long long start_counting(void)
{
    return 0;
}

static long long most_counted(void)
{
    return 0;
}
#endif

/* The runtime of OpenMP keeps a few words about a team whose size changes. */
enum { OPENMP_BYTES = 1024 };

typedef struct product_form {
    bool is_a_transposed, is_b_transposed;
    int64_t m, n, k;
} product_form;

/* One product inside a workspace; gives how much of it the library had. */
static long long worked_in(const product_form *form, float *at, int n_threads,
                           rc_workspace *workspace)
{
    rc_gemm gemm = {.is_a_transposed = form->is_a_transposed,
                    .is_b_transposed = form->is_b_transposed,
                    .m = form->m,
                    .n = form->n,
                    .k = form->k,
                    .alpha = 1,
                    .a = at,
                    .lda = form->is_a_transposed ? form->m : form->k,
                    .b = at,
                    .ldb = form->is_b_transposed ? form->k : form->n,
                    .c = at + form->m * form->k + form->k * form->n,
                    .ldc = form->n};
    workspace->most_bytes = 0;
    rc_workspace_enter(workspace);
    const rc_fault_kind fault = rc_gemm_run(&gemm, n_threads);
    const bool is_empty = rc_workspace_leave(workspace);
    return fault == RC_FAULT_NONE && is_empty ? workspace->most_bytes : INT64_MAX;
}

int main(void)
{
    static const int64_t sizes[][3] = {{256, 384, 1152}, {256, 384, 384}, {256, 1536, 384},
                                       {64, 384, 12000}, {512, 64, 64},   {33, 51, 29}};
    const rc_op_facts *facts = rc_op_find(RC_OP_linear);
    float *at = calloc((size_t)8 << 20, sizeof *at);
    rc_workspace *workspace = calloc(1, sizeof *workspace);
    int n_failures = 0;
    long long any = 0; /* nothing asked for at all would mean that the library asks elsewhere */
    if (!at || !workspace || rc_team_open(2, NULL) != RC_OK || rc_gemm_open(2, NULL) != RC_OK)
        return 1;
    if (!rc_gemm_has_workspace()) {
        printf("skipped: the math library's requests cannot be led into a workspace here\n");
        return 77;
    }
    workspace->bytes = (int64_t)64 << 20;
    workspace->at = aligned_alloc(4096, (size_t)workspace->bytes);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0] && workspace->at; i++)
        for (int n_threads = 1; n_threads <= 2; n_threads++) {
            const int64_t n = sizes[i][0], in = sizes[i][1], out = sizes[i][2];
            const rc_op_attr attr = {.n = n, .in = in, .out = out};
            const product_form forms[3] = {{false, true, n, out, in},
                                           {false, false, n, in, out},
                                           {true, false, out, in, n}};
            long long most = 0, stated = facts->library_bytes(&attr, n_threads);
            const long long before = start_counting();
            for (int form = 0; form < 3; form++) {
                long long taken = worked_in(&forms[form], at, n_threads, workspace);
                most = taken > most ? taken : most;
            }
            const long long from_host = most_counted() - before; /* printf takes its own */
            printf("%lld x %lld x %lld, %d threads: %lld of %lld bytes, %lld from the host\n",
                   (long long)n, (long long)in, (long long)out, n_threads, most, stated,
                   from_host);
            n_failures += most > stated || from_host > OPENMP_BYTES;
            any += most;
        }
    printf("%lld bytes beside the workspace\n", (long long)workspace->outside_bytes);
    n_failures += workspace->outside_bytes > 0;
    free(workspace->at);
    free(workspace);
    free(at);
    return n_failures > 0 || any == 0;
}
