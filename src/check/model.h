/* model.h — what the model at hand has.
 *
 * above  checking.h
 */
#ifndef RC_CHECK_MODEL_H
#define RC_CHECK_MODEL_H

#include "check/checking.h"

/* By moe_layer_freq alone: a list of 0 and 1, or n for every n-th layer. */
bool rc_model_is_every_layer_moe(const rc_checking *checking);
/* Only a list with a 0 or an int above 1 leaves dense layers; whatever else stands in moe_layer_freq does not. */
bool rc_model_is_mixed(const rc_doc *freq);
/* gated_delta_net until 0.19, then gdn and gdn2 */
bool rc_model_is_delta_net(const rc_checking *checking);
/* Layers by a pattern. */
bool rc_model_is_hybrid(const rc_checking *checking);
/* First or last stage, layout or hybrid pattern: layers are not dealt out evenly. */
bool rc_model_has_own_split(const rc_checking *checking);
/* Embedding or loss as a layer. */
bool rc_model_counts_ends(const rc_checking *checking);
/* Some norm is a module, which the label layernorm finds: in the local implementation, in MLA and before
 * MoE layers. Not for a call. */
bool rc_model_has_norm_modules(const rc_checking *checking);
/* The model has what a label needs; NORM_MODULES not for a call. */
bool rc_model_meets(const rc_checking *checking, rc_label_need need);
bool rc_model_has_work_for(const rc_checking *checking, rc_label label);

#endif
