/* train/dataset.c — Megatron's GPT dataset: documents in a row, cut into samples, shuffled.
 *
 * takes  one split of a corpus and how many samples are wanted
 * gives  the order of samples: document_index, shuffle_index
 * next   loop.c asks for sample 0, 1, 2, ...
 *
 *   documents    [ d2 | d0 | d1 | d1 | d2 | d0 ]     every epoch's documents, shuffled
 *   samples      |--s--|--s--|--s--|--s--|--s--|     each reads s+1 tokens: the last one is a
 *                                                    target here and the next sample's first token
 *   order        4 0 3 1 2                           shuffle_index
 *
 * Sample i starts at token i*s of the row. Megatron lists where that is for every sample; here the
 * document is looked up when the sample is read, since a run has more samples than documents.
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
    return RC_OK;
}

static void fill_epochs(int64_t *at, int64_t n_epochs, int64_t n_documents, rc_twister *twister)
{
    for (int64_t i = 0; i < n_epochs * n_documents; i++)
        at[i] = i % n_documents;
    rc_twister_shuffle(twister, at, n_epochs * n_documents);
}

static rc_code make_document_index(rc_dataset *dataset, rc_twister *twister, rc_arena *mem,
                                   rc_error *err)
{
    int64_t per_epoch = dataset->corpus->n_documents[dataset->split];
    if (!rc_mul(dataset->n_epochs, per_epoch, &dataset->n_documents))
        return RC_FAIL(err, RC_E_RANGE, RC_NOWHERE,
                       "the run's number of documents passes 2^63");
    RC_TRY(RC_NEW(mem, &dataset->document_index, dataset->n_documents, err));
    int64_t n_joint = dataset->n_epochs - dataset->has_separate_last_epoch;
    fill_epochs(dataset->document_index, n_joint, per_epoch, twister);
    if (dataset->has_separate_last_epoch)
        fill_epochs(dataset->document_index + n_joint * per_epoch, 1, per_epoch, twister);
    return RC_OK;
}

static rc_code make_document_start(rc_dataset *dataset, rc_arena *mem, rc_error *err)
{
    int64_t at = 0;
    RC_TRY(RC_NEW(mem, &dataset->document_start, dataset->n_documents + 1, err));
    for (int64_t i = 0; i < dataset->n_documents; i++) {
        dataset->document_start[i] = at;
        at += document_length(dataset, dataset->document_index[i]);
    }
    dataset->document_start[dataset->n_documents] = at;
    return RC_OK;
}

static rc_code make_shuffle_index(rc_dataset *dataset, rc_twister *twister, rc_arena *mem,
                                  rc_error *err)
{
    int64_t n = dataset->n_samples, n_first = n;
    if (dataset->has_separate_last_epoch)
        n_first = ((dataset->n_epochs - 1) * dataset->corpus->n_tokens[dataset->split] - 1) /
                  dataset->s;
    RC_TRY(RC_NEW(mem, &dataset->shuffle_index, n, err));
    for (int64_t i = 0; i < n; i++)
        dataset->shuffle_index[i] = i;
    rc_twister_shuffle(twister, dataset->shuffle_index, n_first);
    rc_twister_shuffle(twister, dataset->shuffle_index + n_first, n - n_first);
    return RC_OK;
}

rc_code rc_dataset_make(const rc_corpus *corpus, const rc_dataset_want *want, rc_arena *mem,
                        rc_dataset **out, rc_error *err)
{
    rc_twister twister;
    if (want->seed < 0 || want->seed > UINT32_MAX)
        return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE,
                       "the seed of the data's order is %" PRId64 "; it must be 0 to %" PRIu32,
                       want->seed, UINT32_MAX);
    RC_TRY(RC_NEW(mem, out, 1, err));
    rc_dataset *dataset = *out;
    *dataset = (rc_dataset){.corpus = corpus,
                            .split = want->split,
                            .s = want->s,
                            .is_eod_masked = want->is_eod_masked};
    rc_twister_make((uint32_t)want->seed, &twister);
    RC_TRY(plan_epochs(dataset, want, err));
    RC_TRY(make_document_index(dataset, &twister, mem, err));
    RC_TRY(make_document_start(dataset, mem, err));
    return make_shuffle_index(dataset, &twister, mem, err);
}

/* Copies tokens [first, first+n) of document `d` of the split. */
static rc_code read_document(const rc_dataset *dataset, int64_t d, int64_t first, int64_t n,
                             int32_t *out, rc_error *err)
{
    const rc_range *range = find_range(dataset, &d);
    const rc_tokens *file = &dataset->corpus->files[range->file];
    return rc_tokens_read(file, range->first_sequence + d, range->first_token + first, n,
                          dataset->corpus->vocab, out, err);
}

/* The document of the row that holds its token `at`: the last that starts at or before it. */
static int64_t find_place(const rc_dataset *dataset, int64_t at)
{
    int64_t first = 0, end = dataset->n_documents;
    while (end - first > 1) {
        int64_t middle = first + (end - first) / 2;
        if (dataset->document_start[middle] <= at)
            first = middle;
        else
            end = middle;
    }
    return first;
}

rc_code rc_dataset_sample(const rc_dataset *dataset, int64_t i, int32_t *tokens,
                          int32_t *targets, rc_error *err)
{
    int64_t s = dataset->s, start = dataset->shuffle_index[i] * s;
    int64_t place = find_place(dataset, start);
    int64_t offset = start - dataset->document_start[place];
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
