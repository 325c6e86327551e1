/* measure.c — a study of our own trainer: every run from the same weights, data and seed.
 *
 * takes  settings of a model and data, names of recompute settings
 * gives  a judged rc_study
 */
#include <recompute/cost.h>
#include <recompute/policy.h>
#include <recompute/read.h>
#include <recompute/study.h>
#include <recompute/train.h>

#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

/* A row over all its repeats. */
typedef struct slot {
    const char *setting;
    double *losses;  /* [n_steps] of the first repeat */
    double *seconds; /* [n_repeats * n_steps] of steady steps */
    size_t n_seconds;
} slot;

typedef struct measuring {
    const rc_study_plan *plan;
    const rc_study_watch *watch;
    rc_arena *mem;
    rc_study *study;
    slot *slots; /* [n_slots]: control, settings, control */
    size_t n_slots;
    size_t n_done;
    /* of the run that is going on */
    slot *now;
    bool is_first_repeat;
    bool is_other_loss; /* than in the first repeat */
} measuring;

/* --- one run */

static void on_event(void *user, const rc_train_event *event)
{
    measuring *m = user;
    if (event->kind != RC_TRAIN_STEP || event->iteration > m->plan->n_steps)
        return;
    double *loss = &m->now->losses[event->iteration - 1];
    if (m->is_first_repeat)
        *loss = event->loss;
    else if (memcmp(loss, &event->loss, sizeof *loss) != 0)
        m->is_other_loss = true;
    if (event->iteration > m->plan->n_warmup)
        m->now->seconds[m->now->n_seconds++] = event->seconds;
}

static bool on_stop(void *user)
{
    const measuring *m = user;
    return m->watch && m->watch->is_stopping && m->watch->is_stopping(m->watch->user);
}

/* The words of an override text, without the quotes that a shell would take off. */
static rc_code add_words(const char *text, const char **words, size_t *n, rc_arena *mem,
                         rc_error *err)
{
    while (*text) {
        size_t is_quoted = *text == '\'';
        const char *from = text + is_quoted;
        size_t length = strcspn(from, is_quoted ? "'" : " ");
        RC_TRY(rc_arena_copy(mem, from, length, &words[(*n)++], err));
        text = from + length + (is_quoted && from[length]);
        text += strspn(text, " ");
    }
    return RC_OK;
}

static rc_code parse_setting(const char *name, rc_setting *out, rc_error *err)
{
    char safe[128];
    if (rc_setting_parse(name, out))
        return RC_OK;
    return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE,
                   "%s is no recompute setting; write [] or [core_attn,mlp] or full/block/4 or "
                   "full/uniform/1",
                   rc_text_printable(name, strlen(name), safe, sizeof safe));
}

/* A study takes the first steps of the run that the config describes: what decides the learning rate is
 * as long as there. Without a length the rate stays what it is. */
static rc_code add_rate_words(const measuring *m, const char **words, size_t *n, rc_error *err)
{
    rc_config *cfg;
    RC_TRY(rc_config_make(m->plan->inputs, m->plan->n_inputs, m->mem, &cfg, err));
    int64_t length =
        cfg->lr_decay_iters != RC_NULL_INT ? cfg->lr_decay_iters : cfg->train_iters;
    if (length == RC_NULL_INT)
        return add_words("scheduler.lr_decay_style=constant scheduler.lr_warmup_iters=0 "
                         "scheduler.lr_warmup_fraction=null",
                         words, n, m->mem, err);
    return rc_arena_printf(m->mem, &words[(*n)++], err, "scheduler.lr_decay_iters=%" PRId64,
                           length);
}

/* The model's settings, then the row's recompute setting, then what every run of a study shares:
 * its length, no evaluation, no checkpoint read or written. */
