/* train/state.c — state.json: where a run stands, what it depends on, and what its files must be.
 *
 * Version 2 ends in `"crc32": "89abcdef"`, the CRC-32 of the whole text with zeros for these 8
 * digits, so that damage to any byte is noticed. Version 1 had neither that, nor `files`, nor
 * `evaluation`; it is read all the same.
 */
#include "train/checkpoint.h"

#include "base/checksum.h"
#include "base/num.h"
#include "base/text.h"

#include <recompute/read.h>

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

enum { STATE_VERSION = 2, UNSEALED_VERSION = 1 };
static const char seal_start[] = "\"crc32\": \"", seal_end[] = "\"\n}\n",
                  no_crc32[] = "00000000";

const char rc_state_name[] = "state.json";
const char rc_pointer_name[] = "latest_checkpointed_iteration.txt";
const char *const rc_checkpoint_file_names[RC_CHECKPOINT_FILES] = {"model.safetensors",
                                                                   "optimizer.safetensors"};

int64_t rc_valid_plan_count(const rc_valid_plan *plan, int64_t iteration)
{
    int64_t n_times[2] = {0, 0}, at[2] = {plan->from_iteration, iteration};
    if (plan->interval == 0)
        return plan->from_samples;
    for (int i = 0; i < 2; i++) {
        bool is_extra = at[i] == plan->n_steps && plan->n_steps % plan->interval != 0;
        n_times[i] = at[i] / plan->interval + is_extra;
    }
    return plan->from_samples + (n_times[1] - n_times[0]) * plan->n_batch_samples;
}

/* --- write --- */

static json_t *object_of_order(const rc_state *state)
{
    json_t *object = json_object();
    for (size_t i = 0; i < state->n_order; i++)
        json_object_set_new(object, state->order[i].key, json_string(state->order[i].value));
    return object;
}

static json_t *object_of_identity(const rc_state *state)
{
    json_t *object = json_object();
    for (size_t i = 0; i < state->n_identity; i++)
        json_object_set_new(object, state->identity[i].key,
                            json_string(state->identity[i].value));
    return object;
}

static json_t *object_of_files(const rc_file_seal seals[RC_CHECKPOINT_FILES])
{
    json_t *object = json_object();
    char digits[RC_CRC32_DIGITS + 1];
    for (int i = 0; i < RC_CHECKPOINT_FILES; i++)
        json_object_set_new(object, rc_checkpoint_file_names[i],
                            json_pack("{s:I, s:s}", "bytes", (json_int_t)seals[i].n_bytes,
                                      "crc32", rc_crc32_print(seals[i].crc32, digits)));
    return object;
}

static json_t *object_of_plan(const rc_valid_plan *plan)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I}", "eval_interval", (json_int_t)plan->interval,
                     "samples", (json_int_t)plan->n_batch_samples, "train_iters",
                     (json_int_t)plan->n_steps, "from_iteration",
                     (json_int_t)plan->from_iteration, "from_samples",
                     (json_int_t)plan->from_samples);
}

static json_t *describe(const rc_state *state, const rc_file_seal seals[RC_CHECKPOINT_FILES])
{
    return json_pack("{s:i, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:s}", "version", STATE_VERSION,
                     "iteration", (json_int_t)state->iteration, "consumed_train_samples",
                     (json_int_t)state->n_train_samples, "consumed_valid_samples",
                     (json_int_t)state->n_valid_samples, "evaluation",
                     object_of_plan(&state->valid), "files", object_of_files(seals), "identity",
                     object_of_identity(state), "order", object_of_order(state), "crc32",
                     no_crc32);
}

/* The 8 digits of the seal, or NULL where the text does not end in one. */
static char *find_seal(char *text, size_t n)
{
    const size_t n_start = sizeof seal_start - 1, n_end = sizeof seal_end - 1;
    if (n < n_start + RC_CRC32_DIGITS + n_end)
        return NULL;
    char *digits = text + n - n_end - RC_CRC32_DIGITS;
    if (memcmp(digits - n_start, seal_start, n_start) != 0 ||
        memcmp(text + n - n_end, seal_end, n_end) != 0)
        return NULL;
    return digits;
}

