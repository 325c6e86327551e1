/* train/fates.c — every setting that a config holds is used, harmless or refused: fates.def.
 *
 * takes  a config: its fields, and the keys and arguments that are no field of ours
 * gives  the first that asks for what training would leave out, or that nobody here knows
 *
 * What the graph itself would leave out is refused by the graph (graph_lacks.def). Fields are looked
 * at in their order, then what is no field in the order of the input.
 */
#include "train/fates.h"

#include <recompute/graph.h>
#include <recompute/train.h>

#include "graph/lacks.h"

#define IS RC_ASK_IS
#define NEVER RC_ASK_NEVER
static const rc_fate fates[] = {
#define RC_FATE(key, kind, neutral, words) {{key, neutral, words}, RC_FATE_##kind},
#include "defs/fates.def"
#undef RC_FATE
};
#undef IS
#undef NEVER
enum { N_FATES = sizeof fates / sizeof *fates };

static const rc_asks table = {fates, N_FATES, sizeof *fates};

const rc_fate *rc_fate_list(size_t *n)
{
    *n = N_FATES;
    return fates;
}

static const rc_fate *fate_of(const rc_ask *row)
{
    return (const rc_fate *)(const void *)row;
}

const rc_fate *rc_fate_of_key(const char *path)
{
    return fate_of(rc_asks_of_key(&table, path));
}

const rc_fate *rc_fate_of_field(rc_field field)
{
    return fate_of(rc_asks_of_field(&table, field));
}

const rc_fate *rc_fate_of_argument(const char *argument)
{
    return fate_of(rc_asks_of_argument(&table, argument));
}

/* --- refusing */

static rc_code refuse_unknown(const rc_config *cfg, const rc_asked *asked, const rc_ask *row,
                              const void *user, rc_error *err)
{
    const rc_unknown_key *key = asked->unknown;
    const rc_asks lacks = rc_lack_asks();
    (void)cfg;
    (void)user;
    bool is_known =
        key->fault == RC_KEY_NO_CHOICE || row || rc_asks_of_unknown(&lacks, key) != NULL;
    if (!key->is_value && key->fault != RC_KEY_NOT_LISTED && key->fault != RC_KEY_GONE &&
        is_known)
        return RC_OK;
    return rc_config_refuse_key(key, err);
}

static rc_code need_vocabulary(const rc_config *cfg, const rc_asked *asked, const rc_ask *row,
                               const void *user, rc_error *err)
{
    (void)user;
    if (asked->unknown->is_value || asked->unknown->fault == RC_KEY_NO_CHOICE || !row ||
        fate_of(row)->kind != RC_FATE_VOCABULARY || cfg->vocab_size != RC_NULL_INT ||
        !asked->node || asked->node->kind == RC_DOC_NULL)
        return RC_OK;
    return RC_FAIL(err, RC_E_INPUT, asked->where,
                   "a tokenizer is not read here, so the size of its vocabulary is not "
                   "known; give --vocab-size or model.vocab_size");
}

/* A default is what the engine does, or its row would be refused in every run. */
static rc_code refuse_asked(const rc_config *cfg, const rc_asked *asked, const rc_ask *row,
                            const void *user, rc_error *err)
{
    (void)user;
    if (!row || fate_of(row)->kind != RC_FATE_REFUSED || !rc_ask_is_asked(cfg, asked, row))
        return RC_OK;
    return rc_ask_refuse(asked, row, "engine", err);
}

rc_code rc_train_refuse_unknown(const rc_config *cfg, rc_error *err)
{
    return rc_asks_walk_unknown(&table, cfg, refuse_unknown, NULL, err);
}

rc_code rc_train_refuse_model(const rc_config *cfg, rc_error *err)
{
    RC_TRY(rc_train_refuse_unknown(cfg, err));
    RC_TRY(rc_graph_refuse_lacks(cfg, RC_PROFILE_ENGINE, err));
    return rc_asks_walk_unknown(&table, cfg, need_vocabulary, NULL, err);
}

rc_code rc_train_refuse_run(const rc_config *cfg, rc_error *err)
{
    RC_TRY(rc_config_refuse_foreign(cfg, err));
    RC_TRY(rc_train_refuse_model(cfg, err));
    RC_TRY(rc_asks_walk_fields(&table, cfg, refuse_asked, NULL, err));
    return rc_asks_walk_unknown(&table, cfg, refuse_asked, NULL, err);
}

rc_code rc_fates_table(rc_arena *mem, rc_table **out, rc_error *err)
{
    static const char *const kinds[] = {"used", "harmless", "refused", "needs vocab_size"};
    static const rc_column columns[] = {{"setting", NULL, RC_UNIT_TEXT},
                                        {"fate", NULL, RC_UNIT_TEXT},
                                        {"neutral", "unless it is", RC_UNIT_TEXT},
                                        {"words", "where, why, or what instead", RC_UNIT_TEXT}};
    RC_TRY(rc_table_make(mem, "fates", "What training does with every setting", columns, 4, out,
                         err));
    for (size_t i = 0; i < N_FATES; i++) {
        rc_cell *row;
        const char *neutral;
        RC_TRY(rc_ask_show_neutral(&fates[i].ask, mem, &neutral, err));
        RC_TRY(rc_table_add_row(*out, &row, err));
        row[0] = rc_cell_text(fates[i].ask.key);
        row[1] = rc_cell_text(kinds[fates[i].kind]);
        row[2] = rc_cell_text(neutral);
        row[3] = rc_cell_text(fates[i].ask.words);
    }
    return RC_OK;
}
