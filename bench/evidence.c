/* evidence.c — predicted peaks beside measured ones: `evidence FILE.json [ID | --most PERCENT]`.
 *
 * FILE holds public measurements, a row a job: `model` and `run` in Megatron's field names, `measured` with
 * peak_allocated_bytes and the rank that was measured. Every row that can be scored on memory is predicted with what
 * it says and nothing else, and the table has the error by kind of model. A row that is refused is listed with the
 * reason: it counts as not answered, not as right. With an ID the job of that row is printed whole. With
 * --most the exit status is 1 where a row is refused, or the median error of a kind is larger.
 */
#define _POSIX_C_SOURCE 200809L
#include <recompute/estimate.h>
#include <recompute/read.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WORDS = 200, MAX_ROWS = 4096, MAX_KINDS = 64 };

typedef struct score {
    const char *kind;
    /* predicted / measured - 1; NaN where there is no answer */
    double error;
} score;

static void must(rc_code code, const rc_error *err)
{
    if (code == RC_OK)
        return;
    fprintf(stderr, "%s\n", err->msg);
    exit(70);
}

/* ---- a row's settings as overrides ---- */

typedef struct words {
    const char *at[MAX_WORDS];
    size_t n;
    rc_arena *mem;
} words;

static void add_word(words *w, const char *key, const char *value)
{
    rc_error err = {0};
    if (w->n == MAX_WORDS) {
        fprintf(stderr, "a row has more than %d settings\n", MAX_WORDS);
        exit(70);
    }
    must(rc_arena_printf(w->mem, &w->at[w->n++], &err, "%s=%s", key, value), &err);
}

/* As the file spells dtypes, and as Megatron does. */
static const char *word_of(const rc_doc *value)
{
    if (strncmp(value->key, "moe_", 4) == 0) /* the router's is spelt as there */
        return value->text;
    static const char *const dtypes[][2] = {
        {"fp32", "float32"}, {"bf16", "bfloat16"}, {"fp16", "float16"}};
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (strcmp(value->text, dtypes[i][0]) == 0)
            return dtypes[i][1];
    return value->text;
}

static const char *list_text(const rc_doc *list, rc_arena *mem)
{
    rc_error err = {0};
    char *bytes = NULL;
    const char *copy;
    size_t n = 0;
    FILE *to = open_memstream(&bytes, &n);
    if (!to)
        exit(70);
    rc_doc_write_json(list, to);
    fclose(to);
    must(rc_arena_printf(mem, &copy, &err, "%.*s", (int)strcspn(bytes, "\n"), bytes), &err);
    free(bytes);
    return copy;
}

static void add_fields(words *w, const rc_doc *map)
{
    for (const rc_doc *value = map->child; value; value = value->next) {
        const rc_field field = rc_field_find_name(value->key);
        if (value->kind == RC_DOC_NULL || field == RC_FIELD_COUNT ||
            strcmp(rc_field_find(field)->name, value->key) != 0)
            continue;
        add_word(w, rc_field_key(field),
                 value->kind == RC_DOC_LIST || value->kind == RC_DOC_MAP
                     ? list_text(value, w->mem)
                     : word_of(value));
    }
}

static bool is_text(const rc_doc *map, const char *key, const char *text)
{
    const rc_doc *value = rc_doc_find(map, key);
    return value && value->text && strcmp(value->text, text) == 0;
}

static bool is_on(const rc_doc *map, const char *key)
{
    const rc_doc *value = rc_doc_find(map, key);
    return value && value->kind == RC_DOC_BOOL && value->i;
}

/* What the file names otherwise than Megatron does. */
static void add_special(words *w, const rc_doc *model, const rc_doc *run)
{
    const rc_doc *padded = rc_doc_find(model, "padded_vocab_size");
    if (padded && padded->kind == RC_DOC_INT) {
        add_word(w, "model.vocab_size", padded->text);
        add_word(w, "model.make_vocab_size_divisible_by", "1");
    }
    if (is_on(model, "layernorm_1p"))
        add_word(w, "model.layernorm_zero_centered_gamma", "true");
    if (is_text(run, "precision", "fp16"))
        add_word(w, "model.fp16", "true");
    else if (!is_text(run, "precision", "fp32"))
        add_word(w, "model.bf16", "true");
    if (is_text(run, "main_grads_dtype", "fp32"))
        add_word(w, "ddp.grad_reduce_in_fp32", "true");
}

