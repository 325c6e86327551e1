/* group.c — live allocations by source, module, label or phase. */
#include "snapshot/frames.h"

#include <stdlib.h>
#include <string.h>

static rc_code name_of(const rc_snapshot *snapshot, uint32_t stack, rc_group_kind kind,
                       rc_arena *mem, const char **out, rc_error *err)
{
    const rc_snapshot_names *names = snapshot->file->names;
    rc_stack_facts facts = snapshot->book->stacks[stack];
    const char *label = rc_snapshot_label_name(facts.label);
    const char *phase = rc_snapshot_phase_name((rc_snapshot_phase)facts.phase);
    switch (kind) {
    case RC_GROUP_SOURCE:
        return rc_stack_source(snapshot->book, names, stack, mem, out, err);
    case RC_GROUP_MODULE:
        return rc_stack_module(snapshot->book, names, stack, mem, out, err);
    case RC_GROUP_NATIVE:
        return rc_stack_native(names, stack, mem, out, err);
    case RC_GROUP_LABEL_PHASE:
        return rc_arena_printf(mem, out, err, "%s/%s", label, phase);
    case RC_GROUP_PHASE:
        *out = phase;
        return RC_OK;
    case RC_GROUP_LABEL:
        break;
    }
    *out = label;
    return RC_OK;
}

static int by_name(const void *a, const void *b)
{
    const rc_group *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static int by_bytes(const void *a, const void *b)
{
    const rc_group *x = a, *y = b;
    if (x->requested_bytes != y->requested_bytes)
        return x->requested_bytes > y->requested_bytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Sorts by name, adds equal names up, sorts by bytes. */
static size_t merge(rc_group *groups, size_t n)
{
    size_t n_out = 0;
    if (n > 1)
        qsort(groups, n, sizeof *groups, by_name);
    for (size_t i = 0; i < n; i++) {
        if (n_out > 0 && strcmp(groups[n_out - 1].name, groups[i].name) == 0) {
            groups[n_out - 1].requested_bytes += groups[i].requested_bytes;
            groups[n_out - 1].rounded_bytes += groups[i].rounded_bytes;
            groups[n_out - 1].count += groups[i].count;
        } else {
            groups[n_out++] = groups[i];
        }
    }
    if (n_out > 1)
        qsort(groups, n_out, sizeof *groups, by_bytes);
    return n_out;
}

typedef struct tallies {
    const rc_stack_tally *at;
    size_t n;
} tallies;

static rc_code group(const rc_snapshot *snapshot, tallies from, rc_group_kind kind,
                     rc_arena *mem, rc_group **out, size_t *n, rc_error *err)
{
    size_t n_kept = 0;
    RC_TRY(RC_NEW(mem, out, from.n, err));
    for (size_t i = 0; i < from.n; i++) {
        const rc_stack_tally *t = &from.at[i];
        if (kind == RC_GROUP_NATIVE &&
            snapshot->book->stacks[t->stack].phase != RC_SNAPSHOT_NO_FRAMES)
            continue;
        rc_group *row = &(*out)[n_kept++];
        *row = (rc_group){NULL, t->requested_bytes, t->rounded_bytes, t->count};
        RC_TRY(name_of(snapshot, t->stack, kind, mem, &row->name, err));
    }
    *n = merge(*out, n_kept);
    return RC_OK;
}

rc_code rc_snapshot_group(const rc_snapshot *snapshot, const rc_live_set *set,
                          rc_group_kind kind, rc_arena *mem, rc_group **out, size_t *n,
                          rc_error *err)
{
    return group(snapshot, (tallies){set->tallies, set->n_tallies}, kind, mem, out, n, err);
}

rc_code rc_snapshot_group_untraced(const rc_snapshot *snapshot,
                                   const rc_snapshot_device *device, rc_group_kind kind,
                                   rc_arena *mem, rc_group **out, size_t *n, rc_error *err)
{
    return group(snapshot, (tallies){device->untraced, device->n_untraced}, kind, mem, out, n,
                 err);
}
