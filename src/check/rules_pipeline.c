/* rules_pipeline.c — how layers are split over pipeline stages: by layout, by uneven first and
 * last stages, or evenly with embedding and loss counted as layers. */
#include "check/layers.h"

#include "layout/written.h"

static size_t count(const rc_pipeline_layout *layout, rc_stage_layer layer)
{
    size_t n = 0;
    for (size_t i = 0; i < layout->n_layers; i++)
        n += layout->layers[i] == layer;
    return n;
}

static bool has_layer(const rc_pipeline_layout *layout, size_t stage, rc_stage_layer layer)
{
    for (size_t i = layout->stage_starts[stage]; i < layout->stage_starts[stage + 1]; i++)
        if (layout->layers[i] == layer)
            return true;
    return false;
}

/* Stage i stands on rank i % n_ranks, as its virtual stage i / n_ranks. *rank is that of MTP. */
static bool is_mtp_placed(const rc_pipeline_layout *layout, size_t n_ranks, size_t *rank)
{
    bool is_seen = false;
    for (size_t i = 0; i < layout->n_layers; i++) {
        if (is_seen && layout->layers[i] == RC_STAGE_DECODER)
            return false;
        is_seen = is_seen || layout->layers[i] == RC_STAGE_MTP;
    }
    *rank = n_ranks; /* nowhere yet */
    for (size_t stage = 0; stage < layout->n_stages; stage++) {
        if (!has_layer(layout, stage, RC_STAGE_MTP))
            continue;
        if (stage + n_ranks < layout->n_stages || *rank != n_ranks)
            return false;
        *rank = stage % n_ranks;
    }
    return true;
}

/* In 0.15 MTP shares a stage with the loss. */
static bool is_mtp_with_loss(const rc_pipeline_layout *layout)
{
    for (size_t stage = 0; stage < layout->n_stages; stage++)
        if (has_layer(layout, stage, RC_STAGE_MTP) && !has_layer(layout, stage, RC_STAGE_LOSS))
            return false;
    return true;
}

/* How many, and where; *rank is the one that MTP stands on. */
static void layout_mtp(rc_checking *checking, const rc_pipeline_layout *layout, size_t n_ranks,
                       size_t *rank)
{
    size_t n_placed = count(layout, RC_STAGE_MTP);
    bool is_counted =
        rc_checking_is_number(checking, RC_CHECKED_mtp_num_layers, (double)n_placed) ||
        (IS_NULL(mtp_num_layers) && n_placed == 0);
    bool is_placed = is_mtp_placed(layout, n_ranks, rank);
    if (SINCE(0_15) && !SINCE(0_16) && !is_mtp_with_loss(layout))
        is_placed = false;
    if (SINCE(0_14) && (!is_counted || !is_placed))
        RAISE(pp_layout_mtp_placement);
}

static void layout_layers(rc_checking *checking, const rc_pipeline_layout *layout,
                          size_t n_ranks)
{
    size_t n = layout->n_layers, mtp_rank = 0;
    if (layout->layers[0] != RC_STAGE_EMBEDDING || layout->layers[n - 1] != RC_STAGE_LOSS ||
        count(layout, RC_STAGE_EMBEDDING) != 1 || count(layout, RC_STAGE_LOSS) != 1)
        RAISE(pp_layout_embedding_loss_placement);
    if (!rc_checking_is_number(checking, RC_CHECKED_num_layers,
                               (double)count(layout, RC_STAGE_DECODER)))
        RAISE(pp_layout_decoder_count);
    layout_mtp(checking, layout, n_ranks, &mtp_rank);
    bool has_mtp = count(layout, RC_STAGE_MTP) > 0;
    if (count(layout, RC_STAGE_ENCODER) > 0)
        RAISE(pp_layout_no_encoder);
    if (!SINCE(0_14) && has_mtp)
        rc_checking_crash(checking, RC_RULE_pp_layout_mtp_placement, "NotImplementedError");
    bool is_standalone = has_mtp && mtp_rank + 1 < n_ranks;
    if (!rc_checking_is_number(checking, RC_CHECKED_mtp_standalone, is_standalone))
        rc_checking_set_bool(checking, RC_CHECKED_mtp_standalone, is_standalone,
                             RC_RULE_set_vpp_from_layout);
}