static rc_code make_config(const measuring *m, const char *name, rc_config **cfg, rc_error *err)
{
    enum { MAX_WORDS = 16 };
    const char *words[MAX_WORDS];
    char overrides[400];
    size_t n_words = 0, n_inputs = m->plan->n_inputs;
    rc_setting setting;
    rc_input *inputs;
    rc_doc *doc;
    RC_TRY(parse_setting(name, &setting, err));
    RC_TRY(add_words(rc_setting_overrides(&setting, overrides), words, &n_words, m->mem, err));
    RC_TRY(rc_arena_printf(m->mem, &words[n_words++], err, "train.train_iters=%" PRId64,
                           m->plan->n_steps));
    RC_TRY(add_words("train.eval_iters=0 train.exit_interval=null checkpoint.save=null "
                     "checkpoint.load=null",
                     words, &n_words, m->mem, err));
    RC_TRY(add_rate_words(m, words, &n_words, err));
    RC_ASSERT(n_words <= MAX_WORDS);
    RC_TRY(rc_override_read(words, n_words, m->mem, &doc, err));
    RC_TRY(RC_NEW(m->mem, &inputs, n_inputs + 1, err));
    memcpy(inputs, m->plan->inputs, n_inputs * sizeof *inputs);
    inputs[n_inputs] = (rc_input){doc, RC_FROM_OVERRIDE};
    RC_TRY(rc_config_make(inputs, n_inputs + 1, m->mem, cfg, err));
    return rc_config_refuse_unknown(*cfg, err);
}

static int64_t micro_batches(const rc_config *cfg)
{
    bool has_global = cfg->global_batch_size != RC_NULL_INT && cfg->micro_batch_size > 0;
    return has_global ? cfg->global_batch_size / cfg->micro_batch_size : 1;
}

static rc_code run_training(measuring *m, rc_training *training, rc_study_row *row,
                            rc_error *err)
{
    rc_train_watch watch = {on_event, on_stop, m};
    rc_train_result result;
    RC_TRY(rc_training_run(training, &watch, &result, err));
    if (result.is_stopped)
        return RC_FAIL(err, RC_E_STOPPED, RC_NOWHERE,
                       "stopped as asked after %zu runs; nothing is compared", m->n_done);
    row->predicted_bytes = result.peak_bytes;
    if (result.touched_bytes > row->peak_bytes)
        row->peak_bytes = result.touched_bytes;
    row->loss = result.last_loss;
    row->n_iterations = result.iteration;
    return RC_OK;
}

static rc_code run_once(measuring *m, rc_study_row *row, rc_error *err)
{
    rc_config *cfg;
    rc_training *training;
    RC_TRY(make_config(m, m->now->setting, &cfg, err));
    RC_TRY(rc_training_open(cfg, m->mem, &training, err));
    row->replay_flops = rc_training_cost(training)->recompute_flops * micro_batches(cfg);
    rc_code code = run_training(m, training, row, err);
    rc_training_close(training);
    return code;
}

/* A row that cannot run (a label this model refuses, a budget it does not meet) is a result; a
 * control that cannot, or a user who stops, ends the study. */
static rc_code run_slot(measuring *m, size_t s, rc_error *err)
{
    rc_study_row *row = &m->study->rows[s];
    rc_error why = {.code = RC_OK};
    if (!row->is_pass)
        return RC_OK;
    rc_mark mark = rc_arena_mark(m->mem);
    m->now = &m->slots[s];
    m->is_other_loss = false;
    rc_code code = run_once(m, row, &why);
    if (code != RC_OK && (row->is_control || code == RC_E_STOPPED || code == RC_E_BUG)) {
        if (err && err->code == RC_OK)
            *err = why; /* its position lives in the arena, which so is not rewound */
        return code;
    }
    rc_arena_rewind(m->mem, mark);
    if (code == RC_OK && m->is_other_loss) {
        row->is_pass = false;
        row->failure = "two runs of this setting had different losses";
    }
    if (code != RC_OK) {
        row->is_pass = false;
        RC_TRY(rc_arena_copy(m->mem, why.msg, strlen(why.msg), &row->failure, err));
    }
    return RC_OK;
}

