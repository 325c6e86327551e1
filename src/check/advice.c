/* advice.c — what our own rules have in common. */
#include "check/advice.h"

void rc_advice_warn_layer(rc_checking *checking, rc_rule rule, const rc_sizes *sizes,
                          double layer_bytes)
{
    double stage_bytes = rc_sizes_on_stage(sizes, layer_bytes);
    char layer[32], stage[32];
    if (rc_sizes_is_much(stage_bytes))
        rc_checking_warn_here(checking, rule, NULL, "%s a layer and micro-batch, %s %s",
                              rc_sizes_say(layer_bytes, layer),
                              rc_sizes_say(stage_bytes, stage), rc_sizes_say_stage(sizes));
}

bool rc_advice_need_captured(rc_checking *checking, const char *module)
{
    return (IS(cuda_graph_impl, "local") || IS(cuda_graph_impl, "transformer_engine")) &&
           rc_checking_need_captured(checking, module);
}
