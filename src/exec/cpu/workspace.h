/* workspace.h — the memory that the math library works in, taken from the run's own account.
 *
 * oneDNN's dnnl_sgemm packs its operands into blocks that it asks posix_memalign for in every call,
 * and gives them back before it returns; it offers no way to hand it memory. So the two entries of
 * its import table through which it asks and gives back lead here: while an op runs, its blocks come
 * out of the op's scratch, whose size the schedule planned (rc_op_facts.library_bytes). What it keeps
 * for good (code generators; never aligned to more than a cache line) comes out of half a MiB that is
 * taken when it is loaded.
 */
#ifndef RC_EXEC_CPU_WORKSPACE_H
#define RC_EXEC_CPU_WORKSPACE_H

#include <recompute/error.h>

enum { RC_WORKSPACE_BLOCKS = 1024, RC_WORKSPACE_OUTSIDE = 64 };

/* One op's working memory. Blocks are placed first fit; any thread may ask. */
typedef struct rc_workspace {
    char *at;
    int64_t bytes;
    struct {
        int64_t first, end;
    } live[RC_WORKSPACE_BLOCKS]; /* in order of their place */
    int n_live;
    int64_t most_bytes; /* the highest end of a block so far */
    /* What did not fit and came from the host: the blocks there are now, and the most they ever were at
     * one time. Past the end of the list a block counts as never given back. */
    struct {
        void *at;
        int64_t bytes;
    } outside[RC_WORKSPACE_OUTSIDE];
    int n_outside;
    int64_t live_outside_bytes, outside_bytes;
} rc_workspace;

/**
 * Leads the library's requests here; once for the process, any number of calls.
 *
 * takes   symbol  any function of the library
 * gives   false where its import table cannot be changed (not ELF, or it names no posix_memalign):
 *         it then takes its working memory from the host, beside the account
 */
bool rc_workspace_install(const void *symbol);

/* Between the two the library's working memory is `workspace`. One at a time in the process: a second
 * run's op waits. `leave` gives false when the library still holds a block: it then keeps memory that
 * is about to be used again. */
void rc_workspace_enter(rc_workspace *workspace);
bool rc_workspace_leave(rc_workspace *workspace);

/* What the library's two calls do; for tests. *out is NULL when neither place has room. */
void rc_workspace_take(size_t align, size_t bytes, void **out);
void rc_workspace_give(void *at);

#endif
