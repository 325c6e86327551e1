/* test_keep.c — nothing bad is saved or loaded: values, damage, counts that do not fit, remains of killed saves. */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/checksum.h"

#include "checkpoint_model.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <zlib.h>

static char folder[64];
static const char *const files[] = {"model.safetensors", "optimizer.safetensors", "state.json"};

static int open_all(void **state)
{
    *state = rc_arena_open();
    make_temp_folder(folder);
    return 0;
}

static int close_all(void **state)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    rc_arena_close(*state);
    return system(command);
}

/* A folder of that name with one checkpoint, of iteration 25; its iter_0000025. */
static const char *save_one(const char *name, const model *m, void **state)
{
    rc_error err = {0};
    rc_state at = state_at(25);
    if (rc_checkpoint_save(path_in(folder, name), &at, &m->all, *state, &err) != RC_OK)
        fail_msg("%s", err.msg);
    return path_in(path_in(folder, name), "iter_0000025");
}

static char *read_all(const char *path, size_t *n)
{
    FILE *from = fopen(path, "rb");
    assert_non_null(from);
    char *bytes = calloc(1, 1 << 16);
    assert_non_null(bytes);
    *n = fread(bytes, 1, (1 << 16) - 1, from);
    fclose(from);
    return bytes;
}

/* --- values --- */

static void checksums_are_those_of_zlib(void **state)
{
    static const size_t sizes[] = {0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, (3 << 20) + 5};
    unsigned char *bytes = malloc(4 << 20);
    assert_non_null(bytes);
    for (size_t i = 0; i < 4 << 20; i++)
        bytes[i] = (unsigned char)(i * i % 251);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int n_threads = 1; n_threads < 6; n_threads += 2)
            assert_int_equal(rc_crc32_of(bytes, sizes[i], n_threads),
                             crc32(0, bytes, (uInt)sizes[i]));
    for (size_t n = 0; n < 1500; n++) /* any length and start, continued from any value */
        assert_int_equal(rc_crc32((uint32_t)n * 2654435761u, bytes + n % 67, n),
                         crc32((uInt)((uint32_t)n * 2654435761u), bytes + n % 67, (uInt)n));
    assert_int_equal(rc_crc32_join(rc_crc32(0, bytes, 1000), rc_crc32(0, bytes + 1000, 7), 7),
                     crc32(0, bytes, 1007));
    free(bytes);
    (void)state;
}

static float of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Every place of every array, and every kind of value that is none. */
static void what_is_not_finite_is_named_and_counted(void **state)
{
    const float bad[] = {NAN, -NAN, INFINITY, -INFINITY, of_bits(0x7f800001), -1e-45F, -1};
    const float good[] = {0, -0.0F, 1e-45F, 3.4e38F};
    (void)state;
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        for (int at = 0; at < 24; at++) {
            model m;
            rc_error err = {0};
            fill_model(&m, 1);
            float *place = at < 6 ? &m.w[at] : at < 8 ? &m.b[at - 6] : &m.moments[at - 8];
            bool is_square = (at >= 14 && at < 20) || at >= 22;
            bool is_allowed = isfinite(bad[k]) && !is_square;
            *place = bad[k];
            rc_code code = rc_checkpoint_check(&m.all, &err);
            if (code != (is_allowed ? RC_OK : RC_E_RANGE))
                fail_msg("value %zu at %d: code %d", k, at, (int)code);
            if (at == 17 && !is_allowed)
                assert_non_null(strstr(err.msg, "exp_avg_sq.w has 1 of 6 values"));
        }
    }
    for (size_t k = 0; k < sizeof good / sizeof *good; k++) {
        model m;
        fill_model(&m, 1);
        for (int i = 0; i < 16; i++)
            m.moments[i] = good[k];
        assert_int_equal(rc_checkpoint_check(&m.all, NULL), RC_OK);
    }
}

