/* policy.h — rc_policy: for every tensor of a graph, retained or discarded between forward and
 * backward.
 *
 * A region of label mechanism CHECKPOINT discards what is computed inside it, except what ops
 * outside read; its inputs stay. DISCARD discards the region's outputs only. Full recompute is a
 * CHECKPOINT over whole layers. Megatron's settings are one way to make a policy; any set of
 * tensors is another.
 */
#ifndef RECOMPUTE_POLICY_H
#define RECOMPUTE_POLICY_H

#include <recompute/graph.h>

RC_EXTERN_C_BEGIN

typedef enum rc_granularity {
    RC_GRANULARITY_NONE,
    RC_GRANULARITY_SELECTIVE,
    RC_GRANULARITY_FULL
} rc_granularity;

typedef enum rc_method { RC_METHOD_UNIFORM, RC_METHOD_BLOCK } rc_method;

/* A recompute setting, as Megatron spells it: what one row of a study or a plan changes. */
typedef struct rc_setting {
    rc_granularity granularity;
    /* selective: bit per rc_label */
    uint32_t labels;
    /* full: how layers are grouped, and the layers of a group (uniform) or in all (block) */
    rc_method method;
    int64_t num_layers;
} rc_setting;

/* The setting of a config.
 *
 * takes   cfg   recompute_granularity, _modules, _method and _num_layers
 * gives   *out  null granularity is none; a null list under selective is [core_attn]
 * errors  RC_E_INPUT with the position: unknown granularity, method or label, full without method
 *         or num_layers, num_layers below 1 */
RC_MUST_CHECK
RC_API rc_code rc_setting_make(const rc_config *cfg, rc_setting *out, rc_error *err);
/* "none", "selective/core_attn+mlp", "full/block/4". Returns buf. */
RC_API const char *rc_setting_name(const rc_setting *setting, char buf[160]);

/* The reverse of rc_setting_name; also "[core_attn,mlp]" and "[]". false, with *out of no use, when it is
 * neither. */
RC_API bool rc_setting_parse(const char *name, rc_setting *out);
/* The setting as Bridge overrides: "model.recompute_granularity=full ...". Returns buf. */
RC_API const char *rc_setting_overrides(const rc_setting *setting, char buf[400]);

/* The setting as arguments of Megatron-LM: "--recompute-granularity full ..."; "" of none. Returns buf. */
RC_API const char *rc_setting_flags(const rc_setting *setting, char buf[400]);

/* What becomes of a tensor between forward and backward. Offloading and sharding over a group would be
 * further fates. */
typedef enum rc_tensor_fate_kind {
    /* stays if backward reads it, else goes after its last forward use */
    RC_FATE_RETAIN,
    /* goes after its last forward use, and is computed again before backward reads it */
    RC_FATE_DISCARD,
    /* stays whoever reads it: a replay starts from it */
    RC_FATE_PIN
} rc_tensor_fate_kind;

/* Who discards, where it is no label. MODULE: an op whose facts say drops_output, under any setting. */
enum { RC_BY_FULL = RC_LABEL_COUNT, RC_BY_MODULE, RC_BY_CALLER };

typedef struct rc_tensor_fate {
    rc_tensor_fate_kind kind;
    /* of DISCARD: an rc_label, RC_BY_FULL, RC_BY_MODULE or RC_BY_CALLER */
    int by;
} rc_tensor_fate;

typedef struct rc_policy {
    const rc_graph *graph;
    /* "selective/mlp", as rc_setting_name has it, or the caller's */
    const char *name;
    /* [n_tensors]; a slice has that of the value it is a slice of */
    rc_tensor_fate *fates;
    int n_active_regions;
    /* nothing of the last layer is discarded, though the setting covers it */
    bool is_last_layer_kept;
} rc_policy;

/**
 * What a setting retains in a graph: one way to make a policy.
 *
 * takes   graph    verified; must outlive the policy
 * gives   *out     a label of the setting that acts nowhere in this graph is simply without effect;
 *                  rc_graph_count_regions tells
 * errors  RC_E_MEMORY
 */
RC_MUST_CHECK
RC_API rc_code rc_policy_make(const rc_graph *graph, const rc_setting *setting, rc_arena *mem,
                              rc_policy **out, rc_error *err);

/**
 * Any policy: a fate for every tensor.
 *
 * takes   graph  verified; must outlive the policy
 *         fates  [n_tensors], copied
 *         name   for people, copied
 * gives   *out   with n_active_regions 0
 * errors  RC_E_INPUT naming a tensor that is discarded and that no op computes: a weight, an input, a slice
 *         (it goes with its base), or the loss; RC_E_MEMORY
 */
RC_MUST_CHECK
RC_API rc_code rc_policy_make_of(const rc_graph *graph, const rc_tensor_fate *fates,
                                 const char *name, rc_arena *mem, rc_policy **out,
                                 rc_error *err);

/**
 * The same policy with nothing of the last layer discarded. Its backward comes right after the loss: to
 * discard what comes back at once frees nothing at the peak, unless the loss itself is the peak.
 *
 * gives   *out  NULL where the policy discards nothing there
 * errors  RC_E_MEMORY
 */
RC_MUST_CHECK
RC_API rc_code rc_policy_keep_last_layer(const rc_policy *policy, rc_arena *mem,
                                         rc_policy **out, rc_error *err);

/* Its invariants: what is discarded can be computed again.
 * errors  RC_E_INPUT naming the tensor */
RC_MUST_CHECK
RC_API rc_code rc_policy_verify(const rc_policy *policy, rc_error *err);
/* One stable text form, for --dump and tests. */
RC_API void rc_policy_print(const rc_policy *policy, FILE *to);

/* For people and programs.
 *
 * gives   *out  a row per tensor
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_policy_table(const rc_policy *policy, rc_arena *mem, rc_table **out,
                               rc_error *err);

/* Which bytes stay from forward to backward, each storage considered whole: a retained view pins its base.
 *
 * gives   *is_retained  [n_tensors], true at owners of storages alone
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_policy_retained(const rc_policy *policy, rc_arena *mem, bool **is_retained,
                                  rc_error *err);

RC_EXTERN_C_END

#endif