static rc_code print(json_t *root, rc_arena *tmp, char **out, size_t *n, rc_error *err)
{
    size_t n_json = root ? json_dumpb(root, NULL, 0, JSON_INDENT(2)) : 0;
    RC_TRY(RC_NEW(tmp, out, n_json + 2, err));
    if (n_json == 0 || json_dumpb(root, *out, n_json, JSON_INDENT(2)) != n_json)
        return RC_FAIL(err, RC_E_MEMORY, RC_NOWHERE, "no memory for the state of a checkpoint");
    (*out)[n_json] = '\n';
    *n = n_json + 1;
    return RC_OK;
}

rc_code rc_state_write(const char *path, const rc_state *state,
                       const rc_file_seal seals[RC_CHECKPOINT_FILES], rc_arena *tmp,
                       rc_error *err)
{
    rc_out_file file;
    char *text, crc32[RC_CRC32_DIGITS + 1];
    size_t n;
    json_t *root = describe(state, seals);
    rc_code code = print(root, tmp, &text, &n, err);
    json_decref(root);
    RC_TRY(code);
    char *digits = find_seal(text, n);
    if (!digits)
        return RC_FAIL(err, RC_E_BUG, RC_NOWHERE, "the state of a checkpoint has no seal");
    rc_crc32_print(rc_crc32(0, text, n), crc32);
    memcpy(digits, crc32, RC_CRC32_DIGITS);
    RC_TRY(rc_out_file_open(path, &file, err));
    return rc_out_file_end(&file, rc_out_file_write(&file, text, n, err), err);
}

/* --- read --- */

static rc_code check_seal(const char *path, const char *bytes, size_t n, rc_arena *tmp,
                          bool *is_sealed, rc_error *err)
{
    uint32_t crc32;
    char *copy, is[RC_CRC32_DIGITS + 1];
    RC_TRY(RC_NEW(tmp, &copy, n + 1, err));
    memcpy(copy, bytes, n);
    char *digits = find_seal(copy, n);
    *is_sealed = digits != NULL;
    if (!digits)
        return RC_OK;
    bool is_number = rc_crc32_parse(digits, RC_CRC32_DIGITS, &crc32);
    memcpy(digits, no_crc32, RC_CRC32_DIGITS);
    uint32_t now = rc_crc32(0, copy, n);
    if (is_number && now == crc32)
        return RC_OK;
    return RC_FAIL(
        err, RC_E_INPUT, (rc_where){.file = path},
        "was changed or damaged after it was written: the checksum at its end does not "
        "fit, that of its content is %s",
        rc_crc32_print(now, is));
}

static rc_code read_count(const rc_doc *map, const char *key, int64_t *out, rc_error *err)
{
    const rc_doc *node = rc_doc_find(map, key);
    if (!node || node->kind != RC_DOC_INT || node->i < 0)
        return RC_FAIL(err, RC_E_INPUT, node ? node->where : map->where,
                       "has no %s; a count of 0 or more is needed", key);
    *out = node->i;
    return RC_OK;
}

static rc_code find_map(const rc_doc *root, const char *key, const rc_doc **out, rc_error *err)
{
    *out = rc_doc_find(root, key);
    if (*out && (*out)->kind == RC_DOC_MAP)
        return RC_OK;
    return RC_FAIL(err, RC_E_INPUT, *out ? (*out)->where : root->where,
                   "has no %s; a map is needed", key);
}

static rc_code read_files(const rc_doc *root, rc_file_seal seals[RC_CHECKPOINT_FILES],
                          rc_error *err)
{
    const rc_doc *files, *file;
    RC_TRY(find_map(root, "files", &files, err));
    for (int i = 0; i < RC_CHECKPOINT_FILES; i++) {
        RC_TRY(find_map(files, rc_checkpoint_file_names[i], &file, err));
        RC_TRY(read_count(file, "bytes", &seals[i].n_bytes, err));
        const rc_doc *crc32 = rc_doc_find(file, "crc32");
        if (!crc32 || crc32->kind != RC_DOC_STRING ||
            !rc_crc32_parse(crc32->text, crc32->n_bytes, &seals[i].crc32))
            return RC_FAIL(err, RC_E_INPUT, file->where,
                           "has no crc32; 8 hex digits are needed");
    }
    return RC_OK;
}

static bool is_text(const rc_doc *node, const char *text)
{
    return node->kind == RC_DOC_STRING && node->n_bytes == strlen(text) &&
           memcmp(node->text, text, node->n_bytes) == 0;
}