/* Counts the stages, then the stages of a rank, then looks up the layers' names. */
static bool read_layout(rc_checking *checking, const rc_doc *doc, rc_pipeline_layout *stages)
{
    const rc_doc *size = checking->at[RC_CHECKED_pipeline_model_parallel_size];
    if (doc->kind != RC_DOC_STRING && doc->kind != RC_DOC_LIST) { /* it has no stages to ask */
        rc_checking_crash(checking, RC_RULE_pp_layout_malformed, "AttributeError");
        return false;
    }
    if (checking->code == RC_OK)
        checking->code = rc_pipeline_layout_read(doc, checking->mem, stages, checking->err);
    if (checking->code != RC_OK)
        return false;
    if (!stages->is_read && stages->n_rows == 0) {
        RAISE(pp_layout_malformed);
        return false;
    }
    if (rc_checking_need_rest(checking, (double)stages->n_rows,
                              NUMBER(pipeline_model_parallel_size),
                              RC_RULE_pipeline_size_zero_crash))
        RAISE(pp_layout_malformed);
    if (size->kind == RC_DOC_FLOAT) /* ranks are counted up to it */
        rc_checking_crash_at(checking, RC_RULE_python_type_error,
                             RC_CHECKED_pipeline_model_parallel_size);
    if (!stages->is_read && size->i > 0)
        RAISE(pp_layout_malformed);
    return size->kind != RC_DOC_FLOAT;
}

static bool is_layout_virtual(rc_checking *checking, double n_virtual)
{
    return IS_NULL(virtual_pipeline_model_parallel_size) ||
           rc_checking_is_number(checking, RC_CHECKED_virtual_pipeline_model_parallel_size,
                                 n_virtual);
}

static void layout(rc_checking *checking)
{
    rc_pipeline_layout stages;
    int64_t n_ranks_given = checking->at[RC_CHECKED_pipeline_model_parallel_size]->i;
    if (!read_layout(checking, checking->at[RC_CHECKED_pipeline_model_parallel_layout],
                     &stages) ||
        n_ranks_given == 0) /* refused there */
        return;
    if (!is_layout_virtual(checking, (double)((int64_t)stages.n_rows / n_ranks_given)))
        RAISE(pp_layout_vpp_mismatch);
    if (n_ranks_given < 0 || stages.n_layers == 0) { /* no rank, no layer: no first one */
        rc_checking_crash(checking, RC_RULE_pp_layout_embedding_loss_placement, "IndexError");
        return;
    }
    size_t n_ranks = (size_t)n_ranks_given, n_virtual = stages.n_stages / n_ranks;
    if (n_virtual > 1 && IS_NULL(virtual_pipeline_model_parallel_size))
        rc_checking_set_int(checking, RC_CHECKED_virtual_pipeline_model_parallel_size,
                            (int64_t)n_virtual, RC_RULE_set_vpp_from_layout);
    layout_layers(checking, &stages, n_ranks);
}

/* One uneven stage; gives its layers. Those of the model are looked at behind it only. */
static double uneven_stage(rc_checking *checking, rc_checked_field field)
{
    if (rc_checking_is_null(checking, field) || !rc_checking_need_numeric(checking, field))
        return 0.0;
    double n = rc_checking_need_number(checking, field);
    if (n <= 0.0)
        RAISE(uneven_pp_stage_layers_positive);
    if (!IS_NULL(virtual_pipeline_model_parallel_size) &&
        rc_checking_need_uneven(checking, field,
                                RC_CHECKED_virtual_pipeline_model_parallel_size,
                                RC_RULE_python_zero_division))
        RAISE(uneven_pp_stage_layers_divisible_by_vpp);
    (void)NEED_NUMERIC(num_layers);
    return n;
}