static void values_are_found_anywhere_in_large_weights(void **state)
{
    enum { N = 200003 };
    static float values[N];
    static const int places[] = {0, 1, 65535, 65536, 131071, 131072, N - 1};
    const rc_weight weight = {"large", RC_F32, 2, {1, N}, values, 0};
    (void)state;
    for (int n_threads = 1; n_threads < 5; n_threads++) {
        rc_weights_io io = {.at = &weight, .n = 1, .n_threads = n_threads};
        rc_error err = {0};
        assert_int_equal(rc_weights_check(&io, NULL), RC_OK);
        for (size_t i = 0; i < sizeof places / sizeof *places; i++)
            values[places[i]] = NAN;
        assert_int_equal(rc_weights_check(&io, &err), RC_E_RANGE);
        assert_non_null(strstr(err.msg, "large has 7 of 200003 values"));
        memset(values, 0, sizeof values);
    }
}

/* --- damage --- */

/* Loads over a model of other values, which a refusal must leave as they are. */
static bool is_loaded(const char *path, const model *saved, void **state, rc_error *err)
{
    model m, before;
    rc_state is = this_run();
    *err = (rc_error){0};
    fill_model(&m, 7);
    fill_model(&before, 7);
    rc_mark mark = rc_arena_mark(*state);
    bool is_ok = rc_checkpoint_load(path, &m.all, &is, *state, err) == RC_OK;
    rc_arena_rewind(*state, mark);
    assert_true(is_same_model(&m, is_ok ? saved : &before));
    assert_int_equal(is.iteration, is_ok ? 25 : 0);
    assert_int_equal(is.n_train_samples, is_ok ? 200 : 0);
    assert_int_equal(is.n_valid_samples, is_ok ? 32 : 0);
    return is_ok;
}

/* Each bit of each file, one at a time. */
static void every_flipped_bit_is_noticed(void **state)
{
    model m;
    rc_error err;
    fill_model(&m, 1);
    const char *path = save_one("flips", &m, state);
    assert_true(is_loaded(path, &m, state, &err));
    for (int f = 0; f < 3; f++) {
        size_t n;
        const char *name = path_in(path, files[f]);
        char *bytes = read_all(name, &n);
        FILE *to = fopen(name, "r+b");
        assert_non_null(to);
        setvbuf(to, NULL, _IONBF, 0);
        for (size_t bit = 0; bit < 8 * n; bit++) {
            fseek(to, (long)(bit / 8), SEEK_SET);
            fputc(bytes[bit / 8] ^ 1 << bit % 8, to);
            if (is_loaded(path, &m, state, &err))
                fail_msg("bit %zu of byte %zu of %s is flipped", bit % 8, bit / 8, files[f]);
            fseek(to, (long)(bit / 8), SEEK_SET);
            fputc(bytes[bit / 8], to);
        }
        fclose(to);
        free(bytes);
    }
    assert_true(is_loaded(path, &m, state, &err));
}

/* The pointer then means no checkpoint, or another one of the same run. */
static void every_flipped_bit_of_the_pointer_is_noticed(void **state)
{
    model m;
    fill_model(&m, 1);
    save_one("pointer", &m, state);
    const char *name = path_in(path_in(folder, "pointer"), "latest_checkpointed_iteration.txt");
    for (int bit = 0; bit < 3 * 8; bit++) {
        char text[] = "25\n";
        const char *path;
        rc_error err = {0};
        text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
        write_bytes(name, text, 3);
        rc_code code = rc_checkpoint_find(path_in(folder, "pointer"), *state, &path, &err);
        if (code != RC_E_INPUT)
            fail_msg("bit %d: code %d, %s", bit, (int)code, path);
        assert_true(strstr(err.msg, "no iteration number") ||
                    strstr(err.msg, "is not there; the newest that is there is 25"));
    }
}

/* Whole, and each with a right checksum of its own. */
static void files_of_another_iteration_are_refused(void **state)
{
    model m, later;
    rc_error err;
    char command[2048];
    fill_model(&m, 1);
    fill_model(&later, 2);
    const char *other = save_one("later", &later, state);
    for (int f = 0; f < 2; f++) {
        const char *path = save_one("mixed", &m, state);
        snprintf(command, sizeof command, "cp %s/%s %s/%s", other, files[f], path, files[f]);
        assert_int_equal(system(command), 0);
        assert_false(is_loaded(path, &m, state, &err));
        assert_non_null(
            strstr(err.msg, "is not the file that was written with its state.json"));
    }
}

/* --- older versions --- */

