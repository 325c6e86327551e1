/* test_layout.c — how layers are dealt out: by hand, and against Megatron's own arithmetic on drawn settings. */
#include "layout_cases.h"

static const struct split_case {
    const char *line;
    int n_chunks, vp;
    /* in the order of the model */
    int n_layers[8];
    int n_mtp[8];
    /* the chunk that has it */
    int final_norm;
} split_cases[] = {
    {LAYERS(8), 1, 1, {8}, {0}, 0},
    {LAYERS(8) STAGES(4), 4, 1, {2, 2, 2, 2}, {0}, 3},
    {LAYERS(8) STAGES(2) VIRTUAL(4), 8, 4, {1, 1, 1, 1, 1, 1, 1, 1}, {0}, 7},
    {LAYERS(8) STAGES(2) VIRTUAL(1), 2, 1, {4, 4}, {0}, 1},
    {LAYERS(11) STAGES(4) FIRST(3) LAST(2), 4, 1, {3, 3, 3, 2}, {0}, 3},
    {LAYERS(10) STAGES(4) FIRST(1), 4, 1, {1, 3, 3, 3}, {0}, 3},
    {LAYERS(10) STAGES(4) LAST(1), 4, 1, {3, 3, 3, 1}, {0}, 3},
    {LAYERS(5) STAGES(2) FIRST(4) LAST(1), 2, 1, {4, 1}, {0}, 1},
    {LAYERS(5) LAST(5), 1, 1, {5}, {0}, 0},
    {LAYERS(14) STAGES(3) FIRST(4) LAST(2) VIRTUAL(2), 6, 2, {2, 4, 1, 2, 4, 1}, {0}, 5},
    {LAYERS(7) STAGES(4) EMBEDDING_COUNTS, 4, 1, {1, 2, 2, 2}, {0}, 3},
    {LAYERS(6) STAGES(4) EMBEDDING_COUNTS LOSS_COUNTS, 4, 1, {1, 2, 2, 1}, {0}, 3},
    {LAYERS(14) STAGES(4) EMBEDDING_COUNTS LOSS_COUNTS VIRTUAL(2),
     8,
     2,
     {1, 2, 2, 2, 2, 2, 2, 1},
     {0},
     7},
    /* a stage for the embedding alone, and one for the loss */
    {LAYERS(2) STAGES(4) EMBEDDING_COUNTS LOSS_COUNTS, 4, 1, {0, 1, 1, 0}, {0}, 3},
    {LAYERS(8) WRITTEN("Et|t*3|(t|)*2ttL") STAGES(5), 5, 1, {1, 3, 1, 1, 2}, {0}, 4},
    {LAYERS(8) WRITTEN("E|tt|,tt||(t)*4|L") STAGES(3), 6, 2, {0, 2, 2, 0, 4, 0}, {0}, 5},
    {LAYERS(4) STAGES(2) DEPTHS(2), 2, 1, {2, 2}, {0, 2}, 1},
    {LAYERS(4) STAGES(2) DEPTHS(2) WRITTEN("Et|t|t|tmmL"), 4, 2, {1, 1, 1, 1}, {0, 0, 0, 2}, 3},
    {LAYERS(5) STAGES(3) DEPTHS(1) WRITTEN("Ett|t|t|t|m|L"),
     6,
     2,
     {2, 1, 1, 1, 0, 0},
     {0, 0, 0, 0, 1, 0},
     3},
    {LAYERS(3) STAGES(2) LISTED("[[embedding,decoder],[Decoder,decoder,LOSS]]"),
     2,
     1,
     {1, 2},
     {0},
     1},
    {"--num-layers 8 --pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 1",
     8,
     4,
     {1, 1, 1, 1, 1, 1, 1, 1},
     {0},
     7},
    {"--num-layers 8 --pipeline-model-parallel-size 4 --num-virtual-stages-per-pipeline-rank 2",
     8,
     2,
     {1, 1, 1, 1, 1, 1, 1, 1},
     {0},
     7},
    {PATTERN("MM-|-*M|M|") STAGES(2), 4, 2, {3, 3, 1, 0}, {0}, 3},
    {PATTERN("MM-*/M/M") STAGES(2) DEPTHS(2), 2, 1, {2, 2}, {0, 2}, 1},
    {PATTERN("MM-*-") STAGES(2) FIRST(2), 2, 1, {2, 3}, {0}, 1},
};

static void need_split(const struct split_case *c, const rc_layout *layout)
{
    int first = 0;
    assert_int_equal(layout->n_chunks, c->n_chunks);
    assert_int_equal(layout->sizes.vp, c->vp);
    for (int k = 0; k < c->n_chunks; k++) {
        const rc_chunk *chunk = &layout->chunks[k];
        const int64_t pp = layout->sizes.pp;
        if (rc_chunk_n_layers(chunk) != c->n_layers[k] || chunk->first_layer != first ||
            chunk->n_mtp != c->n_mtp[k] || chunk->has_final_norm != (k == c->final_norm))
            fail_msg("%s: chunk %d: %d layers from %d, %d deep", c->line, k,
                     rc_chunk_n_layers(chunk), chunk->first_layer, chunk->n_mtp);
        assert_ptr_equal(chunk, rc_layout_chunk(layout, k % pp, k / pp));
        first += c->n_layers[k];
    }
}

