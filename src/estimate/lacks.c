/* estimate/lacks.c — settings that the estimate leaves out though they change it, by name.
 *
 * takes  a config
 * gives  the rows of estimate_lacks.def that it asks for
 * next   show.c prints them beside the figures; with one of them no verdict is given
 */
#include "estimate/lacks.h"

#include "config/asks.h"

typedef struct lack {
    rc_ask ask; /* first: lacks are looked up as asks */
} lack;

#define IS RC_ASK_IS
static const lack lacks[] = {
#define RC_ESTIMATE_LACK(key, neutral, words) {{key, neutral, words}},
#include "defs/estimate_lacks.def"
#undef RC_ESTIMATE_LACK
};
#undef IS
enum { N_LACKS = sizeof lacks / sizeof *lacks };

typedef struct finder {
    rc_estimate *estimate;
    rc_arena *mem;
} finder;

rc_code rc_estimate_add_lack(rc_estimate *estimate, rc_estimate_lack more, rc_arena *mem,
                             rc_error *err)
{
    RC_TRY(RC_GROW(mem, &estimate->lacks, (size_t)estimate->n_lacks, &estimate->n_lacks_room,
                   (size_t)estimate->n_lacks + 1, err));
    estimate->lacks[estimate->n_lacks++] = more;
    return RC_OK;
}

static rc_code note(const rc_config *cfg, const rc_asked *asked, const rc_ask *row,
                    const void *user, rc_error *err)
{
    const finder *f = user;
    if (!row || !rc_ask_is_asked(cfg, asked, row))
        return RC_OK;
    return rc_estimate_add_lack(
        f->estimate, (rc_estimate_lack){asked->key, row->words, asked->where}, f->mem, err);
}

rc_code rc_estimate_find_lacks(const rc_config *cfg, rc_estimate *estimate, rc_arena *mem,
                               rc_error *err)
{
    const rc_asks table = {lacks, N_LACKS, sizeof *lacks};
    const finder f = {estimate, mem};
    RC_TRY(rc_asks_walk_fields(&table, cfg, note, &f, err));
    return rc_asks_walk_unknown(&table, cfg, note, &f, err);
}
