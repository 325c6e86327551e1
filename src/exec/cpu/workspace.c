/* workspace.c — the math library's working memory out of an op's scratch. */
#define _GNU_SOURCE /* dladdr1 */
#include "exec/cpu/workspace.h"

#include "base/num.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* What the library keeps for good it asks for with this alignment, and what it works in with more. It
 * keeps about 75 KB, and crashes where it is refused any: so that much is taken beforehand. */
enum { MOST_KEPT_ALIGN = 64, KEPT_BYTES = 512 << 10 };

/* `turn` is held while an op has the library; `lock` while the list of blocks changes. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER, lock = PTHREAD_MUTEX_INITIALIZER;
static rc_workspace *_Atomic current;
static struct {
    char *at; /* [KEPT_BYTES], for the life of the process */
    size_t n_bytes;
} kept;

/* ---- blocks ---- */

/* First fit: the list is short (a block or two a thread) and in order of place. */
static void *place(rc_workspace *w, size_t align, int64_t bytes)
{
    const uintptr_t base = (uintptr_t)w->at;
    int64_t first = 0;
    int i = 0;
    if (w->n_live == RC_WORKSPACE_BLOCKS)
        return NULL;
    for (;; i++) {
        first = (int64_t)((base + (uintptr_t)first + align - 1) / align * align - base);
        int64_t end = i < w->n_live ? w->live[i].first : w->bytes;
        if (bytes <= end - first)
            break;
        if (i == w->n_live)
            return NULL;
        first = w->live[i].end;
    }
    memmove(&w->live[i + 1], &w->live[i], (size_t)(w->n_live - i) * sizeof w->live[0]);
    w->live[i].first = first;
    w->live[i].end = first + bytes;
    w->n_live++;
    if (first + bytes > w->most_bytes)
        w->most_bytes = first + bytes;
    return w->at + first;
}

/* Never given back: the library's code is made once. */
static void *keep(size_t bytes)
{
    void *at = NULL;
    pthread_mutex_lock(&lock);
    if (kept.at && bytes <= KEPT_BYTES - kept.n_bytes) {
        at = kept.at + kept.n_bytes;
        kept.n_bytes += (bytes + MOST_KEPT_ALIGN - 1) / MOST_KEPT_ALIGN * MOST_KEPT_ALIGN;
    }
    pthread_mutex_unlock(&lock);
    return at;
}

/* Notes a block of working memory that the host gave. */
static void count_outside(rc_workspace *w, void *at, int64_t bytes)
{
    w->live_outside_bytes += bytes;
    if (w->live_outside_bytes > w->outside_bytes)
        w->outside_bytes = w->live_outside_bytes;
    if (w->n_outside < RC_WORKSPACE_OUTSIDE) {
        w->outside[w->n_outside].at = at;
        w->outside[w->n_outside++].bytes = bytes;
    }
}

void rc_workspace_take(size_t align, size_t bytes, void **out)
{
    rc_workspace *w = atomic_load(&current);
    const bool is_work = align > MOST_KEPT_ALIGN && w && bytes <= INT64_MAX / 2;
    *out = align <= MOST_KEPT_ALIGN ? keep(bytes) : NULL;
    if (is_work) {
        pthread_mutex_lock(&lock);
        *out = place(w, align, (int64_t)bytes);
        pthread_mutex_unlock(&lock);
    }
    if (*out)
        return;
    if (posix_memalign(out, align, bytes) != 0) {
        *out = NULL;
        return;
    }
    if (is_work) {
        pthread_mutex_lock(&lock);
        count_outside(w, *out, (int64_t)bytes);
        pthread_mutex_unlock(&lock);
    }
}

/* Takes a block off the list of its kind. */
static void forget(rc_workspace *w, const void *at)
{
    for (int i = 0; i < w->n_live; i++) {
        if (w->at + w->live[i].first != at)
            continue;
        w->n_live--;
        memmove(&w->live[i], &w->live[i + 1], (size_t)(w->n_live - i) * sizeof w->live[0]);
        return;
    }
    for (int i = 0; i < w->n_outside; i++) {
        if (w->outside[i].at != at)
            continue;
        w->live_outside_bytes -= w->outside[i].bytes;
        w->outside[i] = w->outside[--w->n_outside];
        return;
    }
}

static bool is_within(const void *at, const char *start, int64_t bytes)
{
    return start && (const char *)at >= start && (const char *)at < start + bytes;
}

void rc_workspace_give(void *at)
{
    rc_workspace *w = atomic_load(&current);
    if (is_within(at, kept.at, KEPT_BYTES))
        return;
    if (w) {
        pthread_mutex_lock(&lock);
        forget(w, at);
        pthread_mutex_unlock(&lock);
    }
    if (!w || !is_within(at, w->at, w->bytes))
        free(at);
}

void rc_workspace_enter(rc_workspace *workspace)
{
    pthread_mutex_lock(&turn);
    workspace->n_live = workspace->n_outside = 0;
    workspace->live_outside_bytes = 0;
    atomic_store(&current, workspace);
}

