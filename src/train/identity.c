/* train/identity.c — what must stay the same for a resumed run to be the same run.
 *
 * Model, optimizer, schedule, seeds, the data and its order are in it; where memory or time go is
 * not: recompute settings, attention backend, threads, budget and paths may change. Three of these
 * change the order of sums and so the last bits: they are kept apart, to be told.
 */
#include "train/training.h"

#include "base/checksum.h"

#include <inttypes.h>
#include <string.h>

/* Pairs that are no field of the config, besides one for every data file. */
enum { MOST_OTHERS = 64 };

typedef struct pairs {
    rc_training *training;
    const rc_config *plain; /* nothing but defaults */
    rc_same *at;
    size_t n;
} pairs;

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* Compared as written. What Megatron derives when null is compared as derived, below. */
static bool is_compared(rc_field field)
{
    static const rc_field derived[] = {
        RC_FIELD_num_query_groups,  RC_FIELD_kv_channels,
        RC_FIELD_ffn_hidden_size,   RC_FIELD_vocab_size,
        RC_FIELD_attention_backend, RC_FIELD_distribute_saved_activations,
    };
    const char *key = rc_field_find(field)->key;
    for (size_t i = 0; i < sizeof derived / sizeof *derived; i++)
        if (field == derived[i])
            return false;
    if (starts_with(key, "model."))
        return !strstr(key, "recompute") && !strstr(key, "parallel");
    return starts_with(key, "optimizer.") || field == RC_FIELD_seed ||
           field == RC_FIELD_rope_dynamic_factor || field == RC_FIELD_yarn_attention_factor ||
           field == RC_FIELD_split || field == RC_FIELD_eod_mask_loss ||
           field == RC_FIELD_eod_id;
}

/* A checkpoint of before a field was known was made as its default says. */
static rc_code add_field(pairs *to, rc_field field, rc_error *err)
{
    rc_same *pair = &to->at[to->n++];
    pair->key = rc_field_find(field)->key;
    RC_TRY(rc_config_show(to->plain, field, to->training->mem, &pair->if_absent, err));
    return rc_config_show(to->training->cfg, field, to->training->mem, &pair->value, err);
}

static rc_code add_count(pairs *to, const char *key, int64_t value, rc_error *err)
{
    rc_same *pair = &to->at[to->n++];
    pair->key = key;
    return rc_arena_printf(to->training->mem, &pair->value, err, "%" PRId64, value);
}

static rc_code add_real(pairs *to, const char *key, double value, rc_error *err)
{
    rc_same *pair = &to->at[to->n++];
    pair->key = key;
    return rc_arena_printf(to->training->mem, &pair->value, err, "%.17g", value);
}

static rc_code add_derived(pairs *to, rc_error *err)
{
    const rc_dims *dims = &to->training->passes.graph->dims;
    RC_TRY(add_count(to, "model.num_query_groups", dims->g, err));
    RC_TRY(add_count(to, "model.kv_channels", dims->d, err));
    RC_TRY(add_count(to, "model.ffn_hidden_size", dims->f, err));
    RC_TRY(add_count(to, "model.vocab_size (padded)", dims->V, err));
    RC_TRY(add_count(to, "model.vocab_size", dims->W, err));
    /* Rows that pad took part in the softmax before the padding was told from the vocabulary. */
    to->at[to->n - 1].if_absent = to->at[to->n - 2].value;
    return RC_OK;
}

static rc_code add_schedule(pairs *to, rc_error *err)
{
    const rc_lr *lr = &to->training->lr;
    RC_TRY(add_count(to, "train.global_batch_size", to->training->set.n_global, err));
    RC_TRY(add_field(to, RC_FIELD_lr_decay_style, err));
    RC_TRY(add_count(to, "scheduler.lr_decay_iters (in samples)", lr->n_decay_samples, err));
    RC_TRY(add_real(to, "the warm-up (in samples)", lr->n_warmup_samples, err));
    RC_TRY(add_field(to, RC_FIELD_lr_warmup_init, err));
    if (lr->style != RC_LR_WSD)
        return RC_OK;
    RC_TRY(add_field(to, RC_FIELD_lr_wsd_decay_style, err));
    return add_count(to, "scheduler.lr_wsd_decay_iters (in samples)", lr->n_wsd_samples, err);
}

/* --- data --- */

/* What of a file of any size is looked at: all of it up to 1 MiB, else 16 blocks of 64 KiB, the first
 * at its start, the last at its end and the others evenly between. */
enum { BLOCK_BYTES = 64 << 10, N_BLOCKS = 16 };

/* A file that is looked at. The paths of an index and its data were put together for opening only,
 * so an error names the path that the user wrote. */
typedef struct looking {
    const rc_tokens *tokens;
    const rc_in_file *file;
    unsigned char *block; /* [BLOCK_BYTES] */
} looking;

/* Continues *crc32 with bytes [at, at + n). */
static rc_code add_bytes(const looking *of, int64_t at, int64_t n, uint32_t *crc32,
                         rc_error *err)
{
    for (int64_t done = 0; done < n; done += BLOCK_BYTES) {
        int64_t n_here = n - done < BLOCK_BYTES ? n - done : BLOCK_BYTES;
        rc_error bad = {0};
        rc_code code = rc_in_file_read(of->file, at + done, n_here, of->block, &bad);
        if (code != RC_OK)
            return RC_FAIL(err, code, (rc_where){.file = of->tokens->path}, "%s", bad.msg);
        *crc32 = rc_crc32(*crc32, of->block, (size_t)n_here);
    }
    return RC_OK;
}