static void write_v1_state(const char *path, const char *iteration, const char *train,
                           const char *valid)
{
    char text[1024];
    snprintf(text, sizeof text,
             "{\"version\": 1, \"iteration\": %s, \"consumed_train_samples\": %s,\n"
             " \"consumed_valid_samples\": %s, \"identity\": {\"model.num_layers\": \"2\",\n"
             "  \"optimizer.lr\": \"0.001\"}, \"order\": {}}\n",
             iteration, train, valid);
    write_bytes(path_in(path, "state.json"), text, strlen(text));
}

/* Takes the checksums out of a file's header. */
static void strip_checksums(const char *path)
{
    size_t n, n_header = 0, n_new;
    char *bytes = read_all(path, &n), text[8192] = "\0\0\0\0\0\0\0";
    const char *key;
    for (int i = 7; i >= 0; i--)
        n_header = n_header << 8 | (unsigned char)bytes[i];
    json_t *root = json_loadb(bytes + 8, n_header, 0, NULL), *value, *pairs;
    void *next;
    pairs = json_object_get(root, "__metadata__");
    json_object_foreach_safe(pairs, next, key, value)
    {
        if (strncmp(key, "crc32.", 6) == 0)
            json_object_del(pairs, key);
    }
    n_new = json_dumpb(root, text + 8, sizeof text - 8 - 1024, JSON_COMPACT);
    text[0] = (char)(n_new & 255);
    text[1] = (char)(n_new >> 8);
    memcpy(text + 8 + n_new, bytes + 8 + n_header, n - 8 - n_header);
    write_bytes(path, text, 8 + n_new + n - 8 - n_header);
    json_decref(root);
    free(bytes);
}

static const char *save_v1(const char *name, const model *m, void **state)
{
    const char *path = save_one(name, m, state);
    write_v1_state(path, "25", "200", "32");
    for (int f = 0; f < 2; f++)
        strip_checksums(path_in(path, files[f]));
    return path;
}

static void older_checkpoints_without_checksums_are_read(void **state)
{
    model m, back;
    rc_error err = {0};
    rc_state is = this_run();
    fill_model(&m, 1);
    const char *path = save_v1("older", &m, state);
    fill_model(&back, 7);
    if (rc_checkpoint_load(path, &back.all, &is, *state, &err) != RC_OK)
        fail_msg("%s", err.msg);
    assert_true(is_same_model(&m, &back));
    assert_true(is.is_unsealed);
    assert_int_equal(is.valid.from_iteration, 25);
    assert_int_equal(is.valid.from_samples, 32);
}

static void values_that_an_older_version_should_not_have_saved_are_refused(void **state)
{
    for (int at = 0; at < 3; at++) {
        model m;
        rc_error err;
        fill_model(&m, 1);
        *(at == 0 ? &m.w[5] : at == 1 ? &m.moments[1] : &m.moments[7]) = at == 2 ? -1 : NAN;
        const char *path = save_v1("older-bad", &m, state);
        assert_false(is_loaded(path, &m, state, &err));
        assert_non_null(strstr(err.msg, at == 0 ? "w has 1 of 6 values that are not finite"
                                                : "1 of 6 values that are not finite"));
    }
}

/* In a file with checksums none may be missing or misspelt: the name or the key was damaged. */
static void half_a_set_of_checksums_is_refused(void **state)
{
    model m;
    rc_error err;
    fill_model(&m, 1);
    const char *path = save_one("half", &m, state);
    write_v1_state(path, "25", "200", "32");
    assert_true(is_loaded(path, &m, state, &err));
    const char *name = path_in(path, "model.safetensors");
    size_t n;
    char *bytes = read_all(name, &n);
    for (size_t i = 0; i + 8 < n; i++) {
        if (memcmp(bytes + i, "crc32.b\"", 8) != 0)
            continue;
        bytes[i + 6] = 'c';
        break;
    }
    write_bytes(name, bytes, n);
    free(bytes);
    assert_false(is_loaded(path, &m, state, &err));
    assert_non_null(strstr(err.msg, "tensor b has no checksum and others have"));
}

/* --- counts --- */