bool rc_workspace_leave(rc_workspace *workspace)
{
    atomic_store(&current, NULL);
    const bool is_empty = workspace->n_live == 0;
    pthread_mutex_unlock(&turn);
    return is_empty;
}

/* ---- the library's import table ---- */

#if defined(__linux__) && defined(__ELF__) && (defined(__x86_64__) || defined(__aarch64__))
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
enum { JUMP_SLOT = R_X86_64_JUMP_SLOT, GLOBAL_DATA = R_X86_64_GLOB_DAT };
#else
enum { JUMP_SLOT = R_AARCH64_JUMP_SLOT, GLOBAL_DATA = R_AARCH64_GLOB_DAT };
#endif

/* Called by the library in posix_memalign's place. */
static int take_for_library(void **out, size_t align, size_t bytes)
{
    rc_workspace_take(align, bytes, out);
    return *out ? 0 : ENOMEM;
}

/* The parts of a loaded library's dynamic section that name its imports. */
typedef struct imports {
    uintptr_t base;
    const Elf64_Rela *tables[2]; /* of functions, of all the rest */
    size_t n[2];
    const Elf64_Sym *symbols;
    const char *names;
} imports;

/* The loader writes addresses into the section on most machines and leaves offsets on some. */
static const void *address_of(uintptr_t base, Elf64_Addr at)
{
    return (const void *)(at < base ? base + at : at);
}

static bool find_imports(const void *symbol, imports *out)
{
    Dl_info info;
    void *extra = NULL;
    if (!dladdr1(symbol, &info, &extra, RTLD_DL_LINKMAP) || !extra)
        return false;
    const struct link_map *map = extra;
    *out = (imports){.base = map->l_addr};
    for (const Elf64_Dyn *d = map->l_ld; d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_JMPREL)
            out->tables[0] = address_of(out->base, d->d_un.d_ptr);
        else if (d->d_tag == DT_PLTRELSZ)
            out->n[0] = d->d_un.d_val / sizeof(Elf64_Rela);
        else if (d->d_tag == DT_RELA)
            out->tables[1] = address_of(out->base, d->d_un.d_ptr);
        else if (d->d_tag == DT_RELASZ)
            out->n[1] = d->d_un.d_val / sizeof(Elf64_Rela);
        else if (d->d_tag == DT_SYMTAB)
            out->symbols = address_of(out->base, d->d_un.d_ptr);
        else if (d->d_tag == DT_STRTAB)
            out->names = address_of(out->base, d->d_un.d_ptr);
    }
    return out->symbols && out->names;
}

/* The slots that hold the address of `name`, at most `room`. */
static int find_slots(const imports *in, const char *name, void **slots, int room)
{
    int n = 0;
    for (int t = 0; t < 2; t++)
        for (size_t i = 0; in->tables[t] && i < in->n[t]; i++) {
            const Elf64_Rela *r = &in->tables[t][i];
            const unsigned long type = ELF64_R_TYPE(r->r_info);
            const Elf64_Sym *symbol = &in->symbols[ELF64_R_SYM(r->r_info)];
            if ((type == JUMP_SLOT || type == GLOBAL_DATA) && n < room &&
                strcmp(in->names + symbol->st_name, name) == 0)
                slots[n++] = (void *)(in->base + r->r_offset);
        }
    return n;
}

/* The table is read-only once the loader is done with it. */
static bool write_slot(void *slot, const void *function)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    void *start = (void *)((uintptr_t)slot / page * page);
    if (mprotect(start, page, PROT_READ | PROT_WRITE) != 0)
        return false;
    memcpy(slot, function, sizeof(void *));
    return mprotect(start, page, PROT_READ) == 0;
}

static bool take_kept(void)
{
    pthread_mutex_lock(&lock);
    if (!kept.at)
        kept.at = aligned_alloc(MOST_KEPT_ALIGN, KEPT_BYTES);
    const bool is_taken = kept.at != NULL;
    pthread_mutex_unlock(&lock);
    return is_taken;
}

bool rc_workspace_install(const void *symbol)
{
    static const char *const names[] = {"posix_memalign", "free"};
    int (*take)(void **, size_t, size_t) = take_for_library;
    void (*give)(void *) = rc_workspace_give;
    const void *const functions[] = {&take, &give};
    enum { MOST_SLOTS = 4 };
    void *slots[2][MOST_SLOTS];
    int n[2];
    imports in;
    if (!find_imports(symbol, &in))
        return false;
    for (int i = 0; i < 2; i++)
        n[i] = find_slots(&in, names[i], slots[i], MOST_SLOTS);
    if (n[0] == 0 || n[1] == 0 || !take_kept())
        return false;
    bool is_written = true;
    /* `free` first: it takes what either has given. */
    for (int i = 1; i >= 0; i--)
        for (int k = 0; k < n[i]; k++)
            is_written = is_written && write_slot(slots[i][k], functions[i]);
    return is_written;
}
#else
bool rc_workspace_install(const void *symbol)
{
    (void)symbol;
    return false;
}
#endif
