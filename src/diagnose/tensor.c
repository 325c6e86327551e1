/* tensor.c — which tensor a request is, from its size and the model's shapes.
 *
 * takes  the request, rounded as the message prints it, and the settings
 * gives  the name of a tensor of exactly that size: logits, scores, expert weights, optimizer state
 *
 * Sizes: Korthikanti et al. 2022 (activations), Megatron-LM tensor_parallel/cross_entropy.py
 * (logits s b V / t, in fp32 or in 2 bytes), optimizer/distrib_optimizer.py (moments of 4 bytes
 * per parameter and shard). torch rounds a request to 512 bytes, and to 2 MiB from 10 MiB on
 * (c10/cuda/CUDACachingAllocator.cpp), and prints two decimals.
 */
#include "diagnose/diag.h"

#include "base/num.h"

#include <inttypes.h>
#include <string.h>

typedef struct shape {
    int64_t s, b, h, a, g, d, f, V, t, c, ep, E, moe_f, glu;
} shape;

/* The product of positive factors, or -1. */
static int64_t product(const int64_t *factors, size_t n)
{
    int64_t bytes = 1;
    for (size_t i = 0; i < n; i++)
        if (factors[i] < 1 || !rc_mul(bytes, factors[i], &bytes))
            return -1;
    return bytes;
}
#define PRODUCT(...)                                                                           \
    product((const int64_t[]){__VA_ARGS__},                                                    \
            sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

/* Whether torch would print `bytes` as the request. */
static bool is_request(int64_t bytes, int64_t request)
{
    if (bytes < 1 << 20 || request < 0)
        return false;
    const int64_t gib = (int64_t)1 << 30, mib = 1 << 20;
    int64_t print_step = request >= gib ? gib / 100 : request >= mib ? mib / 100 : 1024;
    int64_t round_step = bytes >= 10 * mib ? 2 * mib : 512;
    int64_t rounded = bytes < INT64_MAX - round_step ? rc_round_up(bytes, round_step) : bytes;
    int64_t low = bytes - print_step / 2 - 1, high = rounded + print_step / 2 + 1;
    return request >= low && request <= high;
}

static int64_t or_unknown(int64_t value)
{
    return value == RC_NULL_INT ? -1 : value;
}

static shape shape_of(const rc_config *cfg)
{
    shape at = {.s = or_unknown(cfg->seq_length), .b = or_unknown(cfg->micro_batch_size)};
    at.b = at.b > 0 ? at.b : 1;
    at.h = or_unknown(cfg->hidden_size);
    at.a = or_unknown(cfg->num_attention_heads);
    at.V = cfg->vocab_size != RC_NULL_INT ? rc_config_vocab(cfg, 0) : -1;
    at.f = cfg->ffn_hidden_size != RC_NULL_INT || at.h > 0 ? rc_config_ffn(cfg) : -1;
    at.t = cfg->tensor_model_parallel_size > 0 ? cfg->tensor_model_parallel_size : 1;
    at.c = cfg->context_parallel_size > 0 ? cfg->context_parallel_size : 1;
    at.ep = cfg->expert_model_parallel_size > 0 ? cfg->expert_model_parallel_size : 1;
    at.E = or_unknown(cfg->num_moe_experts);
    at.moe_f = cfg->moe_ffn_hidden_size != RC_NULL_INT ? cfg->moe_ffn_hidden_size : at.f;
    at.glu = cfg->gated_linear_unit ? 2 : 1;
    return at;
}

typedef struct candidate {
    const char *what;
    int64_t bytes;
} candidate;

static int64_t split(int64_t n, int64_t by)
{
    return n > 0 && by > 0 ? n / by : -1;
}

static const char *find_candidate(const shape *at, int64_t request)
{
    int64_t s = split(at->s, at->c), heads = split(at->a, at->t), V = split(at->V, at->t);
    int64_t n = PRODUCT(s, at->b);
    const candidate candidates[] = {
        {"the fp32 logits: tokens x vocabulary / tensor-parallel size x 4 bytes",
         PRODUCT(n, V, 4)},
        {"the fp32 logits without the last token: (tokens - 1) x vocabulary x 4 bytes",
         PRODUCT(s - 1, at->b, V, 4)},
        {"the logits in 2 bytes: tokens x vocabulary / tensor-parallel size x 2",
         PRODUCT(n, V, 2)},
        {"the attention scores: micro-batch x heads x sequence x sequence x 2 bytes",
         PRODUCT(at->b, heads, s, at->s, 2)},
        {"the attention scores in fp32: micro-batch x heads x sequence x sequence x 4 bytes",
         PRODUCT(at->b, heads, s, at->s, 4)},
        {"the weights of the local experts' first layer",
         PRODUCT(split(at->E, at->ep), at->glu, at->moe_f, at->h, 2)},
        {"the weights of the local experts' second layer",
         PRODUCT(split(at->E, at->ep), at->moe_f, at->h, 2)},
        {"the fp32 gradient of the local experts' first layer",
         PRODUCT(split(at->E, at->ep), at->glu, at->moe_f, at->h, 4)},
        {"the embedding in 2 bytes: vocabulary / tensor-parallel size x hidden size x 2",
         PRODUCT(V, at->h, 2)},
        {"the embedding in fp32 (a moment, a gradient or master weights)",
         PRODUCT(V, at->h, 4)},
        {"the MLP's first output: tokens x FFN width / tensor-parallel size x 2 bytes",
         PRODUCT(n, at->glu, split(at->f, at->t), 2)},
        {"the MLP's activation: tokens x FFN width / tensor-parallel size x 2 bytes",
         PRODUCT(n, split(at->f, at->t), 2)},
        {"one hidden state: tokens x hidden size x 2 bytes", PRODUCT(n, at->h, 2)},
    };
    for (size_t i = 0; i < sizeof candidates / sizeof *candidates; i++)
        if (is_request(candidates[i].bytes, request))
            return candidates[i].what;
    return NULL;
}

/* A Hugging Face config has no batch: does some whole number of tokens give logits of this size?
 * Only a multiple of `step` counts, or every size would; without a frame that speaks of logits only
 * fp32 and a large vocabulary do, where the printed size is sharp enough (1 in 50 by chance). */
static rc_code find_token_count(diag *d, int64_t V, bool is_framed, const char **out,
                                rc_error *err)
{
    static const int bytes_per[] = {4, 2};
    const int64_t step = is_framed ? 512 : 1024;
    for (size_t i = 0; i < (is_framed ? 2 : 1) && V > 0; i++) {
        int64_t unit = V * bytes_per[i];
        int64_t tokens = (d->request + unit * step / 2) / (unit * step) * step;
        int64_t bytes = PRODUCT(tokens, unit);
        if (tokens > 0 && is_request(bytes, d->request))
            return rc_arena_printf(d->mem, out, err,
                                   "%" PRId64 " tokens of logits x a vocabulary of %" PRId64
                                   " x %d bytes",
                                   tokens, V, bytes_per[i]);
    }
    return RC_OK;
}

/* Fused attention never forms the scores. */
static bool may_have_scores(const diag *d)
{
    const rc_config *cfg = d->job->cfg;
    const char *backend = cfg->attention_backend ? cfg->attention_backend : "";
    bool is_unfused = strcmp(backend, "unfused") == 0 || strcmp(backend, "local") == 0;
    bool is_local = cfg->transformer_impl && strcmp(cfg->transformer_impl, "local") == 0;
    return is_unfused || is_local || (d->frames & RC_FRAMES_SCORES) != 0;
}

rc_code diag_name_tensor(diag *d, rc_error *err)
{
    const rc_config *cfg = d->job->cfg;
    if (!cfg || !d->oom || d->request < 0)
        return RC_OK;
    shape at = shape_of(cfg);
    if (!may_have_scores(d))
        at.a = RC_LOG_UNKNOWN;
    d->tensor = find_candidate(&at, d->request);
    bool may_be_logits = (d->frames & RC_FRAMES_LOGITS) != 0 || d->phase == RC_JOB_EVAL;
    bool is_sharp = cfg->vocab_size >= 100000 && cfg->micro_batch_size == RC_NULL_INT;
    if (!d->tensor && (may_be_logits || is_sharp) && cfg->vocab_size != RC_NULL_INT &&
        cfg->vocab_size < 1 << 28)
        return find_token_count(d, cfg->vocab_size, may_be_logits, &d->tensor, err);
    return RC_OK;
}
