/* rules_mhc.c — hyper connections and their label. Granularity is the effective one here, after
 * moe_layer_recompute had its say. */
#include "check/layers.h"
#include "check/model.h"

static void label(rc_checking *checking)
{
    const rc_doc *n_layers = checking->at[RC_CHECKED_mhc_recompute_layer_num];
    if (!rc_model_has_work_for(checking, RC_LABEL_mhc))
        RAISE_ITEM(mhc_recompute_needs_mhc, "mhc");
    if (IN(recompute_modules, "mlp"))
        RAISE(mhc_recompute_excludes_mlp);
    if (n_layers->kind != RC_DOC_NULL && (n_layers->kind != RC_DOC_INT || n_layers->i < 1))
        RAISE(mhc_recompute_layer_num_positive_int);
    if (ON(fine_grained_activation_offloading))
        RAISE(mhc_recompute_excludes_fine_grained_offload);
}

void rc_core_mhc(rc_checking *checking)
{
    bool is_recomputed = SINCE(main) && RECOMPUTES(mhc);
    if (is_recomputed)
        label(checking);
    if (!ON(enable_mhc_connections))
        return;
    if (!is_recomputed)
        WARN(warn_mhc_without_mhc_recompute);
    if (!IS_NULL(mtp_num_layers))
        RAISE(mhc_excludes_mtp);
    if (IS(recompute_granularity, "full"))
        RAISE(mhc_excludes_full_recompute);
    if (ABOVE(pipeline_model_parallel_size, 1))
        RAISE(mhc_excludes_pipeline_parallel);
    if (ON(fp32_residual_connection))
        RAISE(mhc_excludes_fp32_residual);
    if (BELOW(mhc_sinkhorn_iterations, 1))
        RAISE(mhc_sinkhorn_iterations_positive);
    if (BELOW(mhc_init_gating_factor, 0))
        RAISE(mhc_gating_factor_non_negative);
}
