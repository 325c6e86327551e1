/* model.c — from config files and overrides to a costed schedule. */
#include "model.h"

#include "base/text.h"

#include <recompute/check.h>
#include <recompute/read.h>
#include <recompute/train.h>

#include <string.h>

/* Vocabulary of text read as bytes: 256 and the end of a document. */
enum { BYTES_VOCAB = 257 };

static bool is_override(const char *word)
{
    return strchr(word, '=') != NULL || word[0] == '~';
}

rc_code rc_model_read(const rc_args *args, rc_arena *mem, rc_model *out, rc_error *err)
{
    const char **overrides;
    rc_input *inputs;
    size_t n_inputs = 0, n_overrides = 0;
    RC_TRY(RC_NEW(mem, &overrides, args->n_words + 1, err));
    RC_TRY(RC_NEW(mem, &inputs, args->n_words + 1, err));
    for (size_t i = 0; i < args->n_words; i++) {
        rc_doc *doc;
        if (is_override(args->words[i])) {
            overrides[n_overrides++] = args->words[i];
            continue;
        }
        RC_TRY(rc_doc_read(args->words[i], mem, &doc, err));
        inputs[n_inputs++] = (rc_input){doc, RC_FROM_FILE};
    }
    if (n_overrides) {
        rc_doc *doc;
        RC_TRY(rc_override_read(overrides, n_overrides, mem, &doc, err));
        inputs[n_inputs++] = (rc_input){doc, RC_FROM_OVERRIDE};
    }
    if (n_inputs == 0)
        return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE,
                       "no config: give a YAML file, or settings such as model.num_layers=4");
    RC_TRY(rc_config_make(inputs, n_inputs, mem, &out->cfg, err));
    RC_TRY(rc_config_refuse_unknown(out->cfg, err));
    return rc_check_refuse_errors(out->cfg, mem, err);
}

static bool wants(const char *dump, const char *noun)
{
    size_t n = strlen(noun);
    for (const char *at = dump; at && *at; at += strcspn(at, ","), at += *at == ',')
        if (strncmp(at, noun, n) == 0 && (at[n] == ',' || at[n] == '\0'))
            return true;
    return false;
}

static rc_code check_dump(const char *dump, rc_error *err)
{
    static const char *const nouns[] = {"config", "graph", "policy", "schedule", "cost"};
    for (const char *at = dump; at && *at; at += strcspn(at, ","), at += *at == ',') {
        size_t n = strcspn(at, ","), i = 0;
        while (i < 5 && (strlen(nouns[i]) != n || strncmp(at, nouns[i], n) != 0))
            i++;
        char safe[64];
        if (i == 5)
            return RC_FAIL(
                err, RC_E_INPUT, RC_NOWHERE,
                "--dump knows no %s; it prints config, graph, policy, schedule, cost",
                rc_text_printable(at, n, safe, sizeof safe));
    }
    return RC_OK;
}

static void note_inert_labels(const rc_model *model)
{
    for (int i = 0; i < RC_LABEL_COUNT; i++)
        if ((model->setting.labels >> i & 1u) &&
            rc_graph_count_regions(model->graph, (rc_label)i) == 0)
            fprintf(stderr,
                    "note: label %s acts on no layer of this model: it changes nothing\n",
                    rc_label_find_facts((rc_label)i)->name);
}

rc_code rc_model_make(rc_model *out, const char *dump, rc_arena *mem, rc_error *err)
{
    int n_threads;
    RC_TRY(check_dump(dump, err));
    RC_TRY(rc_train_threads(out->cfg, &n_threads, err));
    if (wants(dump, "config"))
        rc_config_print(out->cfg, stdout);
    RC_TRY(rc_setting_make(out->cfg, &out->setting, err));
    RC_TRY(rc_graph_make(out->cfg, RC_PROFILE_ENGINE, BYTES_VOCAB, mem, &out->graph, err));
    note_inert_labels(out);
    if (wants(dump, "graph"))
        rc_graph_print(out->graph, stdout);
    RC_TRY(rc_policy_make(out->graph, &out->setting, mem, &out->policy, err));
    if (wants(dump, "policy"))
        rc_policy_print(out->policy, stdout);
    RC_TRY(rc_schedule_make(out->policy, n_threads, mem, &out->schedule, err));
    if (wants(dump, "schedule"))
        rc_schedule_print(out->schedule, stdout);
    RC_TRY(rc_cost_make(out->schedule, mem, &out->cost, err));
    if (wants(dump, "cost"))
        rc_cost_print(out->cost, stdout);
    return RC_OK;
}