static bool is_zero(double x)
{
    return !(x < 0.0) && !(x > 0.0);
}

static void uneven_stages(rc_checking *checking)
{
    double n_uneven = uneven_stage(checking, RC_CHECKED_num_layers_in_first_pipeline_stage);
    n_uneven += uneven_stage(checking, RC_CHECKED_num_layers_in_last_pipeline_stage);
    if (!NEED_NUMERIC(num_layers) || !NEED_NUMERIC(pipeline_model_parallel_size))
        return;
    double n_layers = NUMBER(num_layers) - n_uneven;
    double n_stages = NUMBER(pipeline_model_parallel_size) -
                      !IS_NULL(num_layers_in_first_pipeline_stage) -
                      !IS_NULL(num_layers_in_last_pipeline_stage);
    if (is_zero(n_layers) != is_zero(n_stages))
        RAISE(uneven_pp_middle_layers_stages_mismatch);
    if (is_zero(n_stages) && SINCE(0_13))
        return;
    if (rc_checking_need_rest(checking, n_layers, n_stages, RC_RULE_python_zero_division)) {
        RAISE(uneven_pp_middle_layers_divisible_by_stages);
        return;
    }
    if (!IS_NULL(virtual_pipeline_model_parallel_size) &&
        rc_checking_need_rest(checking, n_layers / n_stages,
                              NUMBER(virtual_pipeline_model_parallel_size),
                              RC_RULE_python_zero_division))
        RAISE(uneven_pp_middle_layers_divisible_by_vpp);
}

/* Release 0.11 gave embedding and loss a stage each, and the layers the others. */
static void stages_without_ends(rc_checking *checking, double n_stages)
{
    n_stages -= ON(account_for_embedding_in_pipeline_split);
    n_stages -= ON(account_for_loss_in_pipeline_split);
    if (rc_checking_need_rest(checking, NUMBER(num_layers), n_stages,
                              RC_RULE_python_zero_division))
        RAISE(split_accounting_layers_divisible_by_pp);
}

static void accounted_split(rc_checking *checking)
{
    double n_stages = NUMBER(pipeline_model_parallel_size);
    if (!SINCE(0_12) && IS_NULL(virtual_pipeline_model_parallel_size)) {
        stages_without_ends(checking, n_stages);
        return;
    }
    double n_layers = NUMBER(num_layers) + ON(account_for_embedding_in_pipeline_split) +
                      ON(account_for_loss_in_pipeline_split);
    if (rc_checking_need_rest(checking, n_layers, n_stages, RC_RULE_pipeline_size_zero_crash)) {
        RAISE(split_accounting_layers_divisible_by_pp);
        return;
    }
    if (!IS_NULL(virtual_pipeline_model_parallel_size) && !is_zero(n_stages) &&
        rc_checking_need_rest(checking, n_layers / n_stages,
                              NUMBER(virtual_pipeline_model_parallel_size),
                              RC_RULE_python_zero_division))
        RAISE(split_accounting_layers_divisible_by_vpp);
}

void rc_core_pipeline(rc_checking *checking)
{
    bool is_uneven = !IS_NULL(num_layers_in_first_pipeline_stage) ||
                     !IS_NULL(num_layers_in_last_pipeline_stage);
    bool is_accounted =
        ON(account_for_embedding_in_pipeline_split) || ON(account_for_loss_in_pipeline_split);
    bool has_layout = !IS_NULL(pipeline_model_parallel_layout);
    if (is_uneven && is_accounted)
        RAISE(uneven_pp_excludes_split_accounting);
    if (has_layout && (is_uneven || is_accounted))
        RAISE(pp_layout_excludes_other_splits);
    if (has_layout)
        layout(checking);
    else if (is_uneven)
        uneven_stages(checking);
    else if (is_accounted)
        accounted_split(checking);
}
