/* layers.h — what each layer of rules does to a check in progress, one function a family; each stands in
 * the file named behind it, and core.c and check.c call them in order.
 *
 * above  checking.h; a family calls none of another file, core.c and check.c call them all
 */
#ifndef RC_CHECK_LAYERS_H
#define RC_CHECK_LAYERS_H

#include "check/checking.h"

/* --- the families of the core layer; core.c has their order */
/* rules_parallel.c */
void rc_core_parallel(rc_checking *checking);
void rc_core_weight_shards(rc_checking *checking);
void rc_core_precision(rc_checking *checking);
void rc_core_linear_attention(rc_checking *checking);
/* rules_moe.c */
void rc_core_experts(rc_checking *checking);
void rc_core_late_model(rc_checking *checking);
/* rules_offload.c */
void rc_core_cpu_offload(rc_checking *checking);
void rc_core_fine_offload(rc_checking *checking);
/* rules_recompute.c */
void rc_core_recompute(rc_checking *checking);
/* rules_mhc.c */
void rc_core_mhc(rc_checking *checking);
/* rules_pipeline.c */
void rc_core_pipeline(rc_checking *checking);
/* rules_graph_names.c */
void rc_core_graph_names(rc_checking *checking);
/* rules_graph.c */
void rc_core_graphs(rc_checking *checking);
void rc_core_graph_recompute(rc_checking *checking);
void rc_core_graph_offload(rc_checking *checking);
/* rules_overlap.c */
void rc_core_overlap(rc_checking *checking);
void rc_core_overlap_recompute(rc_checking *checking);
void rc_core_mla(rc_checking *checking);

/* --- the other layers (rules_cli.c, rules_bridge.c, rules_build.c, rules_advice.c); a launcher's
 * come before the core's and change what the class is handed */
void rc_check_cli(rc_checking *checking);
void rc_check_bridge(rc_checking *checking);
/* The model is a class of Bridge that has none of the members of MLATransformerConfig. */
bool rc_bridge_is_plain_provider(const rc_config *cfg);
/* What Bridge asks behind the class. */
void rc_check_bridge_late(rc_checking *checking);
void rc_check_build(rc_checking *checking);
void rc_check_advice(rc_checking *checking);
/* rules_unknown.c */
void rc_check_unknown(rc_checking *checking, const rc_config *cfg);

/* All families of the core layer (core.c). */
RC_MUST_CHECK
rc_code rc_check_core(rc_checking *checking, rc_error *err);
#endif
