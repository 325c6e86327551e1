/* train/checkpoint.c — saves a run so that its continuation cannot be told from no stop at all.
 *
 * The files go to iter_NNNNNNN.tmp, which is renamed once all are on disk; the pointer file is
 * replaced after that. So whatever the pointer names is complete. An older checkpoint of the same
 * iteration is iter_NNNNNNN.old meanwhile.
 */
#include "train/checkpoint.h"

#include "base/num.h"
#include "base/text.h"

#include <recompute/read.h>

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

enum { STATE_VERSION = 1 };
static const char pointer_name[] = "latest_checkpointed_iteration.txt";
static const char model_name[] = "model.safetensors";
static const char optimizer_name[] = "optimizer.safetensors";
static const char state_name[] = "state.json";

static rc_code join(const char *folder, const char *name, rc_arena *mem, const char **out,
                    rc_error *err)
{
    return rc_arena_printf(mem, out, err, "%s/%s", folder, name);
}

static json_t *object_of(const rc_pair *pairs, size_t n)
{
    json_t *object = json_object();
    for (size_t i = 0; i < n; i++)
        json_object_set_new(object, pairs[i].key, json_string(pairs[i].value));
    return object;
}

static json_t *describe(const rc_state *state)
{
    return json_pack("{s:i, s:I, s:I, s:I, s:o, s:o}", "version", STATE_VERSION, "iteration",
                     (json_int_t)state->iteration, "consumed_train_samples",
                     (json_int_t)state->n_train_samples, "consumed_valid_samples",
                     (json_int_t)state->n_valid_samples, "identity",
                     object_of(state->identity, state->n_identity), "order",
                     object_of(state->order, state->n_order));
}

static rc_code save_state(const char *path, const rc_state *state, rc_error *err)
{
    rc_out_file file;
    RC_TRY(rc_out_file_open(path, &file, err));
    json_t *root = describe(state);
    bool is_written = root && json_dumpf(root, file.to, JSON_INDENT(2)) == 0;
    json_decref(root);
    if (is_written) {
        fputc('\n', file.to);
        return rc_out_file_commit(&file, err);
    }
    rc_out_file_abort(&file);
    return RC_FAIL(err, RC_E_IO, RC_NOWHERE, "cannot write %s", path);
}

static rc_code save_pointer(const char *folder, int64_t iteration, rc_arena *tmp, rc_error *err)
{
    rc_out_file file;
    const char *path;
    RC_TRY(join(folder, pointer_name, tmp, &path, err));
    RC_TRY(rc_out_file_open(path, &file, err));
    fprintf(file.to, "%" PRId64 "\n", iteration);
    return rc_out_file_commit(&file, err);
}

static rc_code save_files(const char *folder, const rc_state *state,
                          const rc_checkpoint *checkpoint, rc_arena *tmp, rc_error *err)
{
    rc_pair format = {"format", "pt"}; /* without it PyTorch libraries refuse to load */
    const char *path;
    RC_TRY(rc_path_make_directory(folder, err));
    RC_TRY(join(folder, model_name, tmp, &path, err));
    RC_TRY(
        rc_weights_save(path, checkpoint->weights, checkpoint->n_weights, &format, tmp, err));
    RC_TRY(join(folder, optimizer_name, tmp, &path, err));
    RC_TRY(
        rc_weights_save(path, checkpoint->moments, checkpoint->n_moments, &format, tmp, err));
    RC_TRY(join(folder, state_name, tmp, &path, err));
    return save_state(path, state, err);
}

static rc_code save(const char *folder, const rc_state *state, const rc_checkpoint *checkpoint,
                    rc_arena *tmp, rc_error *err)
{
    const char *made, *making, *old;
    RC_TRY(rc_arena_printf(tmp, &made, err, "%s/iter_%07" PRId64, folder, state->iteration));
    RC_TRY(rc_arena_printf(tmp, &making, err, "%s.tmp", made));
    RC_TRY(rc_arena_printf(tmp, &old, err, "%s.old", made));
    RC_TRY(rc_path_remove_folder(making, err)); /* what a killed run left half written */
    rc_code code = save_files(making, state, checkpoint, tmp, err);
    if (code != RC_OK) {
        rc_code cleaned = rc_path_remove_folder(making, NULL);
        (void)cleaned; /* the failure to tell is the first one */
        return code;
    }
    /* Where there is no `made`, `old` may be the one checkpoint that the pointer means. */
    if (rc_path_exists(made)) {
        RC_TRY(rc_path_remove_folder(old, err));
        RC_TRY(rc_path_rename(made, old, err));
    }
    RC_TRY(rc_path_rename(making, made, err));
    RC_TRY(save_pointer(folder, state->iteration, tmp, err));
    return rc_path_remove_folder(old, err);
}

rc_code rc_checkpoint_save(const char *folder, const rc_state *state,
                           const rc_checkpoint *checkpoint, rc_arena *tmp, rc_error *err)
{
    rc_mark mark = rc_arena_mark(tmp);
    RC_TRY(save(folder, state, checkpoint, tmp, err)); /* an error names paths in `tmp` */
    rc_arena_rewind(tmp, mark);
    return RC_OK;
}

