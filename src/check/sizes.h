/* sizes.h — how large the model at hand is on one rank, for advice that states bytes.
 *
 * Counted are the tensors that forward leaves for backward, in bf16 (Korthikanti et al. 2022; what
 * each module saves: Megatron-LM d98e8a64, Transformer Engine d0067d0d). What differs by kernel
 * counts as its smaller form, so that a warning that needs the sum to be large is not rash.
 *
 * above  model.h
 */
#ifndef RC_CHECK_SIZES_H
#define RC_CHECK_SIZES_H

#include "check/checking.h"

/* Symbols are those of docs/shapes.md; 0 where the configuration does not say. */
typedef struct rc_sizes {
    /* parallel sizes; et: tensor-parallel size of experts */
    double t, p, v, c, ep, et;
    /* N, of a micro-batch */
    double n_tokens;
    /* n */
    double n_outer;
    /* S */
    double sequence;
    /* glu: 2 with a gate, else 1 */
    double h, f, glu;
    /* heads, groups: a/t and g/t, at least 1 */
    double heads, groups, a, g, d, dv;
    /* MLA */
    double q_rank, kv_rank, qk_dim, r_dim;
    double vocab;
    /* moe_width: h, or the latent size */
    double experts, k, fe, fs, latent, moe_width;
    /* of the layers */
    double moe_share;
    /* layers of a model chunk; 0 where chunks differ */
    double chunk;
    /* layers of the first and last stage, on average of a layout */
    double first, last;
    /* micro-batches of a step; 0 unknown */
    double n_micro;
    /* micro-batches the first stage holds under plain 1F1B */
    double n_plain;
    /* and under this schedule: chunks count as their share */
    double n_held;
} rc_sizes;

void rc_sizes_find(rc_checking *checking, rc_sizes *out);

/* What one layer retains of one micro-batch, on average over the kinds of layers, in bytes; 0 when
 * unknown. `rc_sizes_layer` under the recompute of this configuration, `_whole` with none. */
double rc_sizes_layer(rc_checking *checking, const rc_sizes *sizes);
double rc_sizes_whole_layer(rc_checking *checking, const rc_sizes *sizes);
/* The input that a checkpoint of a layer keeps. */
double rc_sizes_input(const rc_checking *checking, const rc_sizes *sizes);
/* Flash or fused attention: it keeps no scores. */
bool rc_sizes_has_fused_attention(const rc_checking *checking);
/* FlashAttention by name. */
bool rc_sizes_has_flash_attention(const rc_checking *checking);
/* Its kernel takes several samples in an order of its own: it keeps copies. */
bool rc_sizes_has_flash_batches(const rc_checking *checking);
/* Several samples in one sequence: no batch dimension. */
bool rc_sizes_has_packed_samples(const rc_checking *checking);
/* Query and key are rotated into copies, and the value stays a slice of their projection. */
bool rc_sizes_slices_value(const rc_checking *checking);
/* What the slice's base keeps in memory besides the value. */
double rc_sizes_slice(const rc_sizes *sizes);
/* Scores, and the copies of them, that attention without a fused kernel keeps. */
double rc_sizes_scores(const rc_checking *checking, const rc_sizes *sizes);
/* Rows that the experts of a rank receive of one micro-batch when routing is balanced. */
double rc_sizes_rows(const rc_sizes *sizes);
/* What the routed experts of one layer keep of one micro-batch, with balanced routing. */
double rc_sizes_experts(rc_checking *checking, const rc_sizes *sizes, bool is_whole);
/* Bytes a token of the map from tokens to rows. */
double rc_sizes_row_map(const rc_checking *checking, const rc_sizes *sizes);
/* Parameters of the first stage on one rank, without the embedding. */
double rc_sizes_parameters(const rc_sizes *sizes);

/* Of all layers and micro-batches that wait on the first stage, where most do. */
double rc_sizes_on_stage(const rc_sizes *sizes, double layer_bytes);
/* "on the first stage", or "on a rank" where there is but one. */
const char *rc_sizes_say_stage(const rc_sizes *sizes);

/* Below 1 GiB a rank, about one part in a hundred of the cards that such models train on, a size is
 * not worth a line. */
bool rc_sizes_is_much(double bytes);
/* "1.25 GiB"; "unknown" where it is 0 or passes what a number holds. Returns buf. */
const char *rc_sizes_say(double bytes, char buf[32]);

#endif