static rc_code compare(const rc_doc *root, const rc_state *state, rc_error *err)
{
    const rc_doc *saved;
    char was[200];
    RC_TRY(find_map(root, "identity", &saved, err));
    for (size_t i = 0; i < state->n_identity; i++) {
        const rc_same *same = &state->identity[i];
        const rc_doc *node = rc_doc_find(saved, same->key);
        const char *absent = same->if_absent ? same->if_absent : "unknown";
        if (node ? is_text(node, same->value) : strcmp(absent, same->value) == 0)
            continue;
        bool is_string = node && node->kind == RC_DOC_STRING;
        rc_text_printable(is_string ? node->text
                          : node    ? "unreadable"
                                    : absent,
                          is_string ? node->n_bytes
                          : node    ? 10
                                    : strlen(absent),
                          was, sizeof was);
        return RC_FAIL(
            err, RC_E_INPUT, node ? node->where : root->where,
            "the checkpoint was made with %s %s, this run has %s; resuming must "
            "continue the same run (checkpoint.pretrained_checkpoint starts a new one "
            "from its weights)",
            same->key, was, same->value);
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
        if (!node || node->kind != RC_DOC_STRING || is_text(node, pair->value))
            continue;
        rc_text_printable(node->text, node->n_bytes, was, sizeof was);
        RC_TRY(rc_text_printf(&text, err, "%s%s was %s and is %s", text.at ? ", " : "",
                              pair->key, was, pair->value));
    }
    state->differs = text.at;
    return RC_OK;
}

static rc_code check_iteration(const rc_doc *root, int64_t iteration, const rc_state *state,
                               rc_error *err)
{
    int64_t wanted;
    if (state->iteration != iteration)
        return RC_FAIL(err, RC_E_INPUT, root->where,
                       "has iteration %" PRId64 " and lies in the folder of iteration %" PRId64,
                       state->iteration, iteration);
    if (state->iteration > state->valid.n_steps)
        return RC_FAIL(err, RC_E_INPUT, root->where,
                       "the checkpoint has %" PRId64 " steps, train.train_iters is %" PRId64
                       "; it counts the whole run, so it must be at least as many",
                       state->iteration, state->valid.n_steps);
    if (!rc_mul(state->iteration, state->n_global, &wanted) || wanted != state->n_train_samples)
        return RC_FAIL(err, RC_E_INPUT, root->where,
                       "has %" PRId64 " consumed_train_samples at iteration %" PRId64
                       "; with %" PRId64 " samples a step it is %" PRId64,
                       state->n_train_samples, state->iteration, state->n_global, wanted);
    return RC_OK;
}

/* Whole steps' worth of validation samples, and no more than evaluations after every step could have
 * taken: all that is known where the settings of earlier evaluations are not. */
static bool is_possible_valid(const rc_state *state, int64_t iteration, int64_t n_samples)
{
    return n_samples >= 0 && n_samples % state->n_global == 0 &&
           n_samples / state->n_global <= iteration * INT32_MAX && /* iteration < 2^31 */
           n_samples <= INT64_MAX / 2;
}

static rc_code check_valid_samples(const rc_doc *root, const rc_state *state, rc_error *err)
{
    if (is_possible_valid(state, state->iteration, state->n_valid_samples))
        return RC_OK;
    return RC_FAIL(err, RC_E_INPUT, root->where,
                   "has %" PRId64
                   " consumed_valid_samples, which evaluations of whole batches (of "
                   "%" PRId64 " samples) cannot add up to in %" PRId64 " steps",
                   state->n_valid_samples, state->n_global, state->iteration);
}

