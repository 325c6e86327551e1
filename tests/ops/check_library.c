/* check_library.c — what the math library takes by itself stays under library_bytes of the facts.
 *
 * Counts malloc by standing in for it, which needs glibc and no sanitizer; else exits 77 (skipped).
 */
#include "exec/cpu/gemm.h"

#include <recompute/op.h>

#include <omp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* clang tells of its sanitizers in another way than gcc */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED 1
#elif defined(__has_feature)
#define IS_SANITIZED __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#else
#define IS_SANITIZED 0
#endif

#if defined(__GLIBC__) && defined(RC_GEMM_DNNL) && !(IS_SANITIZED)
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

typedef struct product_form {
    bool is_a_transposed, is_b_transposed;
    int64_t m, n, k;
} product_form;

static long long taken_bytes(const product_form *form, float *at, int n_threads)
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
    rc_gemm_run(&gemm, n_threads); /* the first makes code */
    const long long before = atomic_load(&live_bytes);
    atomic_store(&most_bytes, before);
    rc_gemm_run(&gemm, n_threads);
    return atomic_load(&most_bytes) - before;
}

int main(void)
{
    static const int64_t sizes[][3] = {{256, 384, 1152}, {256, 384, 384}, {256, 1536, 384},
                                       {64, 384, 12000}, {512, 64, 64},   {33, 51, 29}};
    const rc_op_facts *facts = rc_op_find(RC_OP_linear);
    float *at = calloc((size_t)8 << 20, sizeof *at);
    int n_failures = 0;
    long long any = 0; /* nothing counted at all would mean that malloc was not replaced */
    if (!at || rc_gemm_open(NULL) != RC_OK)
        return 1;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int n_threads = 1; n_threads <= 2; n_threads++) {
            const int64_t n = sizes[i][0], in = sizes[i][1], out = sizes[i][2];
            const rc_op_attr attr = {.n = n, .in = in, .out = out};
            const product_form forms[3] = {{false, true, n, out, in},
                                           {false, false, n, in, out},
                                           {true, false, out, in, n}};
            long long most = 0, stated = facts->library_bytes(&attr, n_threads);
            for (int form = 0; form < 3; form++) {
                long long taken = taken_bytes(&forms[form], at, n_threads);
                most = taken > most ? taken : most;
            }
            printf("%lld x %lld x %lld, %d threads: %lld of %lld bytes\n", (long long)n,
                   (long long)in, (long long)out, n_threads, most, stated);
            n_failures += most > stated;
            any += most;
        }
    free(at);
    return n_failures > 0 || any == 0;
}
#else
int main(void)
{
    printf("skipped: needs glibc, oneDNN and no sanitizer\n");
    return 77;
}
#endif
