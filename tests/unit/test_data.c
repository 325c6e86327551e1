/* test_data.c — token files, splits, and the order of samples. */
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "train/dataset.h"
#include "train/random.h"

#include "train_files.h"

typedef struct setup {
    rc_arena *mem;
    char folder[64];
} setup;

static int open_setup(void **state)
{
    setup *s = calloc(1, sizeof *s);
    s->mem = rc_arena_open();
    make_temp_folder(s->folder);
    *state = s;
    return 0;
}

static int close_setup(void **state)
{
    setup *s = *state;
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", s->folder);
    rc_arena_close(s->mem);
    int status = system(command);
    free(s);
    return status;
}

/* Numbers of numpy 2.4.6: RandomState(seed).shuffle(arange(10)), then three raw 32-bit draws. */
static void shuffle_matches_numpy_random_state(void **state)
{
    static const struct {
        uint32_t seed;
        int64_t order[10];
        uint32_t draws[3];
    } cases[] = {
        {1234, {7, 2, 9, 1, 0, 8, 4, 5, 6, 3}, {646980841u, 1187404954u, 852631582u}},
        {0, {2, 8, 4, 9, 1, 6, 7, 3, 0, 5}, {1879422756u, 1277901399u, 3830135878u}},
        {4294967295u, {6, 9, 5, 1, 8, 0, 7, 4, 2, 3}, {2166321787u, 2547668722u, 2987145323u}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rc_twister twister;
        int64_t order[10] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
        rc_twister_make(cases[i].seed, &twister);
        rc_twister_shuffle(&twister, order, 10);
        assert_memory_equal(order, cases[i].order, sizeof order);
        for (int k = 0; k < 3; k++)
            assert_int_equal(rc_twister_next(&twister), cases[i].draws[k]);
    }
}

/* Crosses the block of 624 draws, and a length where most masked draws are kept. */
static void long_shuffle_matches_numpy(void **state)
{
    int64_t order[1000];
    static const int64_t first[5] = {681, 990, 155, 768, 438},
                         last[5] = {204, 53, 294, 723, 815};
    rc_twister twister;
    (void)state;
    for (int64_t i = 0; i < 1000; i++)
        order[i] = i;
    rc_twister_make(1234, &twister);
    rc_twister_shuffle(&twister, order, 1000);
    assert_memory_equal(order, first, sizeof first);
    assert_memory_equal(order + 995, last, sizeof last);
}

enum { N_DOCUMENTS = 6 };
static const int64_t lengths[N_DOCUMENTS] = {5, 3, 7, 4, 1, 6};

/* Token t of document d is 10*d + t. */
static const char *write_numbers(const setup *s)
{
    unsigned char data[64];
    size_t n = 0;
    for (int d = 0; d < N_DOCUMENTS; d++)
        for (int64_t t = 0; t < lengths[d]; t++) {
            data[n++] = (unsigned char)(10 * d + (int)t);
            data[n++] = 0;
        }
    index_bytes index = make_index(lengths, N_DOCUMENTS, 8, 2);
    write_bytes(path_in(s->folder, "numbers.bin"), data, n);
    write_bytes(path_in(s->folder, "numbers.idx"), index.at, index.n);
    return path_in(s->folder, "numbers");
}

static rc_config config_of(const char **paths, size_t n, const char *split)
{
    rc_config cfg = empty_config();
    cfg.data_path = (rc_strings){paths, n};
    SET(&cfg, vocab_size, 64);
    cfg.split = split;
    return cfg;
}

/* Orders from numpy 2.4.6 with an independent construction: documents shuffled into one flat
 * list of tokens, cut every 4 tokens with one shared. */
static void samples_come_in_megatrons_order(void **state)
{
    static const struct {
        int64_t wanted, n_epochs, n_samples;
        bool has_separate;
        int32_t samples[12][5];
    } cases[] = {
        {5,
         1,
         6,
         false,
         {{20, 21, 22, 23, 24},
          {0, 1, 2, 3, 4},
          {52, 53, 54, 55, 0},
          {11, 12, 50, 51, 52},
          {4, 40, 30, 31, 32},
          {24, 25, 26, 10, 11}}},
        {8,
         2,
         12,
         true,
         {{24, 25, 26, 10, 11},
          {20, 21, 22, 23, 24},
          {52, 53, 54, 55, 0},
          {11, 12, 50, 51, 52},
          {4, 40, 30, 31, 32},
          {0, 1, 2, 3, 4},
          {30, 31, 32, 33, 20},
          {20, 21, 22, 23, 24},
          {2, 3, 4, 40, 30},
          {24, 25, 26, 50, 51},
          {51, 52, 53, 54, 55},
          {32, 33, 0, 1, 2}}},
        {12,
         2,
         12,
         false,
         {{10, 11, 12, 0, 1},
          {1, 2, 3, 4, 30},
          {25, 26, 50, 51, 52},
          {52, 53, 54, 55, 20},
          {21, 22, 23, 24, 25},
          {40, 50, 51, 52, 53},
          {24, 25, 26, 30, 31},
          {20, 21, 22, 23, 24},
          {10, 11, 12, 20, 21},
          {1, 2, 3, 4, 40},
          {31, 32, 33, 40, 10},
          {53, 54, 55, 0, 1}}},
    };
    setup *s = *state;
    rc_error err = {0};
    const char *path = write_numbers(s);
    rc_config cfg = config_of(&path, 1, "100,0,0");
    rc_corpus *corpus;
    assert_int_equal(rc_corpus_open(&cfg, 64, s->mem, &corpus, &err), RC_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rc_dataset *dataset;
        rc_dataset_want want = {RC_SPLIT_TRAIN, 4, cases[i].wanted, 1234, false};
        assert_int_equal(rc_dataset_plan(corpus, &want, s->mem, &dataset, &err), RC_OK);
        assert_int_equal(rc_dataset_order(dataset, INT64_MAX, s->mem, &err), RC_OK);
        assert_int_equal(dataset->n_epochs, cases[i].n_epochs);
        assert_int_equal(dataset->has_separate_last_epoch, cases[i].has_separate);
        assert_int_equal(dataset->n_samples, cases[i].n_samples);
        for (int64_t k = 0; k < dataset->n_samples; k++) {
            int32_t tokens[4], targets[4];
            assert_int_equal(rc_dataset_sample(dataset, k, tokens, targets, &err), RC_OK);
            assert_memory_equal(tokens, cases[i].samples[k], sizeof tokens);
            assert_memory_equal(targets, cases[i].samples[k] + 1, sizeof targets);
        }
    }
    rc_corpus_close(corpus);
}

/* 10 documents: bounds 0.5 * 10 = 5, (0.5 + 0.25) * 10 = 7.5, which rounds to the even 8. */
static void splits_are_cut_where_python_rounds(void **state)
{
    setup *s = *state;
    rc_error err = {0};
    int64_t ones[10] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    index_bytes index = make_index(ones, 10, 1, 1);
    write_bytes(path_in(s->folder, "ten.idx"), index.at, index.n);
    write_bytes(path_in(s->folder, "ten.bin"), "0123456789", 10);
    const char *path = path_in(s->folder, "ten");
    rc_config cfg = config_of(&path, 1, "2,1,1");
    rc_corpus *corpus;
    assert_int_equal(rc_corpus_open(&cfg, 64, s->mem, &corpus, &err), RC_OK);
    assert_int_equal(corpus->ranges[RC_SPLIT_TRAIN][0].n_sequences, 5);
    assert_int_equal(corpus->ranges[RC_SPLIT_VALID][0].first_sequence, 5);
    assert_int_equal(corpus->ranges[RC_SPLIT_VALID][0].n_sequences, 3);
    assert_int_equal(corpus->ranges[RC_SPLIT_TEST][0].first_sequence, 8);
    assert_int_equal(corpus->n_tokens[RC_SPLIT_TEST], 2);
    rc_corpus_close(corpus);
}

static void text_is_bytes_and_an_end(void **state)
{
    setup *s = *state;
    rc_error err = {0};
    write_bytes(path_in(s->folder, "a.txt"), "ab\xff", 3);
    write_bytes(path_in(s->folder, "b.txt"), "xyz", 3);
    const char *paths[2] = {path_in(s->folder, "a.txt"), path_in(s->folder, "b.txt")};
    rc_config cfg = config_of(paths, 2, "1");
    cfg.origin[RC_FIELD_vocab_size].is_null = true;
    rc_corpus *corpus;
    rc_dataset *dataset;
    assert_int_equal(rc_corpus_open(&cfg, 384, s->mem, &corpus, &err), RC_OK);
    assert_int_equal(corpus->n_tokens[RC_SPLIT_TRAIN], 8);
    rc_dataset_want want = {RC_SPLIT_TRAIN, 7, 1, 0, true};
    assert_int_equal(rc_dataset_plan(corpus, &want, s->mem, &dataset, &err), RC_OK);
    assert_int_equal(rc_dataset_order(dataset, want.n_samples, s->mem, &err), RC_OK);
    int32_t tokens[7], targets[7];
    assert_int_equal(rc_dataset_sample(dataset, 0, tokens, targets, &err), RC_OK);
    /* RandomState(0) leaves two documents as they are or swaps them; both ends are masked. */
    bool is_swapped = tokens[0] == 'x';
    static const int32_t right[2][2][7] = {
        {{'a', 'b', 255, 256, 'x', 'y', 'z'}, {'b', 255, 256, -1, 'y', 'z', 256}},
        {{'x', 'y', 'z', 256, 'a', 'b', 255}, {'y', 'z', 256, -1, 'b', 255, 256}},
    };
    assert_memory_equal(tokens, right[is_swapped][0], sizeof tokens);
    assert_memory_equal(targets, right[is_swapped][1], sizeof targets);
    rc_corpus_close(corpus);
}

static void text_is_split_by_position(void **state)
{
    setup *s = *state;
    rc_error err = {0};
    char text[99];
    memset(text, 'q', sizeof text);
    write_bytes(path_in(s->folder, "long.txt"), text, sizeof text);
    const char *path = path_in(s->folder, "long.txt");
    rc_config cfg = config_of(&path, 1, "90,10,0");
    cfg.origin[RC_FIELD_vocab_size].is_null = true; /* the bytes' own */
    rc_corpus *corpus;
    assert_int_equal(rc_corpus_open(&cfg, 384, s->mem, &corpus, &err), RC_OK);
    assert_int_equal(corpus->n_tokens[RC_SPLIT_TRAIN], 90);
    assert_int_equal(corpus->n_tokens[RC_SPLIT_VALID], 10); /* 9 bytes and the end */
    assert_int_equal(corpus->n_tokens[RC_SPLIT_TEST], 0);
    rc_dataset *dataset;
    rc_dataset_want want = {RC_SPLIT_TEST, 4, 1, 0, false};
    assert_int_equal(rc_dataset_plan(corpus, &want, s->mem, &dataset, &err), RC_E_INPUT);
    assert_non_null(strstr(err.msg, "test split has 0 tokens"));
    rc_corpus_close(corpus);
}

static void tokens_of_every_type_are_read(void **state)
{
    static const struct {
        int code, bytes;
        unsigned char at[16];
        int32_t right[2];
    } cases[] = {
        {1, 1, {7, 200}, {7, 200}},
        {2, 1, {7, 100}, {7, 100}},
        {3, 2, {7, 0, 1, 1}, {7, 257}},
        {4, 4, {7, 0, 0, 0, 1, 1, 0, 0}, {7, 257}},
        {5, 8, {7, 0, 0, 0, 0, 0, 0, 0, 1, 1}, {7, 257}},
        {8, 2, {7, 0, 1, 200}, {7, 51201}},
    };
    setup *s = *state;
    int64_t two = 2;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rc_error err = {0};
        rc_tokens tokens;
        int32_t out[2];
        index_bytes index = make_index(&two, 1, cases[i].code, cases[i].bytes);
        write_bytes(path_in(s->folder, "t.idx"), index.at, index.n);
        write_bytes(path_in(s->folder, "t.bin"), cases[i].at, (size_t)(2 * cases[i].bytes));
        assert_int_equal(rc_tokens_open(path_in(s->folder, "t"), s->mem, &tokens, &err), RC_OK);
        assert_int_equal(rc_tokens_read(&tokens, 0, 0, 2, 60000, out, &err), RC_OK);
        assert_memory_equal(out, cases[i].right, sizeof out);
        assert_int_equal(rc_tokens_read(&tokens, 0, 1, 1, 50, out, &err), RC_E_INPUT);
        assert_non_null(strstr(err.msg, "token 1 of sequence 0"));
        rc_tokens_close(&tokens);
    }
}