/* --- all runs */

static double now_seconds(void)
{
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void tell(const measuring *m, size_t s, double began)
{
    size_t n_runs = m->n_slots * (size_t)m->plan->n_repeats;
    if (!m->watch || !m->watch->progress)
        return;
    double each = m->n_done ? (now_seconds() - began) / (double)m->n_done : (double)NAN;
    rc_study_progress progress = {.name = m->plan->name,
                                  .setting = m->slots[s].setting,
                                  .n_done = m->n_done,
                                  .n_runs = n_runs,
                                  .seconds_left = each * (double)(n_runs - m->n_done)};
    m->watch->progress(m->watch->user, &progress);
}

static rc_code make_slots(measuring *m, rc_error *err)
{
    const rc_study_plan *plan = m->plan;
    size_t n_times = (size_t)(plan->n_repeats * plan->n_steps);
    rc_setting setting;
    RC_TRY(RC_NEW(m->mem, &m->slots, plan->n_settings + 2, err));
    m->slots[m->n_slots++].setting = "[]";
    for (size_t i = 0; i < plan->n_settings; i++)
        if (strcmp(plan->settings[i], "[]") != 0)
            m->slots[m->n_slots++].setting = plan->settings[i];
    m->slots[m->n_slots++].setting = "[]";
    for (size_t s = 0; s < m->n_slots; s++)
        RC_TRY(parse_setting(m->slots[s].setting, &setting, err));
    RC_TRY(RC_NEW(m->mem, &m->study, 1, err));
    RC_TRY(RC_NEW(m->mem, &m->study->rows, m->n_slots, err));
    m->study->name = plan->name;
    m->study->title = plan->title;
    m->study->n_rows = m->n_slots;
    m->study->n_repeats = plan->n_repeats;
    for (size_t s = 0; s < m->n_slots; s++) {
        RC_TRY(RC_NEW(m->mem, &m->slots[s].losses, plan->n_steps, err));
        RC_TRY(RC_NEW(m->mem, &m->slots[s].seconds, n_times, err));
        m->study->rows[s] = (rc_study_row){.setting = m->slots[s].setting,
                                           .is_control = s == 0 || s + 1 == m->n_slots,
                                           .is_pass = true,
                                           .predicted_bytes = RC_STUDY_UNKNOWN,
                                           .peak_bytes = RC_STUDY_UNKNOWN,
                                           .peak_rank = RC_STUDY_UNKNOWN,
                                           .replay_flops = RC_STUDY_UNKNOWN,
                                           .losses = m->slots[s].losses,
                                           .n_losses = (size_t)plan->n_steps,
                                           .loss = (double)NAN};
    }
    return RC_OK;
}

rc_code rc_study_make(const rc_study_plan *plan, const rc_study_watch *watch, rc_arena *mem,
                      rc_study **out, rc_error *err)
{
    measuring m = {.plan = plan, .watch = watch, .mem = mem};
    if (plan->n_repeats < 1 || plan->n_warmup < 0 || plan->n_steps <= plan->n_warmup)
        return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE,
                       "a study needs at least one repeat and more steps than warm-up steps");
    RC_TRY(make_slots(&m, err));
    double began = now_seconds();
    for (int64_t repeat = 0; repeat < plan->n_repeats; repeat++) {
        m.is_first_repeat = repeat == 0;
        for (size_t s = 0; s < m.n_slots; s++) {
            tell(&m, s, began);
            RC_TRY(run_slot(&m, s, err));
            m.n_done++;
        }
    }
    for (size_t s = 0; s < m.n_slots; s++)
        m.study->rows[s].step_seconds = rc_spread_of(m.slots[s].seconds, m.slots[s].n_seconds);
    RC_TRY(rc_study_judge(m.study, mem, err));
    *out = m.study;
    return RC_OK;
}
