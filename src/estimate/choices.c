/* choices.c — every recompute setting of a Megatron job, priced: the cheapest that fits, the front, and the proof.
 *
 * takes  a job, the room of a rank's allocator
 * gives  rc_choices, cheapest first
 * next   the command `plan` prints them
 */
#include "estimate/store.h"

#include <recompute/estimate.h>

#include <stdlib.h>

typedef struct search {
    rc_estimate_store store;
    rc_estimate_request request;
    rc_choices *choices;
    size_t n_room;
    rc_arena *mem;
    rc_error *err;
} search;

/* Each in an arena of its own, so that thousands take the memory of one. */
static rc_code price(search *s, const rc_setting *setting)
{
    rc_choices *choices = s->choices;
    rc_arena *scratch = rc_arena_open();
    rc_estimate_request request = s->request;
    rc_estimate *estimate;
    if (!scratch)
        return RC_FAIL(s->err, RC_E_MEMORY, RC_NOWHERE, "no memory for the price of a setting");
    request.setting = setting;
    rc_code code = rc_estimate_make_in(&s->store, &request, scratch, &estimate, s->err);
    if (code == RC_OK)
        code = RC_GROW(s->mem, &choices->at, (size_t)choices->n, &s->n_room,
                       (size_t)choices->n + 1, s->err);
    if (code == RC_OK) {
        const rc_estimate_rank *hot = &estimate->ranks[estimate->hottest];
        choices->at[choices->n++] = (rc_choice){
            .setting = *setting,
            .peak_bytes = hot->later.bytes,
            .stage = hot->rank.pp,
            .added_share = estimate->replay_seconds / estimate->step_seconds,
            .is_fitting = choices->room_bytes == 0 || hot->later.bytes <= choices->room_bytes};
    }
    rc_arena_close(scratch);
    return code;
}

static rc_code price_labels(search *s)
{
    uint32_t acting = 0;
    for (int label = 0; label < RC_LABEL_COUNT; label++)
        if (s->choices->without->n_label_modules[label] > 0)
            acting |= 1u << label;
    rc_setting setting = {.granularity = RC_GRANULARITY_SELECTIVE};
    for (setting.labels = acting; setting.labels;
         setting.labels = (setting.labels - 1) & acting)
        RC_TRY(price(s, &setting));
    return RC_OK;
}

static int most_layers_of_a_chunk(const rc_layout *layout)
{
    int most = 0;
    for (int i = 0; i < layout->n_chunks; i++) {
        const int n = rc_chunk_n_layers(&layout->chunks[i]);
        most = n > most ? n : most;
    }
    return most;
}

/* Uniform over one layer is block over all of them. */
static rc_code price_full(search *s)
{
    const int most = most_layers_of_a_chunk(s->store.layout);
    rc_setting setting = {.granularity = RC_GRANULARITY_FULL, .method = RC_METHOD_UNIFORM};
    for (setting.num_layers = 1; setting.num_layers <= most; setting.num_layers++)
        RC_TRY(price(s, &setting));
    setting.method = RC_METHOD_BLOCK;
    for (setting.num_layers = 1; setting.num_layers < most; setting.num_layers++)
        RC_TRY(price(s, &setting));
    return RC_OK;
}

static int by_cost(const void *a, const void *b)
{
    const rc_choice *x = a, *y = b;
    if (x->added_share < y->added_share || x->added_share > y->added_share)
        return x->added_share < y->added_share ? -1 : 1;
    return (x->peak_bytes > y->peak_bytes) - (x->peak_bytes < y->peak_bytes);
}

/* In the order of cost, who holds less than all before is on the front. */
static void mark(rc_choices *choices)
{
    int64_t least = INT64_MAX;
    choices->best = choices->smallest = choices->control = -1;
    for (int i = 0; i < choices->n; i++) {
        rc_choice *choice = &choices->at[i];
        choice->is_front = choice->peak_bytes < least;
        if (choice->is_front) {
            least = choice->peak_bytes;
            choices->smallest = i;
        }
        if (choice->is_fitting && choices->best < 0)
            choices->best = i;
        if (choice->setting.granularity == RC_GRANULARITY_NONE)
            choices->control = i;
    }
}

rc_code rc_choices_make(const rc_estimate_request *request, int64_t room_bytes, rc_arena *mem,
                        rc_choices **out, rc_error *err)
{
    static const rc_setting none = {.granularity = RC_GRANULARITY_NONE};
    rc_estimate *without;
    RC_TRY(RC_NEW(mem, out, 1, err));
    search s = {.request = *request, .choices = *out, .mem = mem, .err = err};
    (*out)->room_bytes = room_bytes;
    RC_TRY(rc_estimate_store_open(request, mem, &s.store, err));
    s.request.setting = &none;
    RC_TRY(rc_estimate_make_in(&s.store, &s.request, mem, &without, err));
    (*out)->without = without;
    RC_TRY(price(&s, &none));
    RC_TRY(price_labels(&s));
    RC_TRY(price_full(&s));
    qsort((*out)->at, (size_t)(*out)->n, sizeof *(*out)->at, by_cost);
    mark(*out);
    return RC_OK;
}

rc_code rc_choices_table(const rc_choices *choices, rc_arena *mem, rc_table **out,
                         rc_error *err)
{
    static const rc_column columns[] = {
        {"setting", NULL, RC_UNIT_TEXT}, {"peak_bytes", "peak", RC_UNIT_BYTES},
        {"stage", NULL, RC_UNIT_COUNT},  {"added_share", "adds to a step", RC_UNIT_RATIO},
        {"fits", NULL, RC_UNIT_TEXT},    {"front", NULL, RC_UNIT_TEXT}};
    RC_TRY(rc_table_make(mem, "settings", "Settings, cheapest first", columns, 6, out, err));
    for (int i = 0; i < choices->n; i++) {
        const rc_choice *choice = &choices->at[i];
        char buf[160];
        const char *name;
        rc_cell *row;
        RC_TRY(rc_arena_printf(mem, &name, err, "%s", rc_setting_name(&choice->setting, buf)));
        RC_TRY(rc_table_add_row(*out, &row, err));
        row[0] = rc_cell_text(name);
        row[1] = rc_cell_int(choice->peak_bytes);
        row[2] = rc_cell_int(choice->stage);
        row[3] = rc_cell_real(choice->added_share);
        row[4] = rc_cell_text(choices->room_bytes == 0 ? ""
                              : choice->is_fitting     ? "yes"
                                                       : "no");
        row[5] = rc_cell_text(choice->is_front ? "yes" : "");
    }
    return RC_OK;
}
