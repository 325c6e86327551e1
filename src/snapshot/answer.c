/* answer.c — what somebody with a dead job wants to know, in a few lines.
 *
 * takes  a snapshot
 * gives  per device: at the last out-of-memory error what was asked, what was free, why that did
 *        not serve, who held the rest and what to try; without an error, the peak and its holders
 */
#include "snapshot/table.h"

#include "base/num.h"
#include "snapshot/frames.h"

#include <string.h>

enum { N_HOLDERS = 4 };

typedef struct answer {
    const rc_snapshot *snapshot;
    const rc_snapshot_device *device;
    rc_table *table;
} answer;

static rc_code say(const answer *a, const char *about, const char *text, rc_error *err)
{
    rc_cell *row;
    RC_TRY(rc_table_add_row(a->table, &row, err));
    row[0] = rc_cell_int(a->device->device);
    row[1] = rc_cell_text(about);
    row[2] = rc_cell_text(text);
    return RC_OK;
}

static rc_code say_share(const answer *a, int64_t bytes, int64_t all_bytes, const char *name,
                         rc_error *err)
{
    char size[32];
    const char *text;
    double share = all_bytes > 0 ? 100.0 * (double)bytes / (double)all_bytes : 0;
    RC_TRY(rc_arena_printf(a->snapshot->mem, &text, err, "%s (%.0f %%) %s",
                           rc_format_bytes(bytes, size), share, name));
    return say(a, "held by", text, err);
}

static rc_code say_holders(const answer *a, const rc_live_set *set, rc_error *err)
{
    rc_arena *mem = a->snapshot->mem;
    rc_group *groups;
    size_t n;
    int64_t all_bytes = set->traced_bytes + set->before_bytes, rest_bytes = set->traced_bytes;
    const char *rest;
    RC_TRY(rc_snapshot_group(a->snapshot, set, RC_GROUP_LABEL, mem, &groups, &n, err));
    size_t n_shown = n > N_HOLDERS + 1 ? N_HOLDERS : n;
    for (size_t i = 0; i < n_shown; i++) {
        RC_TRY(say_share(a, groups[i].requested_bytes, all_bytes, groups[i].name, err));
        rest_bytes -= groups[i].requested_bytes;
    }
    RC_TRY(rc_arena_printf(mem, &rest, err, "%zu other labels", n - n_shown));
    if (n > n_shown)
        RC_TRY(say_share(a, rest_bytes, all_bytes, rest, err));
    return set->before_bytes > 0
               ? say_share(a, set->before_bytes, all_bytes, "from before the recording", err)
               : RC_OK;
}

/* ---- what to try ---- */

/* The modules Megatron can recompute under their own name
 * (transformer_config.py, recompute_modules), with the most forward bytes held; -1 none. */
static int find_recomputable(const answer *a, const rc_live_set *set, int64_t *bytes)
{
    static const char *const modules[] = {
        "core_attn", "moe_act", "layernorm", "mla_up_proj", "mlp", "moe", "shared_experts"};
    int64_t by_label[RC_SNAPSHOT_LABEL_COUNT] = {0};
    int best = -1;
    for (size_t i = 0; i < set->n_tallies; i++) {
        rc_stack_facts facts = a->snapshot->book->stacks[set->tallies[i].stack];
        if (facts.phase == RC_SNAPSHOT_FORWARD)
            by_label[facts.label] += set->tallies[i].requested_bytes;
    }
    for (int k = 0; k < RC_SNAPSHOT_LABEL_COUNT; k++)
        for (size_t m = 0; m < sizeof modules / sizeof *modules; m++)
            if (by_label[k] > 0 && strcmp(rc_snapshot_label_name(k), modules[m]) == 0 &&
                (best < 0 || by_label[k] > by_label[best]))
                best = k;
    *bytes = best < 0 ? 0 : by_label[best];
    return best;
}

static rc_code say_less(const answer *a, const rc_snapshot_oom *oom, rc_error *err)
{
    rc_arena *mem = a->snapshot->mem;
    char bytes[32];
    const char *text;
    int64_t held_bytes,
        short_bytes = oom->needed_bytes - oom->device_free_bytes - oom->same_bytes;
    int label = find_recomputable(a, &a->device->oom, &held_bytes);
    if (short_bytes > 0 && a->device->has_segments) {
        RC_TRY(rc_arena_printf(mem, &text, err, "hold at least %s less at this moment",
                               rc_format_bytes(short_bytes, bytes)));
        RC_TRY(say(a, "needed", text, err));
    }
    if (label >= 0) {
        const char *name = rc_snapshot_label_name(label);
        RC_TRY(rc_arena_printf(mem, &text, err,
                               "recompute the %s that %s keeps; in Megatron: "
                               "--recompute-granularity selective --recompute-modules %s",
                               rc_format_bytes(held_bytes, bytes), name, name));
        RC_TRY(say(a, "try", text, err));
    }
    return say(a, "try",
               "a smaller micro batch, or more ranks to shard parameters and optimizer over",
               err);
}

