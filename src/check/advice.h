/* advice.h — the families of our own rules, by subject; ORDER of rc_check_advice.
 *
 * above  sizes.h; rules_advice_*.c stand on advice.c
 */
#ifndef RC_CHECK_ADVICE_H
#define RC_CHECK_ADVICE_H

#include "check/sizes.h"

/* The rule with its bytes, where these are much: of a layer and micro-batch, and on the first stage. */
void rc_advice_warn_layer(rc_checking *checking, rc_rule rule, const rc_sizes *sizes,
                          double layer_bytes);
#define WARN_LAYER(rule, layer_bytes)                                                          \
    rc_advice_warn_layer(checking, RC_RULE_##rule, sizes, layer_bytes)

void rc_advice_labels(rc_checking *checking, const rc_sizes *sizes); /* rules_advice_labels.c */
void rc_advice_layers(rc_checking *checking, const rc_sizes *sizes); /* rules_advice_layers.c */
void rc_advice_attention(rc_checking *checking,
                         const rc_sizes *sizes);                  /* rules_advice_attention.c */
void rc_advice_mlp(rc_checking *checking, const rc_sizes *sizes); /* rules_advice_mlp.c */
void rc_advice_state(rc_checking *checking, const rc_sizes *sizes); /* rules_advice_state.c */
void rc_advice_offload(rc_checking *checking,
                       const rc_sizes *sizes); /* rules_advice_offload.c */

/* The part of a layer is captured by a graph of layers, where labels do nothing; in one of the full
 * iteration replays are captured too. */
bool rc_advice_need_captured(rc_checking *checking, const char *module);

#endif
