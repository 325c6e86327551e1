/* predict.c — what our own estimate says about a Megatron job, to be set beside what its log reports.
 *
 * takes  the settings
 * gives  a sentence: the rank that should hold most, how much, when, and the same under other settings; none for a job
 *        that the estimate refuses, or of which it leaves something out
 *
 * The numbers are those of `recompute estimate --for megatron-lm` (docs/estimate.md): the one memory model of a job.
 */
#include "diagnose/diag.h"

#include "base/num.h"
#include "base/text.h"

#include <recompute/estimate.h>

#include <inttypes.h>
#include <string.h>

static rc_code make(const rc_config *cfg, const rc_setting *setting, rc_arena *mem,
                    rc_estimate **out, rc_error *err)
{
    const bool is_local = cfg->transformer_impl && strcmp(cfg->transformer_impl, "local") == 0;
    const rc_estimate_request request = {.cfg = cfg,
                                         .profile = is_local ? RC_PROFILE_MEGATRON_LOCAL
                                                             : RC_PROFILE_MEGATRON_TE,
                                         .setting = setting};
    return rc_estimate_make(&request, mem, out, err);
}

static rc_code say_other(const rc_config *cfg, const char *name, rc_text *text, rc_error *err)
{
    rc_setting setting;
    rc_estimate *estimate;
    char size[32];
    if (!rc_setting_parse(name, &setting))
        return RC_OK;
    RC_TRY(make(cfg, &setting, text->mem, &estimate, err));
    return rc_text_printf(
        text, err, "; %s %s", name,
        rc_format_bytes(estimate->ranks[estimate->hottest].later.bytes, size));
}

static rc_code say(const rc_config *cfg, rc_text *text, rc_error *err)
{
    static const char *const others[] = {"none", "selective/core_attn", "selective/mlp",
                                         "full/uniform/1"};
    char name[160], size[32];
    rc_estimate *estimate;
    RC_TRY(make(cfg, NULL, text->mem, &estimate, err));
    if (estimate->n_lacks > 0)
        return RC_OK;
    const rc_estimate_rank *hot = &estimate->ranks[estimate->hottest];
    RC_TRY(rc_text_printf(text, err,
                          "our count from the settings (%s): most is held on pipeline stage "
                          "%" PRId64 ", %s in the %s",
                          rc_setting_name(&estimate->setting, name), hot->rank.pp,
                          rc_format_bytes(hot->later.bytes, size),
                          rc_phase_name(hot->later.phase)));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(others[i], name) != 0)
            RC_TRY(say_other(cfg, others[i], text, err));
    return RC_OK;
}

/* Settings that cannot be counted are no fault of the diagnosis. */
rc_code diag_predict(const rc_config *cfg, rc_arena *mem, const char **out, rc_error *err)
{
    rc_error ignored = {0};
    rc_text text = {.mem = mem};
    *out = NULL;
    rc_code code = say(cfg, &text, &ignored);
    if (code == RC_E_MEMORY)
        return RC_FAIL(err, RC_E_MEMORY, RC_NOWHERE, "%s", ignored.msg);
    if (code == RC_OK)
        *out = text.at;
    return RC_OK;
}