static rc_code say_next(const answer *a, const rc_snapshot_oom *oom, rc_error *err)
{
    const rc_snapshot *s = a->snapshot;
    bool is_expandable = s->file->settings.is_expandable;
    for (size_t i = 0; i < s->n_by_device; i++)
        is_expandable = is_expandable || (s->by_device[i].device == oom->device &&
                                          s->by_device[i].is_expandable);
    if (!a->device->has_segments)
        return say_less(a, oom, err);
    if (strcmp(oom->verdict, "race") == 0)
        return say(a, "try",
                   "run again: a block large enough became free after the error; if it comes "
                   "back, look for work on other streams",
                   err);
    if (strcmp(oom->verdict, "fragmentation") == 0 && !is_expandable)
        return say(a, "try",
                   "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, so that free pieces can "
                   "serve one request",
                   err);
    if (oom->enough_with)
        RC_TRY(say(a, "why",
                   strcmp(oom->enough_with, "other_streams") == 0
                       ? "with what lies free on other streams it would have been enough"
                       : "with what lies free in private pools (CUDA graphs, MemPool) it would "
                         "have been enough",
                   err));
    return say_less(a, oom, err);
}

/* ---- the lines ---- */

static const char *meaning_of(const rc_snapshot_oom *oom)
{
    if (strcmp(oom->verdict, "race") == 0)
        return "race: a block that is large enough is free in the snapshot";
    return strcmp(oom->verdict, "fragmentation") == 0
               ? "fragmentation: enough was free, but in pieces too small for the request"
               : "capacity: all that was free would not have been enough";
}

static rc_code say_oom(const answer *a, const rc_snapshot_oom *oom, rc_error *err)
{
    const rc_snapshot *s = a->snapshot;
    rc_stack_facts facts = s->book->stacks[oom->stack];
    const char *source, *text;
    char one[32], two[32], three[32];
    RC_TRY(rc_stack_source(s->book, s->file->names, oom->stack, s->mem, &source, err));
    RC_TRY(rc_arena_printf(s->mem, &text, err, "%s for %s (%s), at %s, event %s",
                           rc_format_bytes(oom->size_bytes, one),
                           rc_snapshot_label_name(facts.label),
                           rc_snapshot_phase_name((rc_snapshot_phase)facts.phase), source,
                           rc_format_count(oom->event_index, two)));
    RC_TRY(say(a, "asked", text, err));
    RC_TRY(rc_arena_printf(
        s->mem, &text, err,
        "%s on the card, %s in the pool that may serve it (largest block %s)",
        rc_format_bytes(oom->device_free_bytes, one), rc_format_bytes(oom->same_bytes, two),
        rc_format_bytes(oom->largest_bytes, three)));
    RC_TRY(say(a, "free", a->device->has_segments ? text : "unknown: the file has no segments",
               err));
    if (a->device->has_segments)
        RC_TRY(say(a, "verdict", meaning_of(oom), err));
    if (a->device->oom.event_index == oom->event_index)
        RC_TRY(say_holders(a, &a->device->oom, err));
    return say_next(a, oom, err);
}

static rc_code say_peak(const answer *a, rc_error *err)
{
    const rc_snapshot_device *d = a->device;
    char one[32], two[32], three[32];
    const char *text;
    RC_TRY(rc_arena_printf(
        a->snapshot->mem, &text, err, "%s requested, with %s reserved; reserved at most %s",
        rc_format_bytes(d->baseline_requested_bytes + d->peak.net_bytes, one),
        rc_format_bytes(d->peak.reserved_bytes, two),
        rc_format_bytes(d->peak_reserved_bytes, three)));
    RC_TRY(say(a, "peak", text, err));
    return say_holders(a, &d->peak, err);
}

rc_code rc_snapshot_add_answer(const rc_snapshot *snapshot, const rc_snapshot_view *view,
                               rc_report *report, rc_error *err)
{
    static const rc_column columns[] = {{"device", NULL, RC_UNIT_COUNT},
                                        {"about", NULL, RC_UNIT_TEXT},
                                        {"answer", NULL, RC_UNIT_TEXT}};
    answer a = {.snapshot = snapshot};
    RC_TRY(rc_table_make(snapshot->mem, "answer", "In short", columns,
                         sizeof columns / sizeof *columns, &a.table, err));
    for (size_t i = 0; i < snapshot->n_devices; i++) {
        const rc_snapshot_oom *last = NULL;
        a.device = &snapshot->devices[i];
        if (!rc_view_shows(view, a.device->device))
            continue;
        for (size_t k = 0; k < snapshot->n_ooms; k++)
            if (snapshot->ooms[k].device == a.device->device)
                last = &snapshot->ooms[k];
        RC_TRY(last ? say_oom(&a, last, err) : say_peak(&a, err));
    }
    if (a.table->n_rows > 0 || !view->is_brief)
        rc_report_add(report, a.table, false);
    return RC_OK;
}