rc_code rc_checkpoint_find(const char *folder, rc_arena *mem, const char **path, rc_error *err)
{
    const char *pointer, *text;
    size_t n;
    int64_t iteration;
    char word[32];
    *path = NULL;
    RC_TRY(join(folder, pointer_name, mem, &pointer, err));
    if (!rc_path_exists(pointer))
        return RC_OK;
    RC_TRY(rc_file_read(pointer, 1024, mem, &text, &n, err));
    n = strcspn(text, " \r\n");
    snprintf(word, sizeof word, "%.*s", (int)(n < 31 ? n : 31), text);
    if (!rc_parse_int(word, &iteration) || iteration < 0)
        return RC_FAIL(err, RC_E_INPUT, (rc_where){.file = pointer},
                       "holds no iteration number; a checkpoint's is 0 or more");
    RC_TRY(rc_arena_printf(mem, path, err, "%s/iter_%07" PRId64, folder, iteration));
    if (rc_path_exists(*path))
        return RC_OK;
    /* A run killed while it saved this iteration a second time, between the two renames. */
    const char *old;
    RC_TRY(rc_arena_printf(mem, &old, err, "%s.old", *path));
    if (rc_path_exists(old))
        *path = old;
    return RC_OK;
}

static rc_code read_count(const rc_doc *root, const char *key, int64_t *out, rc_error *err)
{
    const rc_doc *node = rc_doc_find(root, key);
    if (!node || node->kind != RC_DOC_INT || node->i < 0)
        return RC_FAIL(err, RC_E_INPUT, node ? node->where : root->where,
                       "has no %s; a count of 0 or more is needed", key);
    *out = node->i;
    return RC_OK;
}

static rc_code compare(const rc_doc *root, const rc_state *state, rc_error *err)
{
    const rc_doc *saved = rc_doc_find(root, "identity");
    char was[200];
    for (size_t i = 0; i < state->n_identity; i++) {
        const rc_pair *pair = &state->identity[i];
        const rc_doc *node = rc_doc_find(saved, pair->key);
        if (node && node->kind == RC_DOC_STRING && strcmp(node->text, pair->value) == 0)
            continue;
        bool is_text = node && node->kind == RC_DOC_STRING;
        rc_text_printable(is_text ? node->text : "unknown", is_text ? node->n_bytes : 7, was,
                          sizeof was);
        return RC_FAIL(
            err, RC_E_INPUT, node ? node->where : root->where,
            "the checkpoint was made with %s %s, this run has %s; resuming must "
            "continue the same run (checkpoint.pretrained_checkpoint starts a new one "
            "from its weights)",
            pair->key, was, pair->value);
    }
    return RC_OK;
}

/* A checkpoint that lacks a pair (older ones have none) does not differ. */
static rc_code tell_order(const rc_doc *root, rc_state *state, rc_arena *mem, rc_error *err)
{
    const rc_doc *saved = rc_doc_find(root, "order");
    rc_text text = {.mem = mem};
    char was[64];
    for (size_t i = 0; i < state->n_order; i++) {
        const rc_pair *pair = &state->order[i];
        const rc_doc *node = rc_doc_find(saved, pair->key);
        if (!node || node->kind != RC_DOC_STRING || strcmp(node->text, pair->value) == 0)
            continue;
        rc_text_printable(node->text, node->n_bytes, was, sizeof was);
        RC_TRY(rc_text_printf(&text, err, "%s%s was %s and is %s", text.at ? ", " : "",
                              pair->key, was, pair->value));
    }
    state->differs = text.at;
    return RC_OK;
}

static rc_code load_state(const char *path, rc_state *state, rc_arena *tmp, rc_error *err)
{
    const char *bytes;
    size_t n;
    rc_doc *root;
    int64_t version;
    RC_TRY(rc_file_read(path, RC_READ_MAX_BYTES, tmp, &bytes, &n, err));
    RC_TRY(rc_json_read(path, bytes, n, tmp, &root, err));
    RC_TRY(read_count(root, "version", &version, err));
    if (version != STATE_VERSION)
        return RC_FAIL(err, RC_E_UNSUPPORTED, root->where,
                       "has version %" PRId64 "; version %d is read here", version,
                       STATE_VERSION);
    RC_TRY(compare(root, state, err));
    RC_TRY(tell_order(root, state, tmp, err));
    RC_TRY(read_count(root, "iteration", &state->iteration, err));
    RC_TRY(read_count(root, "consumed_train_samples", &state->n_train_samples, err));
    return read_count(root, "consumed_valid_samples", &state->n_valid_samples, err);
}

rc_code rc_checkpoint_load(const char *path, const rc_checkpoint *checkpoint, rc_state *state,
                           rc_arena *tmp, rc_error *err)
{
    const char *name;
    RC_TRY(join(path, state_name, tmp, &name, err));
    RC_TRY(load_state(name, state, tmp, err));
    RC_TRY(join(path, model_name, tmp, &name, err));
    RC_TRY(rc_weights_load(name, checkpoint->weights, checkpoint->n_weights, tmp, err));
    RC_TRY(join(path, optimizer_name, tmp, &name, err));
    return rc_weights_load(name, checkpoint->moments, checkpoint->n_moments, tmp, err);
}