static void negative_token_is_refused(void **state)
{
    setup *s = *state;
    rc_error err = {0};
    rc_tokens tokens;
    int32_t out;
    int64_t one = 1;
    index_bytes index = make_index(&one, 1, 4, 4);
    write_bytes(path_in(s->folder, "n.idx"), index.at, index.n);
    write_bytes(path_in(s->folder, "n.bin"), "\xff\xff\xff\xff", 4);
    assert_int_equal(rc_tokens_open(path_in(s->folder, "n"), s->mem, &tokens, &err), RC_OK);
    assert_int_equal(rc_tokens_read(&tokens, 0, 0, 1, 100, &out, &err), RC_E_INPUT);
    assert_non_null(strstr(err.msg, "is -1; the model's vocabulary has 0 to 99"));
    rc_tokens_close(&tokens);
}

/* One number of a good index changed. Offsets: 9 version, 17 code, 18 sequences, 26 bounds,
 * 34 lengths (3 of 4 bytes), 46 pointers (3 of 8), 70 bounds (4 of 8), 102 end. */
static void hostile_index_is_refused(void **state)
{
    static const struct {
        const char *name;
        size_t at;
        uint64_t value;
        int n_bytes;
        size_t cut; /* bytes kept; 0 keeps all */
        rc_code code;
        const char *says;
    } cases[] = {
        {"empty", 0, 'M', 1, 1, RC_E_INPUT, "begins with MMIDIDX"},
        {"magic", 3, 'X', 1, 0, RC_E_INPUT, "begins with MMIDIDX"},
        {"version", 9, 2, 8, 0, RC_E_UNSUPPORTED, "version 2"},
        {"code 0", 17, 0, 1, 0, RC_E_INPUT, "code 0"},
        {"code 9", 17, 9, 1, 0, RC_E_INPUT, "code 9"},
        {"float tokens", 17, 7, 1, 0, RC_E_UNSUPPORTED, "float32"},
        {"count overflows", 18, UINT64_MAX, 8, 0, RC_E_INPUT, "cut off or damaged"},
        {"count times 12 wraps", 18, 0x1555555555555556u, 8, 0, RC_E_INPUT, "cut off"},
        {"too many sequences", 18, 4, 8, 0, RC_E_INPUT, "cut off or damaged"},
        {"too many bounds", 26, UINT64_MAX / 8, 8, 0, RC_E_INPUT, "cut off or damaged"},
        {"no bounds", 26, 0, 8, 0, RC_E_INPUT, "all are needed"},
        {"truncated", 0, 'M', 1, 101, RC_E_INPUT, "cut off or damaged"},
        {"length below 0", 34, 0xffffffffu, 4, 0, RC_E_INPUT, "the length -1"},
        {"length past the end", 34, 0x7fffffffu, 4, 0, RC_E_INPUT, "outside its .bin"},
        {"pointer past the end", 46, 7, 8, 0, RC_E_INPUT, "outside its .bin"},
        {"pointer wraps", 46, UINT64_MAX, 8, 0, RC_E_INPUT, "outside its .bin"},
        {"pointer near 2^63", 46, INT64_MAX, 8, 0, RC_E_INPUT, "outside its .bin"},
        {"bound past the end", 78, 9, 8, 0, RC_E_INPUT, "ends document 1"},
        {"bounds go back", 86, 0, 8, 0, RC_E_INPUT, "ends document 2"},
        {"bounds stop early", 94, 2, 8, 0, RC_E_INPUT, "2 of 3 sequences"},
    };
    setup *s = *state;
    int64_t three[3] = {2, 2, 2};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rc_error err = {0};
        rc_tokens tokens;
        index_bytes index = make_index(three, 3, 1, 1);
        assert_int_equal(index.n, 102);
        index.n = cases[i].at;
        put_number(&index, cases[i].value, cases[i].n_bytes);
        write_bytes(path_in(s->folder, "h.idx"), index.at, cases[i].cut ? cases[i].cut : 102);
        write_bytes(path_in(s->folder, "h.bin"), "abcdef", 6);
        rc_code code = rc_tokens_open(path_in(s->folder, "h"), s->mem, &tokens, &err);
        if (code != cases[i].code || !strstr(err.msg, cases[i].says))
            fail_msg("%s: code %d, \"%s\"", cases[i].name, (int)code, err.msg);
    }
}