static void layers_are_dealt_out_as_by_hand(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof split_cases / sizeof *split_cases; i++) {
        rc_arena *mem = rc_arena_open();
        need_split(&split_cases[i], need_layout(split_cases[i].line, mem));
        rc_arena_close(mem);
    }
}

/* One chunk a stage is interleaved where the virtual size says 1, and not where it is null: schedules.py asks
 * whether it is None, and Megatron-LM's command line makes None of 1. */
static void a_virtual_size_of_one_is_interleaved(void **state)
{
    static const struct {
        const char *line;
        bool is_interleaved;
    } cases[] = {
        {LAYERS(8) STAGES(2), false},
        {LAYERS(8) STAGES(2) VIRTUAL(1), true},
        {LAYERS(8) STAGES(2) VIRTUAL(2), true},
        {LAYERS(2) STAGES(2) WRITTEN("Et|tL"), false},
        {"--num-layers 8 --pipeline-model-parallel-size 2 "
         "--num-virtual-stages-per-pipeline-rank 1",
         false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rc_arena *mem = rc_arena_open();
        assert_int_equal(need_layout(cases[i].line, mem)->sizes.is_interleaved,
                         cases[i].is_interleaved);
        rc_arena_close(mem);
    }
}

/* --- drawn splits: get_num_layers_to_build and get_transformer_layer_offset, chunk by chunk */

typedef struct drawn {
    int L, p, v, first, last;
    bool has_embedding, has_loss;
} drawn;

static int draw(uint64_t *seed, int below)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((*seed >> 33) % (uint64_t)below);
}

/* Some divide, some do not. */
static drawn draw_split(uint64_t *seed)
{
    drawn d = {.p = 1 + draw(seed, 8), .v = draw(seed, 4)};
    const int v = d.v ? d.v : 1, kind = draw(seed, 3);
    if (d.p == 1)
        d.v = 0;
    if (kind == 1) {
        d.first = draw(seed, 2) * v * (1 + draw(seed, 3));
        d.last = draw(seed, 2) * v * (1 + draw(seed, 3));
    }
    if (kind == 2) {
        d.has_embedding = draw(seed, 2);
        d.has_loss = draw(seed, 2);
    }
    const int n_stages = d.p - (d.first > 0) - (d.last > 0);
    d.L = (n_stages > 0 ? n_stages * v * (1 + draw(seed, 3)) : 0) + d.first + d.last -
          d.has_embedding - d.has_loss + (draw(seed, 2) ? 0 : draw(seed, 3));
    return d;
}

/* Layers of a stage, embedding and loss among them; -1 where Megatron asserts. */
static int megatron_of_stage(const drawn *d, int rank)
{
    int n_left = d->L - d->first - d->last + d->has_embedding + d->has_loss;
    int stages_left = d->p - (d->first > 0) - (d->last > 0);
    if ((n_left != 0) != (stages_left != 0) || n_left < 0 || stages_left < 0)
        return -1;
    if (stages_left > 0 && n_left % stages_left != 0)
        return -1;
    if (rank == d->p - 1 && d->last)
        return d->last;
    if (rank == 0 && d->first)
        return d->first;
    return stages_left > 0 ? n_left / stages_left : 0;
}

static int megatron_n_layers(const drawn *d, int rank, int chunk)
{
    const int v = d->v ? d->v : 1, n = megatron_of_stage(d, rank);
    if (n < 0 || n % v != 0)
        return -1;
    return n / v - (d->has_embedding && rank == 0 && chunk == 0) -
           (d->has_loss && rank == d->p - 1 && chunk == v - 1);
}

static int megatron_offset(const drawn *d, int rank, int chunk)
{
    const int v = d->v ? d->v : 1;
    if (d->p == 1)
        return 0;
    if (d->first || d->last) {
        const int n_middle = d->p - (d->first > 0) - (d->last > 0);
        const int middle = (d->L - d->first - d->last) / v;
        const int middle_rank = d->first ? rank - 1 : rank;
        const int all = d->first / v + middle + d->last / v;
        return rank == 0 ? chunk * all
                         : chunk * all + d->first / v +
                               middle_rank * (n_middle > 0 ? middle / n_middle : 0);
    }
    const int n = d->L + d->has_embedding + d->has_loss;
    const bool is_first = rank == 0 && chunk == 0;
    return chunk * (n / v) + rank * (n / d->p / v) - (d->has_embedding && !is_first);
}

static bool is_refused_by_megatron(const drawn *d)
{
    for (int rank = 0; rank < d->p; rank++)
        for (int chunk = 0; chunk < (d->v ? d->v : 1); chunk++)
            if (megatron_n_layers(d, rank, chunk) < 0)
                return true;
    return d->L < 1;
}

