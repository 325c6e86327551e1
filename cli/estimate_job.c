/* estimate_job.c — what every rank of a Megatron job takes, and whether it fits a GPU.
 *
 * takes  a configuration, --gpu or --budget
 * gives  the report, and a verdict in its first line and exit status
 */
#include "estimate_job.h"
#include "model.h"

#include "base/num.h"

#include <inttypes.h>
#include <string.h>

/* Bytes that the job's allocator may hand out; 0: no limit is given. */
static rc_code find_room(const rc_args *args, const rc_gpu **gpu, int64_t *room, rc_error *err)
{
    const char *budget = rc_args_find(args, "--budget"), *name = rc_args_find(args, "--gpu");
    *gpu = NULL;
    *room = 0;
    if (name) {
        *gpu = rc_gpu_find(name);
        if (!*gpu)
            return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE,
                           "--gpu %s is not known; `recompute list gpus` shows them, --budget "
                           "gives bytes",
                           name);
        *room = rc_gpu_room((*gpu)->memory_bytes);
    }
    if (budget && (!rc_parse_bytes(budget, room) || *room < 1))
        return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE,
                       "--budget %s is no size; write it as 72GiB or 80GB", budget);
    return RC_OK;
}

/* A number of at most two digits; -1 where there is none. */
static int take_number(const char **at)
{
    int n = 0, n_digits = 0;
    for (; **at >= '0' && **at <= '9' && n_digits < 3; ++*at, n_digits++)
        n = 10 * n + (**at - '0');
    return n_digits > 0 && n_digits < 3 ? n : -1;
}

/* "2.17" and "2.17.1" are 217; 0 where it is not said. */
static rc_code find_te_version(const rc_args *args, int *out, rc_error *err)
{
    const char *text = rc_args_find(args, "--te"), *at = text;
    *out = 0;
    if (!text)
        return RC_OK;
    const int first = take_number(&at);
    at += *at == '.';
    const int second = take_number(&at);
    if (first < 1 || second < 0 || (*at && *at != '.'))
        return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE,
                       "--te %s is no version of Transformer Engine; write it as 2.17", text);
    *out = 100 * first + second;
    return RC_OK;
}

static const char *fit_words(rc_fit fit, int64_t bytes, int64_t room, char buf[96])
{
    char size[32];
    rc_format_bytes(bytes > room ? bytes - room : room - bytes, size);
    snprintf(buf, 96, "%s%s%s",
             fit == RC_FIT_UNKNOWN ? "unknown: without what is not modelled it " : "",
             bytes > room ? "does not fit by " : "fits with ", size);
    return buf;
}

/* The first line: whose memory this is, whether it fits, and how to get the other. */
static rc_code answer_table(const rc_estimate *estimate, int64_t room, rc_arena *mem,
                            rc_table **out, rc_error *err)
{
    static const rc_column columns[] = {{"of", "memory of", RC_UNIT_TEXT},
                                        {"room_bytes", "room of its allocator", RC_UNIT_BYTES},
                                        {"verdict", "verdict", RC_UNIT_TEXT}};
    const int64_t bytes = estimate->ranks[estimate->hottest].later.bytes;
    char buf[96];
    const char *verdict;
    rc_cell *row;
    RC_TRY(rc_table_make(mem, "answer", NULL, columns, 3, out, err));
    RC_TRY(rc_table_add_row(*out, &row, err));
    row[0] = rc_cell_text("every rank of a Megatron job (--for engine: `recompute train`)");
    if (room == 0)
        return RC_OK;
    RC_TRY(rc_arena_printf(mem, &verdict, err, "%s",
                           fit_words(rc_estimate_judge(estimate, room), bytes, room, buf)));
    row[1] = rc_cell_int(room);
    row[2] = rc_cell_text(verdict);
    return RC_OK;
}

static rc_profile profile_of(const rc_config *cfg)
{
    const bool is_local = cfg->transformer_impl && strcmp(cfg->transformer_impl, "local") == 0;
    return is_local ? RC_PROFILE_MEGATRON_LOCAL : RC_PROFILE_MEGATRON_TE;
}

/* A multiple of the mean, from 1 on. */
static rc_code find_imbalance(const rc_args *args, double *out, rc_error *err)
{
    const char *text = rc_args_find(args, "--imbalance");
    *out = 0;
    if (text && (!rc_parse_real(text, out) || !(*out >= 1) || *out > 1024))
        return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE,
                       "--imbalance %s is no multiple of the mean; give 1 to 1024, as 1.3",
                       text);
    return RC_OK;
}

/* What the classes' defaults do not say and every launcher sets where nobody asks otherwise: the kernel adds the
 * gradients of weights, and gradients of bfloat16 are kept in float32. Arguments of Megatron-LM bring both themselves.
 * source  Megatron-Bridge models/gpt_provider.py (can_enable_gradient_accumulation_fusion), training/mixed_precision.py
 *         (MixedPrecisionConfig), recipes/common.py */
static void set_launched(rc_config *cfg)
{
    if (cfg->origin[RC_FIELD_gradient_accumulation_fusion].kind == RC_FROM_DEFAULT)
        cfg->gradient_accumulation_fusion = true;
    if (cfg->origin[RC_FIELD_grad_reduce_in_fp32].kind == RC_FROM_DEFAULT && cfg->bf16 &&
        strstr(cfg->main_grads_dtype, "32"))
        cfg->grad_reduce_in_fp32 = true;
}

rc_code rc_job_request_read(const rc_args *args, rc_arena *mem, rc_estimate_request *request,
                            int64_t *room, rc_error *err)
{
    rc_config *cfg;
    *request = (rc_estimate_request){0};
    RC_TRY(find_te_version(args, &request->te_version, err));
    RC_TRY(find_imbalance(args, &request->imbalance, err));
    RC_TRY(find_room(args, &request->gpu, room, err));
    RC_TRY(rc_model_read_config(args, mem, &cfg, err));
    rc_model_note_passed_over(cfg);
    set_launched(cfg);
    request->cfg = cfg;
    request->profile = profile_of(cfg);
    return RC_OK;
}

rc_code rc_estimate_job(const rc_args *args, rc_arena *mem, int *status, rc_error *err)
{
    const char *dump = rc_args_find(args, "--dump");
    rc_report report = {.n = 0};
    rc_estimate_request request;
    rc_estimate *estimate;
    rc_table *answer;
    int64_t room;
    RC_TRY(rc_job_request_read(args, mem, &request, &room, err));
    RC_TRY(rc_estimate_make(&request, mem, &estimate, err));
    if (rc_dump_wants(dump, "layout"))
        rc_layout_print(estimate->layout, stdout);
    if (rc_dump_wants(dump, "estimate"))
        rc_estimate_print(estimate, stdout);
    RC_TRY(answer_table(estimate, room, mem, &answer, err));
    rc_report_add(&report, answer, true);
    RC_TRY(rc_estimate_report(estimate, mem, &report, err));
    if (room > 0 && rc_estimate_judge(estimate, room) != RC_FIT_YES)
        *status = 1;
    return rc_report_write(&report, args->format, stdout, err);
}