static rc_code sample(const looking *of, uint32_t *crc32, rc_error *err)
{
    int64_t n = of->file->n_bytes, stride = (n - BLOCK_BYTES) / (N_BLOCKS - 1);
    if (n <= BLOCK_BYTES * N_BLOCKS)
        return add_bytes(of, 0, n, crc32, err);
    for (int64_t i = 0; i < N_BLOCKS; i++) {
        int64_t at = i + 1 < N_BLOCKS ? i * stride : n - BLOCK_BYTES;
        RC_TRY(add_bytes(of, at, BLOCK_BYTES, crc32, err));
    }
    return RC_OK;
}

/* By content, not by path, so files may move. An index was read in full when it was opened, so all
 * of it can be looked at again. */
static rc_code add_file(pairs *to, size_t i, unsigned char *block, rc_error *err)
{
    const rc_tokens *file = &to->training->corpus->files[i];
    rc_arena *mem = to->training->mem;
    rc_same *pair = &to->at[to->n++];
    uint32_t data = 0, index = 0;
    char digits[2][RC_CRC32_DIGITS + 1];
    looking of = {.tokens = file, .file = &file->data, .block = block};
    RC_TRY(sample(&of, &data, err));
    RC_TRY(rc_arena_printf(mem, &pair->key, err, "data file %zu", i + 1));
    if (file->is_text) {
        RC_TRY(rc_arena_printf(mem, &pair->value, err, "[%" PRId64 " bytes, checksum %s]",
                               file->data.n_bytes, rc_crc32_print(data, digits[0])));
    } else {
        of.file = &file->index;
        RC_TRY(add_bytes(&of, 0, file->index.n_bytes, &index, err));
        RC_TRY(rc_arena_printf(mem, &pair->value, err,
                               "[%" PRId64 " bytes, checksum %s, index %s]", file->data.n_bytes,
                               rc_crc32_print(data, digits[0]),
                               rc_crc32_print(index, digits[1])));
    }
    pair->if_absent = pair->value; /* checkpoints of version 1 cannot tell */
    return RC_OK;
}

/* The same files in the same order; and the same passes over them, because documents of all passes
 * are shuffled together. */
static rc_code add_data(pairs *to, rc_error *err)
{
    const rc_training *training = to->training;
    const rc_dataset *train = training->train;
    size_t n_files = training->corpus->n_files;
    unsigned char *block;
    RC_TRY(add_count(to, "dataset.random_seed", training->set.data_seed, err));
    RC_TRY(add_count(to, "documents in the train split",
                     training->corpus->n_documents[RC_SPLIT_TRAIN], err));
    RC_TRY(add_count(to, "tokens in the train split",
                     training->corpus->n_tokens[RC_SPLIT_TRAIN], err));
    RC_TRY(
        add_count(to, "passes over the train split (from train_iters)", train->n_epochs, err));
    RC_TRY(add_count(to, "separately shuffled last passes (from train_iters)",
                     train->has_separate_last_epoch, err));
    /* before there were keys all data was shuffled */
    to->at[to->n++] = (rc_same){.key = "samples in an order",
                                .value = train->is_keyed ? "by key" : "by shuffle",
                                .if_absent = "by shuffle"};
    RC_TRY(add_count(to, "data files", (int64_t)n_files, err));
    to->at[to->n - 1].if_absent = to->at[to->n - 1].value;
    RC_TRY(RC_NEW(training->mem, &block, BLOCK_BYTES, err));
    for (size_t i = 0; i < n_files; i++)
        RC_TRY(add_file(to, i, block, err));
    return RC_OK;
}

/* --- order of sums --- */

static rc_code add_order(rc_training *training, rc_error *err)
{
    rc_pair *at;
    const rc_graph *graph = training->passes.graph;
    RC_TRY(RC_NEW(training->mem, &at, 3, err));
    RC_TRY(rc_arena_printf(training->mem, &at[0].value, err, "%d", training->set.n_threads));
    RC_TRY(rc_arena_printf(training->mem, &at[1].value, err, "%" PRId64, training->set.b));
    at[0].key = "engine.threads";
    at[1].key = "train.micro_batch_size";
    at[2] = (rc_pair){"model.attention_backend", "unfused"};
    for (int i = 0; i < graph->n_ops; i++)
        if (rc_graph_op(graph, i).kind == RC_OP_attention)
            at[2].value = "fused";
    training->state.order = at;
    training->state.n_order = 3;
    return RC_OK;
}

rc_code rc_training_identity(rc_training *training, rc_error *err)
{
    pairs to = {.training = training};
    rc_config *plain;
    RC_TRY(rc_config_make(NULL, 0, training->mem, &plain, err));
    to.plain = plain;
    RC_TRY(RC_NEW(training->mem, &to.at,
                  RC_FIELD_COUNT + MOST_OTHERS + training->corpus->n_files, err));
    for (int i = 0; i < RC_FIELD_COUNT; i++)
        if (is_compared((rc_field)i))
            RC_TRY(add_field(&to, (rc_field)i, err));
    RC_TRY(add_derived(&to, err));
    RC_TRY(add_schedule(&to, err));
    RC_TRY(add_data(&to, err));
    training->state.identity = to.at;
    training->state.n_identity = to.n;
    return add_order(training, err);
}