static void counts_of_an_older_version_must_fit(void **state)
{
    static const struct {
        const char *iteration, *train, *valid, *says; /* NULL: fine */
    } cases[] = {
        {"25", "200", "32", NULL},
        {"25", "200", "8", NULL}, /* other settings of evaluation than this run's */
        {"25", "200", "0", NULL},
        {"25", "17", "32",
         "has 17 consumed_train_samples at iteration 25; with 8 samples a step"},
        {"25", "0", "32", "it is 200"},
        {"25", "4611686018427387904", "32", "it is 200"},
        {"25", "9223372036854775808", "32", "has no consumed_train_samples"},
        {"25", "-200", "32", "has no consumed_train_samples"},
        {"25", "200.0", "32", "has no consumed_train_samples"},
        {"25", "\"200\"", "32", "has no consumed_train_samples"},
        {"25", "null", "32", "has no consumed_train_samples"},
        {"25", "[[[[{}]]]]", "32", "has no consumed_train_samples"},
        {"24", "192", "32", "lies in the folder of iteration 25"},
        {"-25", "200", "32", "has no iteration"},
        {"1e1", "200", "32", "has no iteration"},
        {"4611686018427387904", "200", "32", "lies in the folder of iteration 25"},
        {"25", "200", "3", "has 3 consumed_valid_samples, which evaluations of whole batches"},
        {"25", "200", "2305843009213693952", "consumed_valid_samples, which evaluations"},
        {"25", "200", "4611686018427387904", "consumed_valid_samples, which evaluations"},
        {"25", "200", "9223372036854775800", "consumed_valid_samples, which evaluations"},
        {"25", "200", "-8", "has no consumed_valid_samples"},
        {"25", "200", "true", "has no consumed_valid_samples"},
        {"25", "200", "32, \"iteration\": 25", "iteration"}, /* twice */
    };
    model m;
    rc_error err;
    fill_model(&m, 1);
    const char *path = save_one("counts", &m, state);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        model back;
        rc_state is = this_run();
        err = (rc_error){0};
        fill_model(&back, 1);
        write_v1_state(path, cases[i].iteration, cases[i].train, cases[i].valid);
        rc_code code = rc_checkpoint_load(path, &back.all, &is, *state, &err);
        if (code != (cases[i].says ? RC_E_INPUT : RC_OK) ||
            (cases[i].says && !strstr(err.msg, cases[i].says)))
            fail_msg("case %zu: code %d, \"%s\"", i, (int)code, err.msg);
    }
}

/* Replaces one piece of state.json and gives it a right checksum again, as its page describes it. */
static void edit_state(const char *path, const char *from, const char *to)
{
    static const char seal[] = "\"crc32\": \"00000000\"\n}\n";
    char text[8192], crc[16];
    size_t n;
    char *bytes = read_all(path, &n), *at = strstr(bytes, from);
    assert_non_null(at);
    n = (size_t)snprintf(text, sizeof text, "%.*s%s%s", (int)(at - bytes), bytes, to,
                         at + strlen(from));
    char *digits = text + n - sizeof seal + 1 + strlen("\"crc32\": \"");
    memcpy(digits, "00000000", 8);
    assert_string_equal(text + n - sizeof seal + 1, seal);
    snprintf(crc, sizeof crc, "%08lx", crc32(0, (const Bytef *)text, (uInt)n));
    memcpy(digits, crc, 8);
    write_bytes(path, text, n);
    free(bytes);
}

