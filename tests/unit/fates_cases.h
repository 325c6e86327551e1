/* fates_cases.h — the rows of fates.def and graph_lacks.def as training sees them; a tiny run as text. */
#ifndef RC_TESTS_FATES_CASES_H
#define RC_TESTS_FATES_CASES_H

#include "check.h"

#include <recompute/read.h>
#include <recompute/train.h>

#include "args/flags.h"
#include "graph/lacks.h"
#include "train/fates.h"
#include "train/training.h"
#include "train_files.h"

#include <inttypes.h>

enum { MOST_WORDS = 24, N_SHOWN = 40 };
static char folder[64];

static inline int open_all(void **state)
{
    char text[3000];
    (void)state;
    make_temp_folder(folder);
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)('a' + i * i % 23);
    write_bytes(path_in(folder, "text"), text, sizeof text);
    return 0;
}

static inline int close_all(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

/* --- a tiny run, and all that a setting may change of it */

static const char base[] =
    "model: {num_layers: 2, hidden_size: 8, num_attention_heads: 2, seq_length: 8,\n"
    "  attention_dropout: 0.1, hidden_dropout: 0.1, make_vocab_size_divisible_by: 16}\n"
    "train: {train_iters: 3, micro_batch_size: 2, global_batch_size: 4, eval_interval: 2,\n"
    "  eval_iters: 1}\n"
    "optimizer: {lr: 0.01, weight_decay: 0.1}\n"
    "scheduler: {lr_decay_style: cosine, lr_warmup_iters: 1}\n"
    "dataset: {split: '80,20'}\n"
    "engine: {threads: 1}\n";

static inline rc_code read_config(const char *const *words, size_t n, rc_arena *mem,
                                  rc_config **cfg, rc_error *err)
{
    rc_inputs said;
    rc_doc *docs[2];
    rc_input inputs[MOST_WORDS + 2];
    const char *data;
    RC_TRY(rc_arena_printf(mem, &data, err, "dataset.data_path=[%s/text]", folder));
    RC_TRY(rc_yaml_read("base.yaml", base, strlen(base), mem, &docs[0], err));
    RC_TRY(rc_override_read(&data, 1, mem, &docs[1], err));
    RC_TRY(rc_inputs_read(words, n, mem, &said, err));
    inputs[0] = (rc_input){docs[0], RC_FROM_FILE};
    inputs[1] = (rc_input){docs[1], RC_FROM_FILE};
    memcpy(inputs + 2, said.at, said.n * sizeof *inputs);
    return rc_config_make(inputs, said.n + 2, mem, cfg, err);
}

typedef struct seen {
    double shown[N_SHOWN];
    int n;
} seen;

static inline void see(void *user, const rc_train_event *event)
{
    seen *s = user;
    const double all[] = {(double)event->kind, event->loss, event->grad_norm, event->next_lr};
    bool is_number = event->kind == RC_TRAIN_STEP || event->kind == RC_TRAIN_VALID ||
                     event->kind == RC_TRAIN_SAVE;
    for (size_t i = 0; is_number && i < 4 && s->n < N_SHOWN; i++)
        s->shown[s->n++] = all[i];
}

static inline void print_sum(const rc_weight *weight, FILE *to)
{
    double sum = 0;
    int64_t n = weight->dims[0] * (weight->n_dims < 2 ? 1 : weight->dims[1]);
    for (int64_t i = 0; i < n; i++)
        sum += (double)((const float *)weight->at)[i];
    fprintf(to, "%s %.17g\n", weight->name, sum);
}

/* What came out, as text: the error, or the graph, the plan, the data and the numbers of every step. */
static inline rc_code run(const char *const *words, size_t n, bool is_run, char **out,
                          rc_error *err)
{
    static const char *const nouns[] = {"graph", "policy", "cost", "data"};
    check_text text;
    rc_config *cfg;
    rc_training *training = NULL;
    rc_train_result result = {0};
    seen s = {.n = 0};
    rc_train_watch watch = {see, NULL, &s};
    rc_arena *mem = rc_arena_open();
    check_open(&text);
    rc_code code = read_config(words, n, mem, &cfg, err);
    if (code == RC_OK)
        code = rc_training_open(cfg, mem, &training, err);
    if (code == RC_OK && is_run)
        code = rc_training_run(training, &watch, &result, err);
    for (size_t i = 0; code == RC_OK && i < sizeof nouns / sizeof *nouns; i++)
        assert_ok(rc_training_dump(training, nouns[i], text.to, err));
    for (size_t i = 0; code == RC_OK && i < training->n_weights; i++)
        print_sum(&training->weights[i], text.to);
    for (int i = 0; i < s.n; i++)
        fprintf(text.to, "%.17g\n", s.shown[i]);
    if (code == RC_OK)
        fprintf(text.to, "budget %" PRId64 ", threads %d, log %" PRId64 "\n",
                training->budget_bytes, training->set.n_threads, training->set.log_interval);
    if (code != RC_OK)
        fprintf(text.to, "%s\n", err->msg);
    static char file[256]; /* the error outlives the arena */
    if (err->where.file) {
        snprintf(file, sizeof file, "%s", err->where.file);
        err->where.file = file;
    }
    rc_training_close(training);
    rc_arena_close(mem);
    *out = check_close(&text);
    return code;
}

static inline char *run_well(const char *const *words, size_t n)
{
    rc_error err = {0};
    char *out;
    if (run(words, n, true, &out, &err) != RC_OK)
        fail_msg("%s: %s", n ? words[n - 1] : "the base", err.msg);
    return out;
}

/* --- the rows of both tables */

typedef struct rule {
    const rc_ask *ask;
    rc_fate_kind kind;
    bool is_lack;
} rule;

static inline rule rule_of_lack(const rc_ask *ask)
{
    static const rc_fate_kind kinds[] = {RC_FATE_USED, RC_FATE_HARMLESS, RC_FATE_REFUSED};
    const rc_lack *row = (const rc_lack *)(const void *)ask;
    return (rule){ask, kinds[row->of[RC_PROFILE_ENGINE]], true};
}

static inline const rule *list_rules(size_t *n)
{
    static rule rules[1100];
    size_t n_fates, n_lacks;
    const rc_fate *fates = rc_fate_list(&n_fates);
    const rc_lack *lacks = rc_lack_list(&n_lacks);
    *n = n_fates + n_lacks;
    assert_true(*n <= sizeof rules / sizeof *rules);
    for (size_t i = 0; i < n_fates; i++)
        rules[i] = (rule){&fates[i].ask, fates[i].kind, false};
    for (size_t i = 0; i < n_lacks; i++)
        rules[n_fates + i] = rule_of_lack(&lacks[i].ask);
    return rules;
}

static inline bool is_family(const rc_ask *row)
{
    return row->key[strlen(row->key) - 1] == '*';
}

/* `ask` is NULL where no table has the setting. A row of its own goes before a family's. */
static inline rule choose(const rc_fate *fate, const rc_ask *lack)
{
    if (lack && (!fate || is_family(&fate->ask)))
        return rule_of_lack(lack);
    return fate ? (rule){&fate->ask, fate->kind, false} : (rule){.ask = NULL};
}

static inline rule rule_of_field(rc_field field)
{
    const rc_asks lacks = rc_lack_asks();
    return choose(rc_fate_of_field(field), rc_asks_of_field(&lacks, field));
}

static inline rule rule_of_argument(const char *name)
{
    const rc_asks lacks = rc_lack_asks();
    return choose(rc_fate_of_argument(name), rc_asks_of_argument(&lacks, name));
}

static inline bool has_section(const rc_ask *row)
{
    return strchr(row->key, '.') != NULL;
}

/* --- arguments */

static inline size_t words_of(const rc_flag *flag, const char *value, char buf[100],
                              const char *words[2])
{
    snprintf(buf, 100, "--%s", flag->name);
    words[0] = buf;
    words[1] = value ? value : "1";
    if (flag->takes == RC_FLAG_WORD && *flag->choices && !value) {
        static char choice[64];
        snprintf(choice, sizeof choice, "%.*s", (int)strcspn(flag->choices, " "),
                 flag->choices);
        words[1] = choice;
    }
    return flag->takes == RC_FLAG_NONE ? 1 : 2;
}

/* The argument as the config sees it when no field of ours stands for it; else false. */
static inline bool is_no_field(const rc_flag *flag, rc_arena *mem)
{
    char buf[100];
    const char *words[2];
    rc_inputs said;
    rc_config *cfg;
    assert_ok(rc_inputs_read(words, words_of(flag, NULL, buf, words), mem, &said, NULL));
    return rc_config_make(said.at, said.n, mem, &cfg, NULL) == RC_OK && cfg->n_unknown > 0 &&
           cfg->unknown[0].fault == RC_KEY_LISTED;
}

static inline bool has_neutral(const rc_ask *row, const char *value)
{
    for (const char *const *word = row->neutral; *word; word++)
        if (strcmp(*word, value) == 0)
            return true;
    return false;
}

/* A value of the right type for that key that is none of the neutral ones. */
static inline const char *other_value(const rc_ask *row)
{
    for (int i = 0; i < RC_FIELD_COUNT; i++) {
        const rc_field_facts *facts = rc_field_find((rc_field)i);
        if (strcmp(rc_field_key((rc_field)i), row->key) != 0)
            continue;
        switch (facts->type) {
        case RC_FIELD_TYPE_BOOL:
            return has_neutral(row, "true") ? "false" : "true";
        case RC_FIELD_TYPE_INT:
            return "7";
        case RC_FIELD_TYPE_REAL:
            return "0.37";
        case RC_FIELD_TYPE_LIST:
        case RC_FIELD_TYPE_RAW:
            return "[7]";
        case RC_FIELD_TYPE_STR:
        case RC_FIELD_TYPE_BYTES:
            return "strange";
        }
    }
    return has_neutral(row, "true") ? "false" : has_neutral(row, "false") ? "true" : "strange";
}

#endif
