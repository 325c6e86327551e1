/* graph/lacks.c — refuses what a profile's graph would leave out, by name and where it stands.
 *
 * takes  a config: its fields, and the keys and arguments that are no field of ours
 * gives  the first that asks for what graph_lacks.def says this profile lacks
 * next   graph.c builds what is left
 */
#include "graph/lacks.h"

#include <stdio.h>

#define IS RC_ASK_IS
#define NEVER RC_ASK_NEVER
static const rc_lack lacks[] = {
#define RC_LACK(key, neutral, engine, te, local, words)                                        \
    {{key, neutral, words}, {RC_LACK_##engine, RC_LACK_##te, RC_LACK_##local}},
#include "defs/graph_lacks.def"
#undef RC_LACK
};
#undef IS
#undef NEVER
enum { N_LACKS = sizeof lacks / sizeof *lacks };

const rc_lack *rc_lack_list(size_t *n)
{
    *n = N_LACKS;
    return lacks;
}

rc_asks rc_lack_asks(void)
{
    return (rc_asks){lacks, N_LACKS, sizeof *lacks};
}

static rc_code refuse(const rc_config *cfg, const rc_asked *asked, const rc_ask *row,
                      const void *user, rc_error *err)
{
    const rc_profile profile = *(const rc_profile *)user;
    char by[40];
    if (!row || ((const rc_lack *)(const void *)row)->of[profile] != RC_LACK_LACKS ||
        !rc_ask_is_asked(cfg, asked, row))
        return RC_OK;
    snprintf(by, sizeof by, "%s%s", profile == RC_PROFILE_ENGINE ? "" : "graph of ",
             rc_profile_name(profile));
    return rc_ask_refuse(asked, row, by, err);
}

rc_code rc_graph_refuse_lacks(const rc_config *cfg, rc_profile profile, rc_error *err)
{
    const rc_asks table = rc_lack_asks();
    RC_TRY(rc_asks_walk_fields(&table, cfg, refuse, &profile, err));
    return rc_asks_walk_unknown(&table, cfg, refuse, &profile, err);
}

rc_code rc_graph_lacks_table(rc_arena *mem, rc_table **out, rc_error *err)
{
    static const char *const cells[] = {"built", "no difference", "refused"};
    static const rc_column columns[] = {
        {"setting", NULL, RC_UNIT_TEXT},        {"neutral", "unless it is", RC_UNIT_TEXT},
        {"engine", NULL, RC_UNIT_TEXT},         {"megatron-te", NULL, RC_UNIT_TEXT},
        {"megatron-local", NULL, RC_UNIT_TEXT}, {"words", "what instead", RC_UNIT_TEXT}};
    RC_TRY(rc_table_make(mem, "lacks", "What the graph of each profile builds, and what not",
                         columns, 6, out, err));
    for (size_t i = 0; i < N_LACKS; i++) {
        rc_cell *row;
        const char *neutral;
        RC_TRY(rc_ask_show_neutral(&lacks[i].ask, mem, &neutral, err));
        RC_TRY(rc_table_add_row(*out, &row, err));
        row[0] = rc_cell_text(lacks[i].ask.key);
        row[1] = rc_cell_text(neutral);
        for (int k = 0; k < RC_PROFILE_COUNT; k++)
            row[2 + k] = rc_cell_text(cells[lacks[i].of[k]]);
        row[2 + RC_PROFILE_COUNT] = rc_cell_text(lacks[i].ask.words);
    }
    return RC_OK;
}
