/* test_checkpoint.c — runs on disk, and weights made elsewhere. */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "checkpoint_model.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

static char folder[64];

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

static void expect_same(const model *a, const model *b)
{
    assert_true(is_same_model(a, b));
}

static void what_is_saved_is_loaded(void **state)
{
    model saved, loaded;
    rc_error err = {0};
    const char *path, *where = path_in(folder, "a/run");
    rc_state was = state_at(100), is = this_run();
    fill_model(&saved, 1);
    fill_model(&loaded, 2);
    assert_int_equal(rc_checkpoint_save(where, &was, &saved.all, *state, &err), RC_OK);
    assert_int_equal(rc_checkpoint_find(where, *state, &path, &err), RC_OK);
    assert_non_null(strstr(path, "a/run/iter_0000100"));
    assert_int_equal(rc_checkpoint_load(path, &loaded.all, &is, *state, &err), RC_OK);
    expect_same(&saved, &loaded);
    assert_int_equal(is.iteration, 100);
    assert_int_equal(is.n_train_samples, 800);
    assert_int_equal(is.n_valid_samples, 160);
}

static void newest_checkpoint_is_found_and_the_same_one_may_be_written_again(void **state)
{
    model m, back;
    const char *path, *where = path_in(folder, "b");
    rc_state at = state_at(5), is = this_run();
    fill_model(&m, 1);
    assert_int_equal(rc_checkpoint_save(where, &at, &m.all, *state, NULL), RC_OK);
    at = state_at(7);
    assert_int_equal(rc_checkpoint_save(where, &at, &m.all, *state, NULL), RC_OK);
    fill_model(&m, 9);
    assert_int_equal(rc_checkpoint_save(where, &at, &m.all, *state, NULL), RC_OK);
    assert_int_equal(rc_checkpoint_find(where, *state, &path, NULL), RC_OK);
    assert_non_null(strstr(path, "iter_0000007"));
    fill_model(&back, 0);
    assert_int_equal(rc_checkpoint_load(path, &back.all, &is, *state, NULL), RC_OK);
    expect_same(&m, &back);
    assert_int_not_equal(access(path_in(where, "iter_0000007.tmp"), F_OK), 0);
    assert_int_not_equal(access(path_in(where, "iter_0000007.old"), F_OK), 0);
}

/* A crash in the middle of saving leaves iter_N.tmp behind and the pointer where it was. */
static void a_half_written_checkpoint_is_not_seen(void **state)
{
    model m;
    const char *path, *where = path_in(folder, "c");
    rc_state at = state_at(1);
    fill_model(&m, 1);
    assert_int_equal(rc_checkpoint_save(where, &at, &m.all, *state, NULL), RC_OK);
    assert_int_equal(mkdir(path_in(where, "iter_0000002.tmp"), 0700), 0);
    write_bytes(path_in(where, "iter_0000002.tmp/model.safetensors"), "half", 4);
    assert_int_equal(rc_checkpoint_find(where, *state, &path, NULL), RC_OK);
    assert_non_null(strstr(path, "iter_0000001"));
    at = state_at(2);
    assert_int_equal(rc_checkpoint_save(where, &at, &m.all, *state, NULL), RC_OK);
    assert_int_equal(rc_checkpoint_find(where, *state, &path, NULL), RC_OK);
    assert_non_null(strstr(path, "iter_0000002"));
}

static void make_full_folder(const char *path)
{
    char file[4096];
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(file, sizeof file, "%s/model.safetensors.tmp.1", path);
    write_bytes(file, "half", 4);
}

/* What a killed run left half written is in no checkpoint that is written later, nor in its way. */
static void what_a_killed_run_left_is_taken_away(void **state)
{
    model m;
    const char *where = path_in(folder, "killed");
    rc_state at = state_at(2);
    rc_error err = {0};
    fill_model(&m, 1);
    assert_int_equal(mkdir(where, 0700), 0);
    make_full_folder(path_in(where, "iter_0000002.tmp"));
    make_full_folder(path_in(where, "iter_0000002.old"));
    for (int i = 0; i < 2; i++) {
        if (rc_checkpoint_save(where, &at, &m.all, *state, &err) != RC_OK)
            fail_msg("save %d: %s", i, err.msg);
        assert_int_equal(access(path_in(where, "iter_0000002/model.safetensors"), F_OK), 0);
        assert_int_not_equal(
            access(path_in(where, "iter_0000002/model.safetensors.tmp.1"), F_OK), 0);
        assert_int_not_equal(access(path_in(where, "iter_0000002.tmp"), F_OK), 0);
        assert_int_not_equal(access(path_in(where, "iter_0000002.old"), F_OK), 0);
    }
}

