/* estimate/labels.c — what each label does in a Megatron job, alone, beside the job without recompute.
 *
 * takes  a job
 * gives  rc_label_effects: bytes freed of a micro-batch and at the peak, what is replayed, a verdict
 * next   the command `labels` prints them
 */
#include "estimate/store.h"

#include <recompute/estimate.h>

static const char *const verdicts[] = {"no layer has it", "frees nothing of the peak",
                                       "harmful: the peak grows", "frees"};

const char *rc_label_verdict_name(rc_label_verdict verdict)
{
    return verdicts[verdict];
}

/* The rank that is hottest without recompute, whichever is with it. */
static const rc_estimate_rank *hottest_of(const rc_estimate *without,
                                          const rc_estimate *estimate)
{
    return &estimate->ranks[without->hottest];
}

static rc_label_verdict judge(const rc_label_effect *effect)
{
    if (effect->n_modules == 0)
        return RC_LABEL_NO_LAYER;
    if (effect->freed_at_peak_bytes < 0)
        return RC_LABEL_HARMFUL;
    return effect->freed_at_peak_bytes > 0 ? RC_LABEL_FREES : RC_LABEL_NO_USE;
}

static rc_code price(rc_estimate_store *store, rc_estimate_request request,
                     const rc_estimate *without, rc_label_effect *effect, rc_error *err)
{
    rc_arena *scratch = rc_arena_open();
    rc_estimate *with;
    if (!scratch)
        return RC_FAIL(err, RC_E_MEMORY, RC_NOWHERE, "no memory for the price of a label");
    request.setting = &effect->setting;
    rc_code code = rc_estimate_make_in(store, &request, scratch, &with, err);
    if (code == RC_OK) {
        const rc_estimate_rank *a = hottest_of(without, without),
                               *b = hottest_of(without, with);
        effect->freed_bytes = a->retained_bytes - b->retained_bytes;
        effect->freed_at_peak_bytes = a->later.bytes - b->later.bytes;
        effect->replay_flops = b->replay_flops;
        effect->replay_moved_bytes = b->replay_moved_bytes;
        effect->added_share = with->replay_seconds / with->step_seconds;
        effect->verdict = judge(effect);
    }
    rc_arena_close(scratch);
    return code;
}

rc_code rc_label_effects_make(const rc_estimate_request *request, rc_arena *mem,
                              rc_label_effects **out, rc_error *err)
{
    static const rc_setting none = {.granularity = RC_GRANULARITY_NONE};
    rc_estimate_store store;
    rc_estimate_request own = *request;
    rc_estimate *without;
    RC_TRY(RC_NEW(mem, out, 1, err));
    RC_TRY(rc_estimate_store_open(request, mem, &store, err));
    own.setting = &none;
    RC_TRY(rc_estimate_make_in(&store, &own, mem, &without, err));
    (*out)->without = without;
    for (int label = 0; label <= RC_LABEL_COUNT; label++) {
        rc_label_effect *effect = &(*out)->at[label];
        if (label < RC_LABEL_COUNT) {
            effect->setting =
                (rc_setting){.granularity = RC_GRANULARITY_SELECTIVE, .labels = 1u << label};
            effect->n_modules = without->n_label_modules[label];
        } else {
            effect->setting = (rc_setting){.granularity = RC_GRANULARITY_FULL,
                                           .method = RC_METHOD_UNIFORM,
                                           .num_layers = 1};
            effect->n_modules = store.layout->n_layers;
        }
        if (effect->n_modules > 0)
            RC_TRY(price(&store, own, without, effect, err));
    }
    return RC_OK;
}

rc_code rc_label_effects_table(const rc_label_effects *effects, rc_arena *mem, rc_table **out,
                               rc_error *err)
{
    static const rc_column columns[] = {{"label", NULL, RC_UNIT_TEXT},
                                        {"mechanism", NULL, RC_UNIT_TEXT},
                                        {"modules", NULL, RC_UNIT_COUNT},
                                        {"freed_bytes", "of a micro-batch", RC_UNIT_BYTES},
                                        {"freed_at_peak_bytes", "at the peak", RC_UNIT_BYTES},
                                        {"replay_flops", "replayed", RC_UNIT_FLOPS},
                                        {"replay_moved_bytes", "moved by it", RC_UNIT_BYTES},
                                        {"added_share", "adds to a step", RC_UNIT_RATIO},
                                        {"verdict", NULL, RC_UNIT_TEXT}};
    RC_TRY(rc_table_make(mem, "labels", "What each label does alone, on the hottest rank",
                         columns, 9, out, err));
    for (int i = 0; i <= RC_LABEL_COUNT; i++) {
        const rc_label_effect *effect = &effects->at[i];
        const bool is_label = i < RC_LABEL_COUNT;
        rc_cell *row;
        RC_TRY(rc_table_add_row(*out, &row, err));
        row[0] = rc_cell_text(is_label ? rc_label_find_facts((rc_label)i)->name
                                       : "full (uniform, 1)");
        row[1] = rc_cell_text(!is_label || rc_label_find_facts((rc_label)i)->mechanism ==
                                               RC_MECHANISM_CHECKPOINT
                                  ? "checkpoint"
                                  : "discard output");
        row[2] = rc_cell_int(effect->n_modules);
        row[8] = rc_cell_text(rc_label_verdict_name(effect->verdict));
        if (effect->verdict == RC_LABEL_NO_LAYER)
            continue;
        row[3] = rc_cell_int(effect->freed_bytes);
        row[4] = rc_cell_int(effect->freed_at_peak_bytes);
        row[5] = rc_cell_int(effect->replay_flops);
        row[6] = rc_cell_int(effect->replay_moved_bytes);
        row[7] = rc_cell_real(effect->added_share);
    }
    return RC_OK;
}
