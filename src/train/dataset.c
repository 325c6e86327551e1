/* train/dataset.c — Megatron's GPT dataset: documents in a row, cut into samples, shuffled.
 *
 * takes  one split of a corpus and how many samples are wanted
 * gives  the order of samples: document_index, order
 * next   loop.c asks for sample 0, 1, 2, ...
 *
 *   documents    [ d2 | d0 | d1 | d1 | d2 | d0 ]     every epoch's documents, shuffled
 *   samples      |--s--|--s--|--s--|--s--|--s--|     each reads s+1 tokens: the last one is a
 *                                                    target here and the next sample's first token
 *   order        4 0 3 1 2
 *
 * Sample i starts at token i*s of the row. Megatron lists where that is for every sample; here the
 * document is looked up when the sample is read: a start is kept for every 16th document, and of the
 * order no more than the samples that a run reads.
 *
 * Where the last epoch is used for less than four fifths it is shuffled by itself, both its
 * documents and its samples: else few of its documents would come early and most never.
 */
#include "train/dataset.h"

#include "base/num.h"
#include "train/random.h"

#include <inttypes.h>
#include <math.h>

static const char *const split_names[RC_SPLIT_COUNT] = {"train", "validation", "test"};

/* The range that document `d` of the split lies in; *d becomes its place in the range. */
static const rc_range *find_range(const rc_dataset *dataset, int64_t *d)
{
    const rc_range *range = dataset->corpus->ranges[dataset->split];
    while (*d >= range->n_sequences) {
        *d -= range->n_sequences;
        range++;
    }
    return range;
}

static int64_t document_length(const rc_dataset *dataset, int64_t d)
{
    const rc_range *range = find_range(dataset, &d);
    const rc_tokens *file = &dataset->corpus->files[range->file];
    return file->is_text ? range->n_tokens : rc_tokens_length(file, range->first_sequence + d);
}

/* How many epochs the wanted samples take, and whether the last is shuffled alone. */
static rc_code plan_epochs(rc_dataset *dataset, const rc_dataset_want *want, rc_error *err)
{
    int64_t per_epoch = dataset->corpus->n_tokens[want->split], wanted;
    if (per_epoch < 2)
        return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE,
                       "the %s split has %" PRId64 " tokens; dataset.split gives it too little "
                       "of this data",
                       split_names[want->split], per_epoch);
    if (!rc_mul(want->n_samples, want->s, &wanted) || !rc_add(wanted, per_epoch, &wanted))
        return RC_FAIL(err, RC_E_RANGE, RC_NOWHERE, "the run's number of tokens passes 2^63");
    wanted = want->n_samples * want->s + 1;
    dataset->n_epochs = (wanted + per_epoch - 1) / per_epoch;
    if (dataset->n_epochs < 1)
        dataset->n_epochs = 1;
    dataset->n_samples = (dataset->n_epochs * per_epoch - 1) / want->s;
    if (dataset->n_epochs > 1) {
        int64_t before_last = ((dataset->n_epochs - 1) * per_epoch - 1) / want->s;
        int64_t per_epoch_samples = (per_epoch - 1) / want->s;
        dataset->has_separate_last_epoch =
            want->n_samples - before_last < (int64_t)(0.80 * (double)per_epoch_samples);
    }
    dataset->n_first = dataset->n_samples;
    if (dataset->has_separate_last_epoch)
        dataset->n_first = ((dataset->n_epochs - 1) * per_epoch - 1) / want->s;
    dataset->is_keyed = dataset->corpus->is_text && dataset->n_samples > RC_KEYED_FROM;
    return RC_OK;
}

static rc_code plan_documents(rc_dataset *dataset, rc_error *err)
{
    int64_t per_epoch = dataset->corpus->n_documents[dataset->split], most = INT64_MAX / 16;
    if (per_epoch > INT32_MAX)
        return RC_FAIL(err, RC_E_UNSUPPORTED, RC_NOWHERE,
                       "the %s split has %" PRId64
                       " documents; at most %d are read here, as in "
                       "Megatron",
                       split_names[dataset->split], per_epoch, INT32_MAX);
    if (!rc_mul(dataset->n_epochs, per_epoch, &dataset->n_documents) ||
        dataset->n_documents > most)
        return RC_FAIL(err, RC_E_RANGE, RC_NOWHERE,
                       "the run's number of documents passes 2^59");
    return RC_OK;
}

rc_code rc_dataset_plan(const rc_corpus *corpus, const rc_dataset_want *want, rc_arena *mem,
                        rc_dataset **out, rc_error *err)
{
    if (want->seed < 0 || want->seed > UINT32_MAX)
        return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE,
                       "the seed of the data's order is %" PRId64 "; it must be 0 to %" PRIu32,
                       want->seed, UINT32_MAX);
    RC_TRY(RC_NEW(mem, out, 1, err));
    rc_dataset *dataset = *out;
    *dataset = (rc_dataset){.corpus = corpus,
                            .split = want->split,
                            .s = want->s,
                            .seed = (uint32_t)want->seed,
                            .is_eod_masked = want->is_eod_masked};
    RC_TRY(plan_epochs(dataset, want, err));
    return plan_documents(dataset, err);
}

/* --- the order --- */

static void fill_epochs(int32_t *at, int64_t n_epochs, int64_t n_documents, rc_twister *twister)
{
    for (int64_t i = 0; i < n_epochs * n_documents; i++)
        at[i] = (int32_t)(i % n_documents);
    rc_twister_shuffle_i32(twister, at, n_epochs * n_documents);
}