/* A disk that is full, as far as a test may have one: files may not pass 100 bytes. */
static void a_save_that_fails_leaves_nothing(void **state)
{
    model m;
    const char *path, *where = path_in(folder, "full");
    rc_state at = state_at(1);
    rc_error err = {0};
    struct rlimit before, small;
    fill_model(&m, 1);
    assert_int_equal(rc_checkpoint_save(where, &at, &m.all, *state, NULL), RC_OK);
    at = state_at(2);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){.rlim_cur = 100, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    rc_code code = rc_checkpoint_save(where, &at, &m.all, *state, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(code, RC_E_IO);
    assert_non_null(strstr(err.msg, "cannot write"));
    assert_int_not_equal(access(path_in(where, "iter_0000002.tmp"), F_OK), 0);
    assert_int_equal(rc_checkpoint_find(where, *state, &path, NULL), RC_OK);
    assert_non_null(strstr(path, "iter_0000001"));
}

/* Killed between the two renames of a second save: the first one is found, and written over. */
static void a_checkpoint_that_was_being_replaced_is_found(void **state)
{
    model m, back;
    const char *path, *where = path_in(folder, "replaced");
    rc_state at = state_at(3), is = this_run();
    fill_model(&m, 1);
    assert_int_equal(rc_checkpoint_save(where, &at, &m.all, *state, NULL), RC_OK);
    assert_int_equal(rename(path_in(where, "iter_0000003"), path_in(where, "iter_0000003.old")),
                     0);
    assert_int_equal(rc_checkpoint_find(where, *state, &path, NULL), RC_OK);
    assert_non_null(strstr(path, "iter_0000003.old"));
    fill_model(&back, 0);
    assert_int_equal(rc_checkpoint_load(path, &back.all, &is, *state, NULL), RC_OK);
    expect_same(&m, &back);
    assert_int_equal(rc_checkpoint_save(where, &at, &m.all, *state, NULL), RC_OK);
    assert_int_equal(rc_checkpoint_find(where, *state, &path, NULL), RC_OK);
    assert_null(strstr(path, ".old"));
    assert_int_not_equal(access(path_in(where, "iter_0000003.old"), F_OK), 0);
}

static void folder_without_checkpoint_is_a_first_start(void **state)
{
    const char *path = "?";
    assert_int_equal(rc_checkpoint_find(path_in(folder, "none"), *state, &path, NULL), RC_OK);
    assert_null(path);
}

static void pointer_that_is_no_number_is_refused(void **state)
{
    static const char *const bad[] = {"", "release", "-1", "1e3", "99999999999999999999"};
    const char *path;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        rc_error err = {0};
        write_bytes(path_in(folder, "latest_checkpointed_iteration.txt"), bad[i],
                    strlen(bad[i]));
        assert_int_equal(rc_checkpoint_find(folder, *state, &path, &err), RC_E_INPUT);
        assert_non_null(strstr(err.msg, "no iteration number"));
    }
}

static void another_runs_checkpoint_is_refused_naming_the_setting(void **state)
{
    static const rc_same other[] = {{"model.num_layers", "2", NULL},
                                    {"optimizer.lr", "0.002", NULL}};
    static const rc_same more[] = {{"model.num_layers", "2", NULL}, {"new.key", "1", NULL}};
    model m;
    rc_error err = {0};
    const char *path, *where = path_in(folder, "d");
    rc_state at = state_at(1), is = this_run();
    is.identity = other;
    fill_model(&m, 1);
    assert_int_equal(rc_checkpoint_save(where, &at, &m.all, *state, NULL), RC_OK);
    assert_int_equal(rc_checkpoint_find(where, *state, &path, NULL), RC_OK);
    assert_int_equal(rc_checkpoint_load(path, &m.all, &is, *state, &err), RC_E_INPUT);
    assert_non_null(strstr(err.msg, "optimizer.lr 0.001, this run has 0.002"));
    err = (rc_error){0};
    is.identity = more;
    assert_int_equal(rc_checkpoint_load(path, &m.all, &is, *state, &err), RC_E_INPUT);
    assert_non_null(strstr(err.msg, "new.key unknown"));
}