static int64_t int_at(const rc_doc *map, const char *key)
{
    const rc_doc *value = rc_doc_find(map, key);
    return value && value->kind == RC_DOC_INT ? value->i : 0;
}

/* Rows do not say which Transformer Engine ran; one from before a release cannot have had it (2.18: 2026-08-04). */
static bool is_before(const rc_doc *row, const char *date)
{
    const rc_doc *own = rc_doc_find_path(row, "source.date");
    return own && own->text && strcmp(own->text, date) < 0;
}

/* "B200 (8 x, one node)" is b200; NULL where it is none that is known. */
static const rc_gpu *gpu_of(const rc_doc *run)
{
    static const char *const names[][2] = {{"A100", "a100-80gb"}, {"GB300", "gb300"},
                                           {"GB200", "gb200"},    {"B300", "b300"},
                                           {"B200", "b200"},      {"H200", "h200"}};
    const rc_doc *gpu = rc_doc_find(run, "gpu");
    for (size_t i = 0; gpu && gpu->text && i < sizeof names / sizeof *names; i++)
        if (strncmp(gpu->text, names[i][0], strlen(names[i][0])) == 0)
            return rc_gpu_find(names[i][1]);
    return NULL;
}

static rc_code predict(const rc_doc *row, rc_arena *mem, rc_estimate **estimate, rc_error *err)
{
    const rc_doc *model = rc_doc_find(row, "model"), *run = rc_doc_find(row, "run");
    words w = {.mem = mem};
    rc_doc *doc;
    rc_config *cfg;
    add_fields(&w, model);
    add_fields(&w, run);
    add_special(&w, model, run);
    RC_TRY(rc_override_read(w.at, w.n, mem, &doc, err));
    RC_TRY(rc_config_make(&(rc_input){doc, RC_FROM_OVERRIDE}, 1, mem, &cfg, err));
    const rc_estimate_request request = {.cfg = cfg,
                                         .profile = is_text(run, "transformer_impl", "local")
                                                        ? RC_PROFILE_MEGATRON_LOCAL
                                                        : RC_PROFILE_MEGATRON_TE,
                                         .world_size = int_at(run, "world_size"),
                                         .te_version = is_before(row, "2026-08-04") ? 217 : 0,
                                         .gpu = gpu_of(run)};
    RC_TRY(rc_estimate_make(&request, mem, estimate, err));
    if ((*estimate)->n_lacks > 0)
        return RC_FAIL(err, RC_E_UNSUPPORTED, RC_NOWHERE, "%s: %s", (*estimate)->lacks[0].key,
                       (*estimate)->lacks[0].words);
    return RC_OK;
}

/* ---- beside what was measured ---- */

/* The kind of rank that the row speaks of: the last stage, the first rank, or the one that holds most. */
static int64_t predicted_bytes(const rc_doc *row, const rc_estimate *estimate)
{
    const rc_doc *measured = rc_doc_find(row, "measured");
    if (is_text(measured, "rank_kind", "last_pp_stage"))
        return estimate->ranks[estimate->n_ranks - 1].later.bytes;
    if (is_text(measured, "rank_kind", "rank0"))
        return estimate->ranks[0].later.bytes;
    return estimate->ranks[estimate->hottest].later.bytes;
}

static const char *kind_of(const rc_doc *row, rc_arena *mem)
{
    const rc_doc *run = rc_doc_find(row, "run");
    const rc_doc *granularity = rc_doc_find(run, "recompute_granularity");
    rc_error err = {0};
    const char *kind;
    must(
        rc_arena_printf(mem, &kind, &err, "%s, %s%s", rc_doc_find(row, "family")->text,
                        rc_doc_find(row, "scale")->text,
                        granularity && granularity->kind == RC_DOC_STRING ? ", recompute" : ""),
        &err);
    return kind;
}

