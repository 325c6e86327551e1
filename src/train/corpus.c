/* train/corpus.c — the user's files, cut into train, validation and test.
 *
 * takes  dataset.data_path and dataset.split
 * gives  for every split the sequences (or bytes) that belong to it
 * next   dataset.c puts them in order
 */
#include "train/dataset.h"

#include "base/num.h"

#include <recompute/train.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>

static rc_where where_of(const rc_config *cfg, rc_field field)
{
    return cfg->origin[field].where;
}

/* One number of "969,30,1"; anything between digits and dots separates, as Megatron's regular
 * expression [.0-9]+ finds them. False at the end. */
static bool next_share(const char **at, char word[64])
{
    size_t n = 0;
    *at += strcspn(*at, ".0123456789");
    for (; **at && strchr(".0123456789", **at); (*at)++)
        if (n < 63)
            word[n++] = **at;
    word[n] = '\0';
    return n > 0;
}

/* Cumulated, normalised: [0, 0.969, 0.999, 1.0]. Sums run left to right in double, as in
 * Megatron, so that the cuts fall on the same document. */
static rc_code parse_split(const rc_config *cfg, double bounds[RC_SPLIT_COUNT + 1],
                           rc_error *err)
{
    double share[RC_SPLIT_COUNT] = {0}, sum = 0;
    const char *at = cfg->split ? cfg->split : "";
    char word[64];
    int n = 0;
    for (; next_share(&at, word); n++) {
        if (n == RC_SPLIT_COUNT || !rc_parse_real(word, &share[n]))
            return RC_FAIL(err, RC_E_INPUT, where_of(cfg, RC_FIELD_split),
                           "dataset.split needs up to three numbers, such as \"969,30,1\"");
        sum += share[n];
    }
    if (!(sum > 0) || !isfinite(sum))
        return RC_FAIL(err, RC_E_INPUT, where_of(cfg, RC_FIELD_split),
                       "dataset.split gives no share to any split; \"969,30,1\" is usual");
    bounds[0] = 0;
    for (int i = 0; i < RC_SPLIT_COUNT; i++)
        bounds[i + 1] = bounds[i] + share[i] / sum;
    return RC_OK;
}

static int64_t cut_at(double bound, int64_t n)
{
    int64_t at = (int64_t)rint(bound * (double)n); /* halves to even, as Python rounds */
    return at < 0 ? 0 : at > n ? n : at;
}

static void cut_file(rc_corpus *corpus, size_t file, const double bounds[RC_SPLIT_COUNT + 1])
{
    const rc_tokens *tokens = &corpus->files[file];
    for (int split = 0; split < RC_SPLIT_COUNT; split++) {
        rc_range *range = &corpus->ranges[split][file];
        int64_t all = tokens->is_text ? tokens->n_tokens : tokens->n_sequences;
        int64_t first = cut_at(bounds[split], all), end = cut_at(bounds[split + 1], all);
        int64_t n = end > first ? end - first : 0;
        *range = (rc_range){.file = file};
        if (tokens->is_text) {
            range->n_sequences = n > 0;
            range->first_token = first;
            range->n_tokens = n;
            corpus->n_tokens[split] += n;
        } else {
            range->first_sequence = first;
            range->n_sequences = n;
            for (int64_t i = first; i < first + n; i++)
                corpus->n_tokens[split] += rc_tokens_length(tokens, i);
        }
        corpus->n_documents[split] += range->n_sequences;
    }
}