static void damaged_checkpoints_are_refused(void **state)
{
    static const struct {
        const char *file, *text, *says;
    } cases[] = {
        {"state.json", "", ""},
        {"state.json", "[]", "has no version"},
        {"state.json", "{\"version\": 9}", "version 9"},
        {"state.json", "{\"version\": 1}", "has no identity"},
        {"model.safetensors", "12345678", "is no safetensors file"},
        {"optimizer.safetensors", "", "too short"},
    };
    const char *path, *where = path_in(folder, "e");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        model m;
        rc_error err = {0};
        rc_state at = state_at(1), is = this_run();
        fill_model(&m, 1);
        assert_int_equal(rc_checkpoint_save(where, &at, &m.all, *state, NULL), RC_OK);
        assert_int_equal(rc_checkpoint_find(where, *state, &path, NULL), RC_OK);
        write_bytes(path_in(path, cases[i].file), cases[i].text, strlen(cases[i].text));
        rc_code code = rc_checkpoint_load(path, &m.all, &is, *state, &err);
        if (code == RC_OK || !strstr(err.msg, cases[i].says))
            fail_msg("case %zu: code %d, \"%s\"", i, (int)code, err.msg);
    }
}

static rc_code open_and_close(const char *path, const rc_weights_io *of, rc_arena *mem,
                              rc_error *err)
{
    rc_safetensors file;
    *err = (rc_error){0};
    rc_code code = rc_weights_open(path, of, NULL, &file, mem, err);
    if (code == RC_OK)
        rc_safetensors_close(&file);
    return code;
}

static void other_shapes_and_names_are_refused(void **state)
{
    model m;
    rc_error err;
    rc_file_seal seal;
    rc_weights_io io = {.at = m.weights, .n = 2, .n_threads = 1};
    const char *path = path_in(folder, "shapes.safetensors");
    fill_model(&m, 1);
    assert_int_equal(rc_weights_save(path, &io, &seal, *state, NULL), RC_OK);
    assert_int_equal(open_and_close(path, &io, *state, &err), RC_OK);
    m.weights[0].dims[0] = 3;
    m.weights[0].dims[1] = 2;
    assert_int_equal(open_and_close(path, &io, *state, &err), RC_E_INPUT);
    assert_non_null(strstr(err.msg, "tensor w has another shape"));
    fill_model(&m, 1);
    m.weights[1].name = "c";
    assert_int_equal(open_and_close(path, &io, *state, &err), RC_E_INPUT);
    assert_non_null(strstr(err.msg, "has no tensor c"));
    fill_model(&m, 1);
    io.n = 1;
    assert_int_equal(open_and_close(path, &io, *state, &err), RC_E_INPUT);
    assert_non_null(strstr(err.msg, "has 2 tensors, the model has 1"));
}

/* --- Hugging Face --- */

typedef struct tensors {
    float numbers[512];
    size_t n_numbers;
    rc_file_tensor at[32];
    size_t n;
} tensors;

/* Values count up through all tensors, so that every one is somewhere else. */
static void add_tensor(tensors *to, const char *name, int64_t rows, int64_t width)
{
    rc_file_tensor *tensor = &to->at[to->n++];
    int64_t n = rows * (width ? width : 1);
    *tensor = (rc_file_tensor){.name = name, .dtype = RC_FILE_F32, .n_dims = width ? 2 : 1};
    tensor->dims[0] = rows;
    tensor->dims[1] = width;
    tensor->at = to->numbers + to->n_numbers;
    for (int64_t i = 0; i < n; i++) {
        to->numbers[to->n_numbers] = (float)to->n_numbers;
        to->n_numbers++;
    }
}

static void write_tensors(const tensors *from, const char *path, void **state)
{
    rc_file_content content = {from->at, from->n, NULL, 0};
    assert_int_equal(rc_safetensors_write(path, &content, *state, NULL), RC_OK);
}

static float number_of(const tensors *from, const char *name, int64_t i)
{
    for (size_t k = 0; k < from->n; k++)
        if (strcmp(from->at[k].name, name) == 0)
            return ((const float *)from->at[k].at)[i];
    fail_msg("no %s", name);
    return 0;
}