/* For people: the time of a step is no claim of the estimate. */
static void print_time(const rc_doc *row, const rc_estimate *estimate)
{
    const rc_doc *ms = rc_doc_find_path(row, "measured.step_time_ms");
    if (ms && ms->kind != RC_DOC_NULL)
        printf("; step %.0f ms, of the model %.0f\n", ms->f,
               1e3 * (estimate->step_seconds + estimate->replay_seconds));
    else
        putchar('\n');
}

static double compare(const rc_doc *row, bool is_whole)
{
    const double gib = 1024.0 * 1024 * 1024;
    const char *id = rc_doc_find(row, "id")->text;
    const rc_doc *measured = rc_doc_find_path(row, "measured.peak_allocated_bytes");
    rc_arena *mem = rc_arena_open();
    rc_error err = {0};
    rc_estimate *estimate;
    double error = NAN;
    if (predict(row, mem, &estimate, &err) != RC_OK) {
        printf("%-60s %8.3f GiB, not answered: %s\n", id, measured->f / gib, err.msg);
    } else {
        const double bytes = (double)predicted_bytes(row, estimate);
        error = bytes / measured->f - 1;
        printf("%-60s %8.3f GiB, predicted %8.3f: %+.2f %%", id, measured->f / gib, bytes / gib,
               100 * error);
        print_time(row, estimate);
        if (is_whole)
            rc_estimate_print(estimate, stdout);
    }
    rc_arena_close(mem);
    return error;
}

static int by_size(const void *a, const void *b)
{
    const double x = fabs(*(const double *)a), y = fabs(*(const double *)b);
    return (x > y) - (x < y);
}

/* false: not all are answered, or the median is above `most`, in percent */
static bool print_kind(const score *scores, size_t n, const char *kind, double most)
{
    static double errors[MAX_ROWS];
    size_t n_rows = 0, n_answered = 0;
    for (size_t i = 0; i < n; i++) {
        if (kind && strcmp(scores[i].kind, kind) != 0)
            continue;
        n_rows++;
        if (!isnan(scores[i].error))
            errors[n_answered++] = scores[i].error;
    }
    qsort(errors, n_answered, sizeof *errors, by_size);
    printf("%-30s %3zu rows, %3zu answered", kind ? kind : "all", n_rows, n_answered);
    if (n_answered > 0)
        printf(", median error %.2f %%, largest %+.2f %%", 100 * fabs(errors[n_answered / 2]),
               100 * errors[n_answered - 1]);
    putchar('\n');
    return n_answered == n_rows && n_rows > 0 && 100 * fabs(errors[n_answered / 2]) <= most;
}

static bool print_kinds(const score *scores, size_t n, double most)
{
    bool is_good = n > 0;
    putchar('\n');
    for (size_t i = 0; i < n; i++) {
        bool is_new = true;
        for (size_t k = 0; k < i; k++)
            is_new = is_new && strcmp(scores[k].kind, scores[i].kind) != 0;
        if (is_new)
            is_good = print_kind(scores, n, scores[i].kind, most) && is_good;
    }
    print_kind(scores, n, NULL, most);
    return is_good;
}

int main(int argc, char **argv)
{
    static score scores[MAX_ROWS];
    rc_arena *mem = rc_arena_open();
    rc_error err = {0};
    rc_doc *doc;
    size_t n = 0;
    const bool has_most = argc == 4 && strcmp(argv[2], "--most") == 0;
    if (argc != 2 && argc != 3 && !has_most) {
        fputs("usage: evidence FILE.json [ID | --most PERCENT]\n", stderr);
        return 2;
    }
    must(rc_doc_read(argv[1], mem, &doc, &err), &err);
    const rc_doc *rows = rc_doc_find(doc, "rows");
    for (const rc_doc *row = rows ? rows->child : NULL; row && n < MAX_ROWS; row = row->next) {
        const bool is_asked = argc == 3 && strcmp(rc_doc_find(row, "id")->text, argv[2]) == 0;
        const rc_doc *use = rc_doc_find(row, "use");
        if (argc == 3 ? !is_asked : !is_on(use, "score_memory"))
            continue;
        scores[n].kind = kind_of(row, mem);
        scores[n++].error = compare(row, is_asked);
    }
    const bool is_good = print_kinds(scores, n, has_most ? strtod(argv[3], NULL) : 0);
    rc_arena_close(mem);
    return has_most && !is_good;
}