static void counts_under_a_right_checksum_must_fit_too(void **state)
{
    static const struct {
        const char *from, *to, *says; /* NULL: fine */
    } cases[] = {
        {"\"order\"", "\"order\"", NULL},
        {"\"version\": 2", "\"version\": 3", "version 3; versions 1 to 2 are read"},
        {"\"version\": 2", "\"version\": 1", "version 1 and a checksum"},
        {"\"iteration\": 25", "\"iteration\": 24", "lies in the folder of iteration 25"},
        {"_train_samples\": 200", "_train_samples\": 208", "it is 200"},
        {"_valid_samples\": 32", "_valid_samples\": 48", "by the evaluation it names it is 32"},
        {"_valid_samples\": 32", "_valid_samples\": 0", "by the evaluation it names it is 32"},
        {"\"samples\": 16", "\"samples\": 24", "by the evaluation it names it is 48"},
        {"\"samples\": 16", "\"samples\": 4611686018427387904", "does not fit its iteration"},
        {"\"samples\": 16", "\"samples\": -1", "has no samples"},
        {"\"eval_interval\": 10", "\"eval_interval\": 4611686018427387904", "does not fit"},
        {"\"eval_interval\": 10", "\"eval_interval\": 0", "it is 0"},
        {"\"train_iters\": 1000", "\"train_iters\": 20", "does not fit its iteration"},
        {"\"from_iteration\": 0", "\"from_iteration\": 26", "does not fit its iteration"},
        {"\"from_iteration\": 0", "\"from_iteration\": 20", "it is 0"},
        {"\"from_samples\": 0", "\"from_samples\": 16", "does not fit its iteration"},
        {"\"from_samples\": 0", "\"from_samples\": null", "has no from_samples"},
        {"\"evaluation\"", "\"validation\"", "has no evaluation"},
        {"\"files\"", "\"file\"", "has no files"},
        {"\"bytes\"", "\"byte\"", "has no bytes"},
        {"\"identity\"", "\"entity\"", "has no identity"},
    };
    model m;
    rc_error err;
    fill_model(&m, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *path = save_one("sealed", &m, state);
        edit_state(path_in(path, "state.json"), cases[i].from, cases[i].to);
        bool is_ok = is_loaded(path, &m, state, &err);
        if (is_ok != !cases[i].says || (cases[i].says && !strstr(err.msg, cases[i].says)))
            fail_msg("case %zu (%s): \"%s\"", i, cases[i].to, err.msg);
    }
}

static void more_steps_than_the_run_has_are_refused(void **state)
{
    model m;
    rc_error err = {0};
    rc_state is = this_run();
    fill_model(&m, 1);
    const char *path = save_one("long", &m, state);
    is.valid.n_steps = 24;
    assert_int_equal(rc_checkpoint_load(path, &m.all, &is, *state, &err), RC_E_INPUT);
    assert_non_null(strstr(err.msg, "has 25 steps, train.train_iters is 24"));
}