/* GPT-2 with h 2, one layer, f 3, V 3 padded to 4, 5 positions of which s = 2 are used. */
static void make_gpt2(tensors *t)
{
    *t = (tensors){.n = 0};
    add_tensor(t, "transformer.wte.weight", 3, 2);
    add_tensor(t, "transformer.wpe.weight", 5, 2);
    add_tensor(t, "transformer.h.0.attn.c_attn.weight", 2, 6);
    add_tensor(t, "transformer.h.0.attn.bias", 1, 0);
    add_tensor(t, "transformer.h.0.mlp.c_fc.bias", 3, 0);
}

static void gpt2_weights_are_transposed_and_padded(void **state)
{
    tensors t;
    float words[8], positions[4], qkv[12], bias[3];
    rc_weight weights[] = {
        {"embedding.word_embeddings.weight", RC_F32, 2, {4, 2}, words, 2},
        {"embedding.position_embeddings.weight", RC_F32, 2, {2, 2}, positions, 0},
        {"decoder.layers.0.self_attention.linear_qkv.weight", RC_F32, 2, {6, 2}, qkv, 0},
        {"decoder.layers.0.mlp.linear_fc1.bias", RC_F32, 1, {3}, bias, 0},
    };
    rc_error err = {0};
    const char *path = path_in(folder, "gpt2.safetensors");
    make_gpt2(&t);
    memset(words, 0x7f, sizeof words);
    write_tensors(&t, path, state);
    if (rc_weights_start_from(path, weights, 4, *state, &err) != RC_OK)
        fail_msg("%s", err.msg);
    for (int i = 0; i < 8; i++)
        assert_true(words[i] == (i < 6 ? (float)i : 0));
    for (int i = 0; i < 4; i++)
        assert_true(positions[i] == (float)(6 + i));
    for (int out = 0; out < 6; out++)
        for (int in = 0; in < 2; in++)
            assert_true(qkv[out * 2 + in] ==
                        number_of(&t, "transformer.h.0.attn.c_attn.weight", in * 6 + out));
    for (int i = 0; i < 3; i++)
        assert_true(bias[i] == number_of(&t, "transformer.h.0.mlp.c_fc.bias", i));
}

/* Llama with h 2, d 2, a 2, g 1, f 3, split over two files that an index names. */
static void llama_weights_are_joined_from_parts(void **state)
{
    static const char index[] =
        "{\"weight_map\": {\"model.embed_tokens.weight\": \"a.safetensors\","
        "\"model.layers.11.self_attn.q_proj.weight\": \"a.safetensors\","
        "\"model.layers.11.mlp.up_proj.weight\": \"b.safetensors\"}}";
    tensors a = {.n = 0}, b = {.n = 0};
    float words[8], qkv[16], fc1[12], head[8];
    rc_weight weights[] = {
        {"embedding.word_embeddings.weight", RC_F32, 2, {4, 2}, words, 0},
        {"decoder.layers.11.self_attention.linear_qkv.weight", RC_F32, 2, {8, 2}, qkv, 0},
        {"decoder.layers.11.mlp.linear_fc1.weight", RC_F32, 2, {6, 2}, fc1, 0},
        {"output_layer.weight", RC_F32, 2, {4, 2}, head, 0},
    };
    rc_error err = {0};
    const char *where = path_in(folder, "llama");
    add_tensor(&a, "model.embed_tokens.weight", 4, 2);
    add_tensor(&a, "model.layers.11.self_attn.q_proj.weight", 4, 2);
    add_tensor(&a, "model.layers.11.self_attn.k_proj.weight", 2, 2);
    add_tensor(&a, "lm_head.weight", 4, 2);
    b.n_numbers = 100;
    for (int i = 0; i < 100; i++)
        b.numbers[i] = (float)i;
    add_tensor(&b, "model.layers.11.self_attn.v_proj.weight", 2, 2);
    add_tensor(&b, "model.layers.11.mlp.up_proj.weight", 3, 2);
    add_tensor(&b, "model.layers.11.mlp.gate_proj.weight", 3, 2);
    assert_int_equal(mkdir(where, 0700), 0);
    write_tensors(&a, path_in(where, "a.safetensors"), state);
    write_tensors(&b, path_in(where, "b.safetensors"), state);
    write_bytes(path_in(where, "model.safetensors.index.json"), index, strlen(index));
    if (rc_weights_start_from(where, weights, 4, *state, &err) != RC_OK)
        fail_msg("%s", err.msg);
    for (int i = 0; i < 16; i++) {
        const char *name = i < 8    ? "model.layers.11.self_attn.q_proj.weight"
                           : i < 12 ? "model.layers.11.self_attn.k_proj.weight"
                                    : "model.layers.11.self_attn.v_proj.weight";
        assert_true(qkv[i] == number_of(i < 12 ? &a : &b, name,
                                        i < 8    ? i
                                        : i < 12 ? i - 8
                                                 : i - 12));
    }
    for (int i = 0; i < 6; i++) {
        assert_true(fc1[i] == number_of(&b, "model.layers.11.mlp.gate_proj.weight", i));
        assert_true(fc1[6 + i] == number_of(&b, "model.layers.11.mlp.up_proj.weight", i));
        assert_true(head[i] == number_of(&a, "lm_head.weight", i));
    }
}