static void bad_configs_are_refused_with_the_way_out(void **state)
{
    setup *s = *state;
    write_bytes(path_in(s->folder, "c.txt"), "text", 4);
    write_bytes(path_in(s->folder, "void.txt"), "", 0);
    const char *good = path_in(s->folder, "c.txt"), *none = path_in(s->folder, "none.txt");
    const char *half = path_in(s->folder, "numbers.bin"), *numbers = write_numbers(s);
    const char *empty = path_in(s->folder, "void.txt");
    const char *mixed[2] = {good, numbers}, *weighted[2] = {"0.3", good};
    const struct {
        const char **paths;
        size_t n;
        const char *split;
        int64_t vocab;
        rc_code code;
        const char *says;
    } cases[] = {
        {NULL, 0, "1", 384, RC_E_INPUT, "dataset.data_path is missing"},
        {&none, 1, "1", 384, RC_E_IO, "cannot open"},
        {&empty, 1, "1", 384, RC_E_INPUT, "is empty"},
        {&half, 1, "1", 384, RC_E_INPUT, "name the pair by its prefix"},
        {mixed, 2, "1", 384, RC_E_INPUT, "do not mix"},
        {weighted, 2, "1", 384, RC_E_UNSUPPORTED, "blending by weight"},
        {&good, 1, "", 384, RC_E_INPUT, "no share"},
        {&good, 1, "0,0,0", 384, RC_E_INPUT, "no share"},
        {&good, 1, "1,1,1,1", 384, RC_E_INPUT, "up to three numbers"},
        {&good, 1, "1.2.3", 384, RC_E_INPUT, "up to three numbers"},
        {&good, 1, "1", 384, RC_E_INPUT, "vocab_size is 64; text as bytes needs at least 257"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rc_error err = {0};
        rc_corpus *corpus;
        rc_config cfg = config_of(cases[i].paths, cases[i].n, cases[i].split);
        rc_code code = rc_corpus_open(&cfg, cases[i].vocab, s->mem, &corpus, &err);
        if (code != cases[i].code || !strstr(err.msg, cases[i].says))
            fail_msg("case %zu: code %d, \"%s\"", i, (int)code, err.msg);
        rc_corpus_close(corpus);
    }
    rc_config cfg = config_of(&numbers, 1, "1");
    rc_error err = {0};
    rc_corpus *corpus;
    cfg.origin[RC_FIELD_vocab_size].is_null = true;
    assert_int_equal(rc_corpus_open(&cfg, 384, s->mem, &corpus, &err), RC_E_INPUT);
    assert_non_null(strstr(err.msg, "model.vocab_size is null"));
    rc_corpus_close(corpus);
}

/* A file of 300 GB, of which no byte is stored or read but the samples': its order is a few bytes, and
 * neither train nor validation comes twice upon a sample. */
static void a_huge_text_takes_no_memory_for_its_order(void **state)
{
    enum { N = 1000, S = 16 };
    setup *s = *state;
    const char *path = path_in(s->folder, "huge.txt");
    const int64_t n_bytes = INT64_C(300) << 30;
    write_bytes(path, "x", 1);
    if (truncate(path, n_bytes) != 0) {
        print_message("skipped: this file system keeps no sparse file of 300 GiB\n");
        skip();
    }
    rc_config cfg = config_of(&path, 1, "9,1,0");
    SET(&cfg, vocab_size, 257);
    rc_corpus *corpus;
    rc_dataset *dataset;
    rc_error err = {0};
    assert_int_equal(rc_corpus_open(&cfg, 384, s->mem, &corpus, &err), RC_OK);
    for (int split = RC_SPLIT_TRAIN; split <= RC_SPLIT_VALID; split++) {
        rc_dataset_want want = {(rc_split)split, S, N, 1234, false};
        size_t before = rc_arena_used_bytes(s->mem);
        int64_t seen[N];
        int32_t tokens[S], targets[S];
        assert_int_equal(rc_dataset_plan(corpus, &want, s->mem, &dataset, &err), RC_OK);
        assert_int_equal(dataset->n_samples, (corpus->n_tokens[split] - 1) / S);
        assert_int_equal(rc_dataset_order(dataset, N, s->mem, &err), RC_OK);
        assert_true(rc_dataset_order_bytes(dataset, N) < 1000);
        assert_true(rc_arena_used_bytes(s->mem) - before < 4000);
        for (int i = 0; i < N; i++) {
            seen[i] = rc_order_at(&dataset->order[0], i);
            assert_in_range(seen[i], 0, dataset->n_samples - 1);
            for (int k = 0; k < i; k++)
                assert_int_not_equal(seen[i], seen[k]);
            assert_int_equal(rc_dataset_sample(dataset, i, tokens, targets, &err), RC_OK);
            assert_int_equal(tokens[1], 0);
        }
    }
    rc_corpus_close(corpus);
}

static void seed_must_be_what_numpy_takes(void **state)
{
    setup *s = *state;
    const char *path = write_numbers(s);
    rc_config cfg = config_of(&path, 1, "1");
    rc_corpus *corpus;
    rc_dataset *dataset;
    assert_int_equal(rc_corpus_open(&cfg, 64, s->mem, &corpus, NULL), RC_OK);
    rc_dataset_want want = {RC_SPLIT_TRAIN, 4, 1, -1, false};
    assert_int_equal(rc_dataset_plan(corpus, &want, s->mem, &dataset, NULL), RC_E_INPUT);
    want.seed = 1LL << 32;
    assert_int_equal(rc_dataset_plan(corpus, &want, s->mem, &dataset, NULL), RC_E_INPUT);
    want.seed = 0;
    want.n_samples = INT64_MAX / 2;
    assert_int_equal(rc_dataset_plan(corpus, &want, s->mem, &dataset, NULL), RC_E_RANGE);
    rc_corpus_close(corpus);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shuffle_matches_numpy_random_state),
        cmocka_unit_test(long_shuffle_matches_numpy),
        cmocka_unit_test_setup_teardown(samples_come_in_megatrons_order, open_setup,
                                        close_setup),
        cmocka_unit_test_setup_teardown(splits_are_cut_where_python_rounds, open_setup,
                                        close_setup),
        cmocka_unit_test_setup_teardown(text_is_bytes_and_an_end, open_setup, close_setup),
        cmocka_unit_test_setup_teardown(text_is_split_by_position, open_setup, close_setup),
        cmocka_unit_test_setup_teardown(tokens_of_every_type_are_read, open_setup, close_setup),
        cmocka_unit_test_setup_teardown(negative_token_is_refused, open_setup, close_setup),
        cmocka_unit_test_setup_teardown(hostile_index_is_refused, open_setup, close_setup),
        cmocka_unit_test_setup_teardown(bad_configs_are_refused_with_the_way_out, open_setup,
                                        close_setup),
        cmocka_unit_test_setup_teardown(a_huge_text_takes_no_memory_for_its_order, open_setup,
                                        close_setup),
        cmocka_unit_test_setup_teardown(seed_must_be_what_numpy_takes, open_setup, close_setup),
    };
    return cmocka_run_group_tests_name("data", tests, NULL, NULL);
}