static const char *write_drawn(const drawn *d, char line[512])
{
    const struct {
        const char *name;
        int value;
    } numbers[] = {{"num_layers", d->L},
                   {"pipeline_model_parallel_size", d->p},
                   {"virtual_pipeline_model_parallel_size", d->v},
                   {"num_layers_in_first_pipeline_stage", d->first},
                   {"num_layers_in_last_pipeline_stage", d->last}};
    size_t n = 0;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (i == 0 || numbers[i].value)
            n += (size_t)snprintf(line + n, 512 - n, "model.%s=%d ", numbers[i].name,
                                  numbers[i].value);
    snprintf(line + n, 512 - n, "%s%s", d->has_embedding ? EMBEDDING_COUNTS : "",
             d->has_loss ? LOSS_COUNTS : "");
    return line;
}

static void need_drawn(const drawn *d, const rc_layout *layout, const char *line)
{
    int n_layers = 0;
    for (int k = 0; k < layout->n_chunks; k++) {
        const rc_chunk *chunk = &layout->chunks[k];
        const int n = rc_chunk_n_layers(chunk), rank = k % d->p, at = k / d->p;
        n_layers += n;
        if (n != megatron_n_layers(d, rank, at) ||
            chunk->first_layer != megatron_offset(d, rank, at))
            fail_msg("%s: chunk %d has %d layers from %d", line, k, n, chunk->first_layer);
    }
    assert_int_equal(n_layers, d->L);
}

static void every_drawn_split_is_megatrons_or_refused(void **state)
{
    uint64_t seed = 7;
    int n_made = 0;
    (void)state;
    for (int i = 0; i < 4000; i++) {
        const drawn d = draw_split(&seed);
        char line[512];
        rc_error err = {0};
        rc_arena *mem = rc_arena_open();
        rc_layout *layout;
        rc_code code = try_layout(write_drawn(&d, line), mem, &layout, &err);
        if ((code == RC_OK) == is_refused_by_megatron(&d) || (code && code != RC_E_INPUT))
            fail_msg("%s: %d %s", line, (int)code, err.msg);
        if (code == RC_OK)
            need_drawn(&d, layout, line);
        n_made += code == RC_OK;
        rc_arena_close(mem);
    }
    assert_true(n_made > 1500 && n_made < 3500); /* both are tried */
}

/* --- the noun's own invariants, and its text */

static void a_broken_layout_does_not_verify(void **state)
{
    rc_arena *mem = rc_arena_open();
    const rc_layout *layout = need_layout(LAYERS(8) STAGES(2) DEPTHS(1), mem);
    (void)state;
    for (int fault = 0; fault < 9; fault++) {
        rc_chunk chunks[2] = {layout->chunks[0], layout->chunks[1]};
        rc_layout broken = *layout;
        broken.chunks = chunks;
        chunks[1].first_layer -= fault == 1;
        chunks[1].n_mtp -= fault == 2;
        chunks[0].has_final_norm = fault == 3;
        chunks[1].has_loss = fault != 4;
        chunks[1].has_embedding = fault == 5;
        broken.sizes.dp += fault == 6;
        broken.sizes.edp += fault == 7;
        broken.n_rank_kinds -= fault == 8;
        assert_int_equal(rc_layout_verify(&broken, NULL), fault ? RC_E_BUG : RC_OK);
    }
    rc_arena_close(mem);
}

static void a_layout_prints_as_text(void **state)
{
    rc_arena *mem = rc_arena_open();
    check_text text;
    (void)state;
    check_open(&text);
    rc_layout_print(need_layout(LAYERS(6) STAGES(2) VIRTUAL(2)
                                    EMBEDDING_COUNTS LOSS_COUNTS EXPERTS(2) DEPTHS(1) MICRO(1)
                                        GLOBAL(8) "model.moe_layer_freq=[0,1,1,1,1,1] "
                                                  "data_parallel_size=2",
                                mem),
                    text.to);
    char *said = check_close(&text);
    assert_string_equal(
        said,
        "layout of 4 ranks: tp 1, cp 1, gtp 1, dp 2, pp 2; ep 1, etp 1, edp 2\n"
        "4 micro-batches; 2 chunks a stage, 2 micro-batches in a row\n"
        "6 layers: 1 attention+mlp, 5 attention+moe; tied output weights\n"
        "stage 0 chunk 0: from layer 0 1 attention+mlp; embedding\n"
        "stage 1 chunk 0: from layer 1 2 attention+moe\n"
        "stage 0 chunk 1: from layer 3 2 attention+moe\n"
        "stage 1 chunk 1: from layer 5 1 attention+moe; 1 deep: 1 attention+moe; final norm; "
        "loss\n"
        "stage 0: 2 ranks, the first is 0\n"
        "stage 1: 2 ranks, the first is 2\n");
    free(said);
    rc_arena_close(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_are_dealt_out_as_by_hand),
        cmocka_unit_test(a_virtual_size_of_one_is_interleaved),
        cmocka_unit_test(every_drawn_split_is_megatrons_or_refused),
        cmocka_unit_test(a_broken_layout_does_not_verify),
        cmocka_unit_test(a_layout_prints_as_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