static void a_model_of_another_config_is_refused(void **state)
{
    tensors t;
    float room[64];
    const char *path = path_in(folder, "wrong.safetensors");
    rc_error err = {0};
    rc_weight weights[] = {
        {"embedding.word_embeddings.weight", RC_F32, 2, {4, 2}, room, 2},
        {"embedding.position_embeddings.weight", RC_F32, 2, {2, 2}, room, 0},
        {"decoder.layers.0.self_attention.linear_qkv.weight", RC_F32, 2, {6, 2}, room, 0},
    };
    make_gpt2(&t);
    write_tensors(&t, path, state);
    /* The bias of fc1 is left over: the config has no biases. */
    assert_int_equal(rc_weights_start_from(path, weights, 3, *state, &err), RC_E_INPUT);
    assert_non_null(strstr(err.msg, "transformer.h.0.mlp.c_fc.bias has no place"));
    err = (rc_error){0};
    weights[2].dims[0] = 12;
    assert_int_equal(rc_weights_start_from(path, weights, 3, *state, &err), RC_E_INPUT);
    assert_non_null(strstr(err.msg, "gives 6 rows"));
    err = (rc_error){0};
    weights[2].name = "decoder.layers.1.self_attention.linear_qkv.weight";
    assert_int_equal(rc_weights_start_from(path, weights, 3, *state, &err), RC_E_INPUT);
    assert_non_null(strstr(err.msg, "has no tensor h.1.attn.c_attn.weight"));
    err = (rc_error){0};
    weights[0].n_padding = 0;
    weights[0].dims[0] = 2; /* fewer rows than the file: a smaller vocabulary */
    assert_int_equal(rc_weights_start_from(path, weights, 3, *state, &err), RC_E_INPUT);
    assert_non_null(strstr(err.msg, "transformer.wte.weight [3,2] does not fit"));
    err = (rc_error){0};
    tensors other = {.n = 0};
    add_tensor(&other, "some.weight", 1, 1);
    write_tensors(&other, path, state);
    assert_int_equal(rc_weights_start_from(path, weights, 3, *state, &err), RC_E_UNSUPPORTED);
}

/* A word without weights is no word, and weights of a word that the config does not have are not
 * left out: only rows that pad may be missing, and only rows of 0 may be more. */