/* What was counted under other settings of evaluation stays, and the new ones count from there. */
static void other_evaluations_count_from_where_they_begin(void **state)
{
    model m;
    rc_error err = {0};
    rc_state is = this_run();
    fill_model(&m, 1);
    const char *path = save_one("other-plan", &m, state),
               *where = path_in(folder, "other-plan");
    is.valid.interval = 7;
    is.valid.n_batch_samples = 8;
    if (rc_checkpoint_load(path, &m.all, &is, *state, &err) != RC_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(rc_valid_plan_count(&is.valid, 25), 32);
    assert_int_equal(rc_valid_plan_count(&is.valid, 27), 32);
    assert_int_equal(rc_valid_plan_count(&is.valid, 28), 40);
    assert_int_equal(rc_valid_plan_count(&is.valid, 999), 32 + (142 - 3) * 8);
    assert_int_equal(rc_valid_plan_count(&is.valid, 1000), 32 + (142 - 3 + 1) * 8);
    is.iteration = 28;
    is.n_train_samples = 224;
    is.n_valid_samples = 40;
    assert_int_equal(rc_checkpoint_save(where, &is, &m.all, *state, &err), RC_OK);
    rc_state again = this_run();
    again.valid.interval = 7;
    again.valid.n_batch_samples = 8;
    assert_int_equal(
        rc_checkpoint_load(path_in(where, "iter_0000028"), &m.all, &again, *state, &err),
        RC_OK);
    assert_int_equal(again.valid.from_iteration, 25);
    assert_int_equal(again.valid.from_samples, 32);
}

/* --- what killed saves left --- */

static void only_what_saves_leave_is_removed(void **state)
{
    static const struct {
        const char *directory, *file; /* made */
        bool is_kept;
    } cases[] = {
        {"iter_0000030.tmp", NULL, false},
        {"iter_0000031.tmp", "model.safetensors.tmp.77", false},
        {"iter_0000032.tmp", "optimizer.safetensors", false},
        {"iter_0000033.tmp", "state.json", false},
        {"iter_12345678.tmp", "state.json", false},
        {"iter_0000025.old", "state.json", false},
        {NULL, "latest_checkpointed_iteration.txt.tmp.4711", false},
        {"iter_0000034.tmp", "notes.txt", true},
        {"iter_0000035.tmp", "model.safetensors.tmp.", true},
        {"iter_0000036.tmp", "model.safetensors.bak", true},
        {"iter_0000040.old", "state.json", true}, /* there is no iter_0000040 */
        {"iter_30.tmp", "state.json", true},
        {"iter_00000030.tmp", "state.json", true},
        {"iter_0000030.tmp2", "state.json", true},
        {"iter_0000030", "state.json", true},
        {"iter_.tmp", "state.json", true},
        {"my_0000030.tmp", "state.json", true},
        {NULL, "iter_0000050.tmp", true}, /* a file: a save makes directories */
        {NULL, "latest_checkpointed_iteration.txt.tmp", true},
        {NULL, "latest_checkpointed_iteration.txt.tmp.x", true},
        {NULL, "other.txt.tmp.4711", true},
    };
    enum { N = sizeof cases / sizeof *cases };
    model m;
    const char *where = path_in(folder, "leave"), *path[N];
    fill_model(&m, 1);
    save_one("leave", &m, state);
    for (int i = 0; i < N; i++) {
        path[i] = path_in(where, cases[i].directory ? cases[i].directory : cases[i].file);
        if (cases[i].directory)
            mkdir(path[i], 0700);
        if (cases[i].file)
            write_bytes(cases[i].directory ? path_in(path[i], cases[i].file) : path[i], "x", 1);
    }
    assert_int_equal(symlink("iter_0000030", path_in(where, "iter_0000060.tmp")), 0);
    assert_int_equal(rc_checkpoint_clean(where, *state, NULL), RC_OK);
    for (int i = 0; i < N; i++)
        if ((access(path[i], F_OK) == 0) != cases[i].is_kept)
            fail_msg("%s is %s", path[i], cases[i].is_kept ? "gone" : "there");
    assert_int_equal(access(path_in(where, "iter_0000060.tmp"), F_OK), 0);
    assert_int_equal(access(path_in(where, "iter_0000025/state.json"), F_OK), 0);
}

static void a_users_file_in_the_way_of_a_save_is_not_removed(void **state)
{
    model m;
    rc_error err = {0};
    rc_state at = state_at(26);
    const char *where = path_in(folder, "way");
    fill_model(&m, 1);
    save_one("way", &m, state);
    mkdir(path_in(where, "iter_0000026.tmp"), 0700);
    write_bytes(path_in(where, "iter_0000026.tmp/thesis.tex"), "x", 1);
    assert_int_equal(rc_checkpoint_save(where, &at, &m.all, *state, &err), RC_E_IO);
    assert_non_null(strstr(err.msg, "holds thesis.tex, which no save writes"));
    assert_int_equal(access(path_in(where, "iter_0000026.tmp/thesis.tex"), F_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checksums_are_those_of_zlib),
        cmocka_unit_test(what_is_not_finite_is_named_and_counted),
        cmocka_unit_test(values_are_found_anywhere_in_large_weights),
        cmocka_unit_test(every_flipped_bit_is_noticed),
        cmocka_unit_test(every_flipped_bit_of_the_pointer_is_noticed),
        cmocka_unit_test(files_of_another_iteration_are_refused),
        cmocka_unit_test(older_checkpoints_without_checksums_are_read),
        cmocka_unit_test(values_that_an_older_version_should_not_have_saved_are_refused),
        cmocka_unit_test(half_a_set_of_checksums_is_refused),
        cmocka_unit_test(counts_of_an_older_version_must_fit),
        cmocka_unit_test(counts_under_a_right_checksum_must_fit_too),
        cmocka_unit_test(more_steps_than_the_run_has_are_refused),
        cmocka_unit_test(other_evaluations_count_from_where_they_begin),
        cmocka_unit_test(only_what_saves_leave_is_removed),
        cmocka_unit_test(a_users_file_in_the_way_of_a_save_is_not_removed),
    };
    return cmocka_run_group_tests_name("keep", tests, open_all, close_all);
}