/* The plan that the checkpoint was counted with; *plan is untouched before it is right. */
static rc_code read_plan(const rc_doc *root, const rc_state *state, rc_valid_plan *plan,
                         rc_error *err)
{
    const rc_doc *map;
    rc_valid_plan was;
    int64_t most;
    RC_TRY(find_map(root, "evaluation", &map, err));
    RC_TRY(read_count(map, "eval_interval", &was.interval, err));
    RC_TRY(read_count(map, "samples", &was.n_batch_samples, err));
    RC_TRY(read_count(map, "train_iters", &was.n_steps, err));
    RC_TRY(read_count(map, "from_iteration", &was.from_iteration, err));
    RC_TRY(read_count(map, "from_samples", &was.from_samples, err));
    bool is_sound = was.interval <= INT32_MAX && was.n_steps <= INT32_MAX &&
                    was.from_iteration <= state->iteration && state->iteration <= was.n_steps &&
                    is_possible_valid(state, was.from_iteration, was.from_samples) &&
                    rc_mul(was.n_batch_samples, state->iteration + 1, &most) &&
                    rc_add(was.from_samples, most, &most);
    if (!is_sound)
        return RC_FAIL(err, RC_E_INPUT, map->where,
                       "has an evaluation that does not fit its iteration");
    if (rc_valid_plan_count(&was, state->iteration) != state->n_valid_samples)
        return RC_FAIL(err, RC_E_INPUT, map->where,
                       "has %" PRId64
                       " consumed_valid_samples; by the evaluation it names it is "
                       "%" PRId64,
                       state->n_valid_samples, rc_valid_plan_count(&was, state->iteration));
    *plan = was;
    return RC_OK;
}

/* From here on this run's settings count. */
static void continue_plan(const rc_valid_plan *was, rc_state *state)
{
    rc_valid_plan *plan = &state->valid;
    bool is_same = was && was->interval == plan->interval &&
                   was->n_batch_samples == plan->n_batch_samples &&
                   was->n_steps == plan->n_steps;
    plan->from_iteration = is_same ? was->from_iteration : state->iteration;
    plan->from_samples = is_same ? was->from_samples : state->n_valid_samples;
}

static rc_code read_counts(const rc_doc *root, int64_t iteration, rc_state *state,
                           rc_error *err)
{
    rc_valid_plan was;
    RC_TRY(read_count(root, "iteration", &state->iteration, err));
    RC_TRY(read_count(root, "consumed_train_samples", &state->n_train_samples, err));
    RC_TRY(read_count(root, "consumed_valid_samples", &state->n_valid_samples, err));
    RC_TRY(check_iteration(root, iteration, state, err));
    RC_TRY(check_valid_samples(root, state, err));
    if (!state->is_unsealed)
        RC_TRY(read_plan(root, state, &was, err));
    continue_plan(state->is_unsealed ? NULL : &was, state);
    return RC_OK;
}

static rc_code check_version(const rc_doc *root, bool is_sealed, bool *is_unsealed,
                             rc_error *err)
{
    int64_t version;
    RC_TRY(read_count(root, "version", &version, err));
    if (version < UNSEALED_VERSION || version > STATE_VERSION)
        return RC_FAIL(err, RC_E_UNSUPPORTED, root->where,
                       "has version %" PRId64 "; versions %d to %d are read here", version,
                       UNSEALED_VERSION, STATE_VERSION);
    *is_unsealed = version == UNSEALED_VERSION;
    if (*is_unsealed == is_sealed)
        return RC_FAIL(err, RC_E_INPUT, root->where,
                       "has version %" PRId64 " and %s checksum at its end; it was changed or "
                       "damaged after it was written",
                       version, is_sealed ? "a" : "no");
    return RC_OK;
}

rc_code rc_state_open(const char *path, rc_arena *mem, rc_doc **root, bool *is_unsealed,
                      rc_error *err)
{
    const char *bytes;
    size_t n;
    bool is_sealed;
    RC_TRY(rc_file_read(path, RC_READ_MAX_BYTES, mem, &bytes, &n, err));
    RC_TRY(check_seal(path, bytes, n, mem, &is_sealed, err));
    RC_TRY(rc_json_read(path, bytes, n, mem, root, err));
    return check_version(*root, is_sealed, is_unsealed, err);
}

rc_code rc_state_read(const char *path, int64_t iteration, rc_state *state,
                      rc_file_seal seals[RC_CHECKPOINT_FILES], rc_arena *mem, rc_error *err)
{
    rc_doc *root;
    rc_state read = *state;
    RC_TRY(rc_state_open(path, mem, &root, &read.is_unsealed, err));
    RC_TRY(compare(root, &read, err));
    RC_TRY(tell_order(root, &read, mem, err));
    RC_TRY(read_counts(root, iteration, &read, err));
    if (!read.is_unsealed)
        RC_TRY(read_files(root, seals, err));
    *state = read;
    return RC_OK;
}