static rc_code order_documents(rc_dataset *dataset, rc_twister *twister, rc_arena *mem,
                               rc_error *err)
{
    int64_t per_epoch = dataset->corpus->n_documents[dataset->split], at = 0;
    int64_t n_joint = dataset->n_epochs - dataset->has_separate_last_epoch;
    RC_TRY(RC_NEW(mem, &dataset->document_index, dataset->n_documents, err));
    fill_epochs(dataset->document_index, n_joint, per_epoch, twister);
    if (dataset->has_separate_last_epoch)
        fill_epochs(dataset->document_index + n_joint * per_epoch, 1, per_epoch, twister);
    RC_TRY(
        RC_NEW(mem, &dataset->document_start, dataset->n_documents / RC_START_EVERY + 1, err));
    for (int64_t i = 0; i < dataset->n_documents; i++) {
        if (i % RC_START_EVERY == 0)
            dataset->document_start[i / RC_START_EVERY] = at;
        at += document_length(dataset, dataset->document_index[i]);
    }
    return RC_OK;
}

/* How many samples of each of the two parts are needed: all of the first before one of the second. */
static void split_needed(const rc_dataset *dataset, int64_t n_needed, int64_t out[2])
{
    n_needed = n_needed < dataset->n_samples ? n_needed : dataset->n_samples;
    out[0] = n_needed < dataset->n_first ? n_needed : dataset->n_first;
    out[1] = n_needed - out[0];
}

static rc_code order_samples(rc_dataset *dataset, int64_t n_needed, rc_twister *twister,
                             rc_arena *mem, rc_error *err)
{
    int64_t n[2] = {dataset->n_first, dataset->n_samples - dataset->n_first}, n_kept[2];
    split_needed(dataset, n_needed, n_kept);
    for (uint32_t part = 0; part < 2; part++) {
        const uint32_t key[2] = {dataset->seed, 2 * (uint32_t)dataset->split + part};
        if (dataset->is_keyed)
            dataset->order[part] = rc_order_of_key(n[part], key);
        else if (part == 0 || n_kept[part] > 0)
            RC_TRY(
                rc_order_make(twister, n[part], n_kept[part], mem, &dataset->order[part], err));
    }
    return RC_OK;
}

rc_code rc_dataset_order(rc_dataset *dataset, int64_t n_needed, rc_arena *mem, rc_error *err)
{
    rc_twister twister;
    rc_twister_make(dataset->seed, &twister);
    RC_TRY(order_documents(dataset, &twister, mem, err));
    return order_samples(dataset, n_needed, &twister, mem, err);
}

int64_t rc_dataset_order_bytes(const rc_dataset *dataset, int64_t n_needed)
{
    int64_t n_kept[2], bytes = dataset->n_documents * (int64_t)sizeof(int32_t) +
                               dataset->n_documents / RC_START_EVERY * (int64_t)sizeof(int64_t);
    split_needed(dataset, n_needed, n_kept);
    if (dataset->is_keyed)
        return bytes;
    bytes += rc_order_count_bytes(dataset->n_first, n_kept[0]);
    if (n_kept[1] > 0)
        bytes += rc_order_count_bytes(dataset->n_samples - dataset->n_first, n_kept[1]);
    return bytes;
}

static int64_t sample_at(const rc_dataset *dataset, int64_t i)
{
    if (i < dataset->n_first)
        return rc_order_at(&dataset->order[0], i);
    return dataset->n_first + rc_order_at(&dataset->order[1], i - dataset->n_first);
}

/* --- samples --- */

/* Copies tokens [first, first+n) of document `d` of the split. */
static rc_code read_document(const rc_dataset *dataset, int64_t d, int64_t first, int64_t n,
                             int32_t *out, rc_error *err)
{
    const rc_range *range = find_range(dataset, &d);
    const rc_tokens *file = &dataset->corpus->files[range->file];
    return rc_tokens_read(file, range->first_sequence + d, range->first_token + first, n,
                          dataset->corpus->vocab, out, err);
}

/* The document of the row that holds its token *at: the last that starts at or before it. *at becomes
 * the token's place in it. */
static int64_t find_place(const rc_dataset *dataset, int64_t *at)
{
    int64_t first = 0, end = (dataset->n_documents + RC_START_EVERY - 1) / RC_START_EVERY;
    while (end - first > 1) {
        int64_t middle = first + (end - first) / 2;
        if (dataset->document_start[middle] <= *at)
            first = middle;
        else
            end = middle;
    }
    *at -= dataset->document_start[first];
    int64_t place = first * RC_START_EVERY;
    for (;; place++) {
        int64_t length = document_length(dataset, dataset->document_index[place]);
        if (*at < length)
            return place;
        *at -= length;
    }
}

rc_code rc_dataset_sample(const rc_dataset *dataset, int64_t i, int32_t *tokens,
                          int32_t *targets, rc_error *err)
{
    int64_t s = dataset->s, offset = sample_at(dataset, i) * s;
    int64_t place = find_place(dataset, &offset);
    int32_t last = 0; /* token s, the target of position s-1 alone */
    for (int64_t n_read = 0; n_read < s + 1; place++, offset = 0) {
        int64_t d = dataset->document_index[place];
        int64_t n = document_length(dataset, d) - offset;
        if (n > s + 1 - n_read)
            n = s + 1 - n_read;
        int64_t n_tokens = n_read + n > s ? s - n_read : n;
        RC_TRY(read_document(dataset, d, offset, n_tokens, tokens + n_read, err));
        if (n_tokens < n)
            RC_TRY(read_document(dataset, d, offset + n_tokens, 1, &last, err));
        n_read += n;
    }
    for (int64_t at = 0; at < s; at++) {
        targets[at] = at + 1 < s ? tokens[at + 1] : last;
        if (dataset->is_eod_masked && tokens[at] == dataset->corpus->eod)
            targets[at] = -1;
    }
    return RC_OK;
}
