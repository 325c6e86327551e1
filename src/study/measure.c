/* measure.c — a study of our own trainer: every run from the same weights, data and seed.
 *
 * takes  settings of a model and data, names of recompute settings
 * gives  a judged rc_study
 */
#define _POSIX_C_SOURCE 200809L
#include "study/machine.h"

#include <recompute/args.h>
#include <recompute/cost.h>
#include <recompute/policy.h>
#include <recompute/study.h>
#include <recompute/train.h>

#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

/* A row over all its rounds. */
typedef struct slot {
    const char *setting;
    double *losses; /* [n_steps] of the first round */
} slot;

typedef struct measuring {
    const rc_study_plan *plan;
    const rc_study_watch *watch;
    rc_arena *mem;
    rc_study *study;
    slot *slots; /* [n_slots]: control, settings, control */
    size_t n_slots;
    size_t n_done;
    rc_machine_look before; /* the first run */
    /* of the run that is going on */
    slot *now;
    double fastest[RC_CLOCK_COUNT]; /* steady step; NAN before the first */
    double cpu_before;              /* the step that is going on */
    bool is_other_loss;             /* than in the first round */
} measuring;

/* --- one run */

static double read_clock(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Every step does the same work and what disturbs one only adds to it, so a run's fastest step says most
 * of the setting (Chen and Revels 2016, "Robust benchmarking in noisy environments", section III): beside
 * two programs that keep both cores busy it is spread half as wide as the median step. */
static void on_event(void *user, const rc_train_event *event)
{
    measuring *m = user;
    double cpu = read_clock(CLOCK_PROCESS_CPUTIME_ID), cpu_before = m->cpu_before;
    m->cpu_before = cpu;
    if (event->kind != RC_TRAIN_STEP || event->iteration > m->plan->n_steps)
        return;
    double *loss = &m->now->losses[event->iteration - 1];
    if (m->study->n_rounds == 1)
        *loss = event->loss;
    else if (memcmp(loss, &event->loss, sizeof *loss) != 0)
        m->is_other_loss = true;
    if (event->iteration <= m->plan->n_warmup)
        return;
    m->fastest[RC_CLOCK_WALL] = fmin(m->fastest[RC_CLOCK_WALL], event->seconds);
    m->fastest[RC_CLOCK_CPU] = fmin(m->fastest[RC_CLOCK_CPU], cpu - cpu_before);
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
    return rc_train_refuse_unknown(*cfg, err);
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
    const int64_t beside_bytes =
        result.process_peak_bytes - result.process_before_bytes - result.touched_bytes;
    if (result.process_peak_bytes > 0 && beside_bytes > m->study->beside_bytes)
        m->study->beside_bytes = beside_bytes;
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
    m->fastest[RC_CLOCK_WALL] = m->fastest[RC_CLOCK_CPU] = (double)NAN;
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
    if (!row->is_pass)
        return RC_OK;
    rc_study_sample *sample = &row->rounds[m->study->n_rounds - 1];
    sample->seconds[RC_CLOCK_WALL] = m->fastest[RC_CLOCK_WALL];
    sample->seconds[RC_CLOCK_CPU] = m->fastest[RC_CLOCK_CPU];
    return RC_OK;
}

/* --- all runs */

/* At least the rounds that are made in any case lie ahead. */
static void tell(const measuring *m, size_t s, size_t n_left_here)
{
    const rc_study *study = m->study;
    int64_t n_rounds_left = study->rules.n_least - (int64_t)study->n_rounds;
    size_t n_left = n_left_here + (n_rounds_left > 0 ? (size_t)n_rounds_left * m->n_slots : 0);
    if (!m->watch || !m->watch->progress)
        return;
    double passed = read_clock(CLOCK_MONOTONIC) - m->before.at;
    double each = m->n_done ? passed / (double)m->n_done : (double)NAN;
    rc_study_progress progress = {.name = m->plan->name,
                                  .setting = m->slots[s].setting,
                                  .n_done = m->n_done,
                                  .n_runs = m->n_done + n_left,
                                  .seconds_left = each * (double)n_left};
    m->watch->progress(m->watch->user, &progress);
}

static rc_code make_slots(measuring *m, rc_error *err)
{
    const rc_study_plan *plan = m->plan;
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
    m->study->rules = plan->rules;
    m->study->is_cpu_fair = !plan->is_spinning;
    for (size_t s = 0; s < m->n_slots; s++) {
        RC_TRY(RC_NEW(m->mem, &m->slots[s].losses, plan->n_steps, err));
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

/* One run of each row in `order`; when in the round, says its place between the controls. */
static rc_code run_round(measuring *m, const size_t *order, size_t n, rc_error *err)
{
    RC_TRY(rc_study_add_round(m->study, m->mem, err));
    for (size_t i = 0; i < n; i++) {
        rc_study_row *row = &m->study->rows[order[i]];
        row->rounds[m->study->n_rounds - 1].at = n > 1 ? (double)i / (double)(n - 1) : 0;
        tell(m, order[i], n - i);
        RC_TRY(run_slot(m, order[i], err));
        m->n_done++;
    }
    return RC_OK;
}

rc_code rc_study_make(const rc_study_plan *plan, const rc_study_watch *watch, rc_arena *mem,
                      rc_study **out, rc_error *err)
{
    measuring m = {.plan = plan, .watch = watch, .mem = mem};
    size_t *order, n;
    if (plan->rules.n_least < 1 || plan->n_warmup < 0 || plan->n_steps <= plan->n_warmup)
        return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE,
                       "a study needs at least one round and more steps than warm-up steps");
    RC_TRY(make_slots(&m, err));
    RC_TRY(RC_NEW(mem, &order, m.n_slots, err));
    rc_machine_look_now(&m.before);
    for (;;) {
        rc_machine_load_since(&m.before, false, &m.study->load);
        RC_TRY(rc_study_next_round(m.study, m.study->load.seconds, mem, order, &n, err));
        if (n == 0)
            break;
        RC_TRY(run_round(&m, order, n, err));
    }
    RC_TRY(rc_study_judge(m.study, mem, err));
    *out = m.study;
    return RC_OK;
}
