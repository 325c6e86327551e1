/* model.c — from config files and overrides to a costed schedule. */
#include "model.h"

#include "base/text.h"

#include <recompute/check.h>
#include <recompute/read.h>
#include <recompute/train.h>

#include <string.h>

rc_code rc_model_presets(const rc_args *args, rc_arena *mem, rc_input **out, size_t *n,
                         rc_error *err)
{
    const char *name;
    *n = 0;
    RC_TRY(RC_NEW(mem, out, args->n_options + args->n_words + 1, err));
    for (size_t i = 0; (name = rc_args_find_nth(args, "--model", i)) != NULL; i++) {
        const char *const words[] = {"--model", name};
        rc_inputs one;
        RC_TRY(rc_inputs_read_settings(words, 2, mem, &one, err));
        (*out)[(*n)++] = one.at[0];
    }
    return RC_OK;
}

/* Of a saved config of Bridge hundreds mean nothing here. */
enum { MOST_NOTED = 8 };

void rc_model_note_passed_over(const rc_config *cfg)
{
    size_t n = 0;
    char safe[80];
    for (size_t i = 0; i < cfg->n_unknown; i++) {
        const rc_unknown_key *key = &cfg->unknown[i];
        if (key->fault != RC_KEY_LISTED && key->fault != RC_KEY_NO_FIELD)
            continue;
        rc_text_printable(key->path, strlen(key->path), safe, sizeof safe);
        if (n < MOST_NOTED)
            fprintf(stderr, "%s%s",
                    n ? " " : "note: means nothing here and is passed over: ", safe);
        n++;
    }
    if (n > MOST_NOTED)
        fprintf(stderr, " and %zu more", n - MOST_NOTED);
    if (n)
        fputc('\n', stderr);
}

rc_code rc_model_read_config(const rc_args *args, rc_arena *mem, rc_config **out, rc_error *err)
{
    rc_inputs said;
    rc_input *all;
    size_t n;
    RC_TRY(rc_args_refuse_typos(args, err));
    RC_TRY(rc_model_presets(args, mem, &all, &n, err));
    RC_TRY(rc_inputs_read(args->words, args->n_words, mem, &said, err));
    for (size_t i = 0; i < said.n; i++)
        all[n++] = said.at[i];
    if (n == 0)
        return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE,
                       "no config: give a YAML file, --model NAME, Megatron-LM arguments, or "
                       "settings such as model.num_layers=4");
    return rc_config_make(all, n, mem, out, err);
}

static rc_code refuse(const rc_config *cfg, rc_arena *mem, rc_error *err)
{
    RC_TRY(rc_train_refuse_model(cfg, err));
    RC_TRY(rc_graph_check_sizes(cfg, err));
    return rc_check_refuse_errors(cfg, mem, err);
}

rc_code rc_model_read(const rc_args *args, rc_arena *mem, rc_model *out, rc_error *err)
{
    RC_TRY(rc_model_read_config(args, mem, &out->cfg, err));
    return refuse(out->cfg, mem, err);
}

rc_code rc_model_read_run(const rc_args *args, rc_arena *mem, rc_model *out, rc_error *err)
{
    RC_TRY(rc_model_read_config(args, mem, &out->cfg, err));
    RC_TRY(rc_config_refuse_foreign(out->cfg, err));
    return refuse(out->cfg, mem, err);
}

bool rc_dump_wants(const char *dump, const char *noun)
{
    size_t n = strlen(noun);
    for (const char *at = dump; at && *at; at += strcspn(at, ","), at += *at == ',')
        if (strncmp(at, noun, n) == 0 && (at[n] == ',' || at[n] == '\0'))
            return true;
    return false;
}

static rc_code check_dump(const char *dump, rc_error *err)
{
    for (const char *at = dump; at && *at; at += strcspn(at, ","), at += *at == ',') {
        size_t n = strcspn(at, ",");
        rc_noun noun;
        char safe[64];
        if (!rc_noun_find(at, n, &noun))
            return RC_FAIL(
                err, RC_E_INPUT, RC_NOWHERE,
                "--dump knows no %s; it prints config, graph, policy, schedule, cost",
                rc_text_printable(at, n, safe, sizeof safe));
    }
    return RC_OK;
}

static void note_inert_labels(const rc_passes *passes)
{
    for (int i = 0; i < RC_LABEL_COUNT; i++)
        if ((passes->setting->labels >> i & 1u) &&
            rc_graph_count_regions(passes->graph, (rc_label)i) == 0)
            fprintf(stderr,
                    "note: label %s acts on no layer of this model: it changes nothing\n",
                    rc_label_find_facts((rc_label)i)->name);
}

rc_code rc_model_make(rc_model *out, const char *dump, rc_arena *mem, rc_error *err)
{
    rc_passes *passes = &out->passes;
    *passes = (rc_passes){.cfg = out->cfg};
    RC_TRY(check_dump(dump, err));
    RC_TRY(rc_train_threads(out->cfg, &passes->n_threads, err));
    for (int noun = 0; noun < RC_NOUN_COUNT; noun++) {
        RC_TRY(rc_passes_make(passes, (rc_noun)noun, mem, err));
        if (noun == RC_NOUN_GRAPH)
            note_inert_labels(passes);
        if (rc_dump_wants(dump, rc_noun_name((rc_noun)noun)))
            rc_passes_print(passes, (rc_noun)noun, stdout);
    }
    return RC_OK;
}
