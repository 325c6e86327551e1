/* predict.c — what our own estimate says about a rank of a Megatron job.
 *
 * takes  the settings
 * gives  a sentence to be set beside what the log reports; none for a model that graph/ refuses to
 *        build, or whose sizes are not all known
 *
 * This is the one place where estimates of the megatron profiles enter the diagnosis. Today it counts
 * what a layer retains for its backward, from the same graph whose numbers the published formulas
 * give (tests/laws/test_closed_forms.c); whole-rank peaks plug in here.
 */
#include "diagnose/diag.h"

#include "base/num.h"
#include "base/text.h"

#include <recompute/cost.h>

#include <inttypes.h>
#include <string.h>

/* What a layer retains under a setting, statistics included. */
static rc_code retained_by(const rc_graph *graph, const rc_setting *setting, rc_arena *mem,
                           int64_t *bytes, rc_error *err)
{
    rc_policy *policy;
    int64_t stats;
    RC_TRY(rc_policy_make(graph, setting, mem, &policy, err));
    RC_TRY(rc_cost_layer(policy, 0, mem, bytes, &stats, err));
    return rc_add(*bytes, stats, bytes) ? RC_OK : RC_E_RANGE;
}

/* What a layer retains is counted, not what a rank holds. So two layers are enough: all are alike, and
 * the first's output is the second's input. */
static rc_code make_graph(const rc_config *cfg, rc_arena *mem, rc_graph **graph, rc_error *err)
{
    const bool is_local = cfg->transformer_impl && strcmp(cfg->transformer_impl, "local") == 0;
    const rc_layer_run two = {.n_layers = 2};
    const rc_chunk chunk = {.runs = &two, .n_runs = 1};
    return rc_graph_make(&(rc_graph_request){.cfg = cfg,
                                             .profile = is_local ? RC_PROFILE_MEGATRON_LOCAL
                                                                 : RC_PROFILE_MEGATRON_TE,
                                             .chunk = &chunk},
                         mem, graph, err);
}

static rc_code say_setting(const rc_graph *graph, const char *name, const rc_setting *setting,
                           rc_text *text, rc_error *err)
{
    char size[32];
    int64_t bytes;
    RC_TRY(retained_by(graph, setting, text->mem, &bytes, err));
    return rc_text_printf(text, err, "; %s %s", name, rc_format_bytes(bytes, size));
}

static rc_code say(const rc_config *cfg, const rc_graph *graph, rc_text *text, rc_error *err)
{
    static const char *const others[] = {"none", "selective/core_attn", "selective/mlp",
                                         "full/uniform/1"};
    char name[160], size[32], total[32];
    rc_setting setting;
    int64_t bytes, stage, p = cfg->pipeline_model_parallel_size;
    RC_TRY(rc_setting_make(cfg, &setting, err));
    RC_TRY(retained_by(graph, &setting, text->mem, &bytes, err));
    RC_TRY(rc_text_printf(
        text, err,
        "our count from the settings: a layer retains %s of activations for each "
        "micro-batch (%s)",
        rc_format_bytes(bytes, size), rc_setting_name(&setting, name)));
    if (cfg->num_layers > 0 && p > 0 && cfg->num_layers % p == 0 &&
        rc_mul(bytes, cfg->num_layers, &stage))
        RC_TRY(rc_text_printf(
            text, err, ", %" PRId64 " layers and %" PRId64 " in flight on the first stage %s",
            cfg->num_layers / p, p, rc_format_bytes(stage, total)));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        rc_setting other;
        if (strcmp(others[i], name) == 0 || !rc_setting_parse(others[i], &other))
            continue;
        RC_TRY(say_setting(graph, others[i], &other, text, err));
    }
    return RC_OK;
}

rc_code diag_predict(const rc_config *cfg, rc_arena *mem, const char **out, rc_error *err)
{
    rc_error ignored = {0}; /* settings that cannot be counted are no fault of the diagnosis */
    rc_graph *graph;
    rc_text text = {.mem = mem};
    *out = NULL;
    if (make_graph(cfg, mem, &graph, &ignored) != RC_OK)
        return ignored.code == RC_E_MEMORY
                   ? RC_FAIL(err, RC_E_MEMORY, RC_NOWHERE, "%s", ignored.msg)
                   : RC_OK;
    rc_code code = say(cfg, graph, &text, &ignored);
    if (code == RC_E_MEMORY)
        return RC_FAIL(err, RC_E_MEMORY, RC_NOWHERE, "%s", ignored.msg);
    if (code == RC_OK)
        *out = text.at;
    return RC_OK;
}