static void a_vocabulary_of_another_size_is_refused(void **state)
{
    static const struct {
        int64_t n_rows, n_padding;
        bool is_last_word_zero;
        const char *says;
    } cases[] = {
        {4, 2, false, NULL},
        {4, 0, false, "gives 3 rows of embedding.word_embeddings.weight, which has 4"},
        {7, 6, false, "gives 3 rows of embedding.word_embeddings.weight, which has 4"},
        {3, 0, false, NULL},
        {4, 4, false, "row 2 of embedding.word_embeddings.weight is a word"},
        {4, 4, true, NULL},
        {4, 6, true, "row 1 of embedding.word_embeddings.weight is a word"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tensors t = {.n = 0};
        float words[14];
        rc_error err = {0};
        const char *path = path_in(folder, "words.safetensors");
        rc_weight weight = {"embedding.word_embeddings.weight",
                            RC_F32,
                            2,
                            {cases[i].n_rows, 2},
                            words,
                            cases[i].n_padding};
        add_tensor(&t, "transformer.wte.weight", 3, 2);
        for (int k = 0; k < 6; k++)
            t.numbers[k] = k >= 4 && cases[i].is_last_word_zero ? 0 : (float)(k + 1);
        write_tensors(&t, path, state);
        rc_code code = rc_weights_start_from(path, &weight, 1, *state, &err);
        if (code != (cases[i].says ? RC_E_INPUT : RC_OK))
            fail_msg("case %zu: %s", i, err.msg);
        if (cases[i].says && !strstr(err.msg, cases[i].says))
            fail_msg("case %zu: %s", i, err.msg);
        for (int64_t k = 2 * cases[i].n_rows - cases[i].n_padding; k < 2 * cases[i].n_rows; k++)
            assert_true(code != RC_OK || words[k] == 0);
    }
}

static void an_index_cannot_name_files_outside_its_folder(void **state)
{
    static const char *const bad[] = {"../a.safetensors", "/etc/passwd", "a/b", "", "."};
    char index[200];
    const char *where = path_in(folder, "outside");
    assert_int_equal(mkdir(where, 0700), 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        rc_error err = {0};
        snprintf(index, sizeof index, "{\"weight_map\": {\"w\": \"%s\"}}", bad[i]);
        write_bytes(path_in(where, "model.safetensors.index.json"), index, strlen(index));
        assert_int_equal(rc_weights_start_from(where, NULL, 0, *state, &err), RC_E_INPUT);
        assert_non_null(strstr(err.msg, "outside its folder"));
    }
}

/* --- what cannot be looked at: a link to itself --- */

static void make_loop(const char *where, const char *name)
{
    assert_int_equal(symlink(name, path_in(where, name)), 0);
}

static void a_checkpoint_that_cannot_be_looked_at_is_not_passed_over(void **state)
{
    const char *path, *where = path_in(folder, "loop");
    model m;
    rc_error err = {0};
    rc_state at = state_at(1);
    fill_model(&m, 1);
    assert_int_equal(rc_checkpoint_save(where, &at, &m.all, *state, NULL), RC_OK);
    assert_int_equal(rename(path_in(where, "iter_0000001"), path_in(where, "iter_0000001.old")),
                     0);
    assert_int_equal(rc_checkpoint_find(where, *state, &path, NULL), RC_OK);
    make_loop(where, "iter_0000001");
    assert_int_equal(rc_checkpoint_find(where, *state, &path, &err), RC_E_IO);
    assert_string_equal(err.where.file, path_in(where, "iter_0000001"));
}

static void weights_that_cannot_be_looked_at_are_not_passed_over(void **state)
{
    static const char *const names[] = {"model.safetensors", "model.safetensors.index.json"};
    const char *where = path_in(folder, "loop-weights");
    assert_int_equal(rc_path_make_directory(where, NULL), RC_OK);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        rc_error err = {0};
        make_loop(where, names[i]);
        assert_int_equal(rc_weights_start_from(where, NULL, 0, *state, &err), RC_E_IO);
        assert_non_null(strstr(err.msg, "cannot look at it"));
        assert_string_equal(err.where.file, path_in(where, names[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_saved_is_loaded),
        cmocka_unit_test(newest_checkpoint_is_found_and_the_same_one_may_be_written_again),
        cmocka_unit_test(a_half_written_checkpoint_is_not_seen),
        cmocka_unit_test(what_a_killed_run_left_is_taken_away),
        cmocka_unit_test(a_save_that_fails_leaves_nothing),
        cmocka_unit_test(a_checkpoint_that_was_being_replaced_is_found),
        cmocka_unit_test(folder_without_checkpoint_is_a_first_start),
        cmocka_unit_test(pointer_that_is_no_number_is_refused),
        cmocka_unit_test(another_runs_checkpoint_is_refused_naming_the_setting),
        cmocka_unit_test(damaged_checkpoints_are_refused),
        cmocka_unit_test(other_shapes_and_names_are_refused),
        cmocka_unit_test(gpt2_weights_are_transposed_and_padded),
        cmocka_unit_test(llama_weights_are_joined_from_parts),
        cmocka_unit_test(a_model_of_another_config_is_refused),
        cmocka_unit_test(a_vocabulary_of_another_size_is_refused),
        cmocka_unit_test(an_index_cannot_name_files_outside_its_folder),
        cmocka_unit_test(a_checkpoint_that_cannot_be_looked_at_is_not_passed_over),
        cmocka_unit_test(weights_that_cannot_be_looked_at_are_not_passed_over),
    };
    return cmocka_run_group_tests_name("checkpoint", tests, open_all, close_all);
}
