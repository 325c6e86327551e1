/* core.c — the rules of Megatron Core's config classes, in the order they fire.
 *
 * above  the files of rules that layers.h names for the core layer
 */
#include "check/layers.h"

/* ORDER core_families: Megatron's, first the parallel sizes of the base class, then the config
 * class from top to bottom, then what the MLA class adds. */
static void (*const families[])(rc_checking *checking) = {
    rc_core_parallel,
    rc_core_precision,
    rc_core_linear_attention,
    rc_core_experts,
    rc_core_cpu_offload,
    rc_core_recompute,
    rc_core_mhc,
    rc_core_fine_offload,
    rc_core_pipeline,
    rc_core_late_model,
    rc_core_graph_names,
    rc_core_graphs,
    rc_core_graph_recompute,
    rc_core_graph_offload,
    rc_core_overlap,
    rc_core_mla,
};

rc_code rc_check_core(rc_checking *checking, rc_error *err)
{
    checking->err = err;
    for (size_t i = 0; i < sizeof families / sizeof *families && checking->code == RC_OK; i++)
        families[i](checking);
    return checking->code;
}