static rc_code check_paths(const rc_config *cfg, rc_error *err)
{
    rc_where where = where_of(cfg, RC_FIELD_data_path);
    double weight;
    if (cfg->data_path.n == 0)
        return RC_FAIL(err, RC_E_INPUT, where,
                       "dataset.data_path is missing; name a text file, or the prefix of a "
                       "Megatron indexed dataset");
    for (size_t i = 0; i < cfg->data_path.n; i++) {
        if (!*cfg->data_path.at[i])
            return RC_FAIL(
                err, RC_E_INPUT, where,
                "dataset.data_path has an empty path; name a text file, or the prefix "
                "of a Megatron indexed dataset");
        if (rc_parse_real(cfg->data_path.at[i], &weight) &&
            !rc_path_exists(cfg->data_path.at[i]))
            return RC_FAIL(err, RC_E_UNSUPPORTED, where,
                           "dataset.data_path has the weight %.20s; blending by weight is not "
                           "supported, list paths only: they are read one after another",
                           cfg->data_path.at[i]);
    }
    return RC_OK;
}

static rc_code open_files(const rc_config *cfg, rc_corpus *corpus, rc_arena *mem, rc_error *err)
{
    for (size_t i = 0; i < cfg->data_path.n; i++) {
        RC_TRY(rc_tokens_open(cfg->data_path.at[i], mem, &corpus->files[i], err));
        corpus->n_files = i + 1;
        if (corpus->files[i].is_text != corpus->files[0].is_text)
            return RC_FAIL(err, RC_E_INPUT, where_of(cfg, RC_FIELD_data_path),
                           "%s is %s and %s is not; text and indexed datasets do not mix",
                           corpus->files[0].path,
                           corpus->files[0].is_text ? "text" : "an indexed dataset",
                           corpus->files[i].path);
    }
    corpus->is_text = corpus->files[0].is_text;
    return RC_OK;
}

static rc_code check_vocabulary(const rc_config *cfg, const rc_corpus *corpus, rc_error *err)
{
    if (corpus->is_text && !cfg->origin[RC_FIELD_vocab_size].is_null &&
        cfg->vocab_size < RC_TEXT_VOCAB)
        return RC_FAIL(err, RC_E_INPUT, where_of(cfg, RC_FIELD_vocab_size),
                       "model.vocab_size is %" PRId64 "; text as bytes needs at least %d: 256 "
                       "bytes and the end of a document",
                       cfg->vocab_size, RC_TEXT_VOCAB);
    if (!corpus->is_text && cfg->origin[RC_FIELD_vocab_size].is_null)
        return RC_FAIL(err, RC_E_INPUT, where_of(cfg, RC_FIELD_vocab_size),
                       "model.vocab_size is null; an indexed dataset does not say its "
                       "tokenizer's, so it must be given");
    return RC_OK;
}

rc_code rc_corpus_open(const rc_config *cfg, int64_t vocab, rc_arena *mem, rc_corpus **out,
                       rc_error *err)
{
    double bounds[RC_SPLIT_COUNT + 1];
    *out = NULL;
    RC_TRY(check_paths(cfg, err));
    RC_TRY(parse_split(cfg, bounds, err));
    RC_TRY(RC_NEW(mem, out, 1, err));
    rc_corpus *corpus = *out;
    corpus->vocab = vocab;
    RC_TRY(RC_NEW(mem, &corpus->files, cfg->data_path.n, err));
    for (int i = 0; i < RC_SPLIT_COUNT; i++)
        RC_TRY(RC_NEW(mem, &corpus->ranges[i], cfg->data_path.n, err));
    RC_TRY(open_files(cfg, corpus, mem, err));
    RC_TRY(check_vocabulary(cfg, corpus, err));
    corpus->eod = corpus->is_text ? RC_TEXT_EOD : -1;
    if (!corpus->is_text && !cfg->origin[RC_FIELD_eod_id].is_null)
        corpus->eod = cfg->eod_id;
    for (size_t i = 0; i < corpus->n_files; i++)
        cut_file(corpus, i, bounds);
    return RC_OK;
}

void rc_corpus_close(rc_corpus *corpus)
{
    if (!corpus)
        return;
    for (size_t i = 0; i < corpus->n_files; i++)
        rc_tokens_close(&corpus->files[i]);
    corpus->n_files = 0;
}
