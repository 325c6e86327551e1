/* train/start_from.c — weights made elsewhere, put where ours go.
 *
 * takes  a folder or file of Hugging Face, or a file of ours
 * gives  every weight of the model filled, and every tensor of the files used
 *
 * Both directions are checked, because a tensor that fits nowhere means the config describes
 * another model (biases, untied embeddings, more layers), which would train without any error.
 */
#include "train/weights.h"

#include "base/num.h"
#include "base/text.h"

#include <recompute/read.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_FILES = 1024, NAME_BYTES = 256, MOST_SOURCES = 3 };

typedef struct row {
    const char *family, *ours, *theirs;
    bool is_transposed;
} row;

static const row rows[] = {
#define RC_WEIGHT(family, ours, theirs, is_transposed) {#family, ours, theirs, is_transposed},
#include "defs/weights.def"
#undef RC_WEIGHT
};
enum { N_ROWS = sizeof rows / sizeof *rows };

typedef struct source {
    const char *path;
    rc_safetensors *files;
    size_t n_files;
    bool **is_used;     /* [n_files][n of the file] */
    const char *family; /* NULL: our own names */
    const char *base;   /* prefix of their names */
    rc_arena *tmp;
} source;

static rc_code open_one(source *from, const char *path, rc_error *err)
{
    RC_TRY(rc_safetensors_open(path, from->tmp, &from->files[from->n_files], err));
    size_t at = from->n_files++;
    RC_TRY(rc_safetensors_verify(&from->files[at], 1, NULL, err));
    return RC_NEW(from->tmp, &from->is_used[at], from->files[at].n, err);
}

/* Is the part open already? An index names its file for every tensor. */
static bool is_open(const source *from, const char *path)
{
    for (size_t i = from->n_files; i-- > 0;)
        if (strcmp(from->files[i].path, path) == 0)
            return true;
    return false;
}

/* The names in an index are untrusted: only plain names, which stay inside the folder. */
static rc_code open_parts(source *from, const char *index_path, rc_error *err)
{
    const char *bytes, *path;
    size_t n_bytes;
    rc_doc *doc;
    RC_TRY(rc_file_read(index_path, RC_READ_MAX_BYTES, from->tmp, &bytes, &n_bytes, err));
    RC_TRY(rc_json_read(index_path, bytes, n_bytes, from->tmp, &doc, err));
    const rc_doc *map = rc_doc_find(doc, "weight_map");
    if (!map || map->kind != RC_DOC_MAP || map->n_children == 0)
        return RC_FAIL(err, RC_E_INPUT, (rc_where){.file = index_path},
                       "has no weight_map; {\"weight_map\": {tensor: file}} is needed");
    for (const rc_doc *node = map->child; node; node = node->next) {
        bool is_plain = node->kind == RC_DOC_STRING && node->n_bytes == strlen(node->text) &&
                        node->n_bytes > 0 && node->text[0] != '.' && !strchr(node->text, '/');
        if (!is_plain)
            return RC_FAIL(err, RC_E_INPUT, node->where,
                           "weight_map names a file outside its folder");
        RC_TRY(rc_arena_printf(from->tmp, &path, err, "%s/%s", from->path, node->text));
        if (is_open(from, path))
            continue;
        if (from->n_files == MOST_FILES)
            return RC_FAIL(err, RC_E_RANGE, node->where, "weight_map names more than %d files",
                           MOST_FILES);
        RC_TRY(open_one(from, path, err));
    }
    return RC_OK;
}

static rc_code open_files(source *from, rc_error *err)
{
    const char *whole, *index_path;
    bool has_index, has_whole;
    RC_TRY(RC_NEW(from->tmp, &from->files, MOST_FILES, err));
    RC_TRY(RC_NEW(from->tmp, &from->is_used, MOST_FILES, err));
    if (!rc_path_is_directory(from->path))
        return open_one(from, from->path, err);
    RC_TRY(rc_arena_printf(from->tmp, &whole, err, "%s/model.safetensors", from->path));
    RC_TRY(rc_arena_printf(from->tmp, &index_path, err, "%s/model.safetensors.index.json",
                           from->path));
    RC_TRY(rc_path_look(index_path, &has_index, err)); /* else other weights would be taken */
    if (has_index)
        return open_parts(from, index_path, err);
    RC_TRY(rc_path_look(whole, &has_whole, err));
    if (!has_whole)
        return RC_FAIL(err, RC_E_IO, (rc_where){.file = from->path},
                       "holds neither model.safetensors nor model.safetensors.index.json");
    return open_one(from, whole, err);
}

/* Finds a tensor and notes that it was used; NULL where there is none. */
static const rc_file_tensor *take(source *from, const char *base, const char *name)
{
    char full[2 * NAME_BYTES];
    snprintf(full, sizeof full, "%s%s", base, name);
    for (size_t i = 0; i < from->n_files; i++) {
        const rc_file_tensor *tensor = rc_safetensors_find(&from->files[i], full);
        if (!tensor)
            continue;
        from->is_used[i][tensor - from->files[i].at] = true;
        return tensor;
    }
    return NULL;
}

static rc_code find_family(source *from, rc_error *err)
{
    static const struct {
        const char *family, *base, *name;
    } signs[] = {
        {NULL, "", "embedding.word_embeddings.weight"}, {"gpt2", "", "wte.weight"},
        {"gpt2", "transformer.", "wte.weight"},         {"llama", "", "embed_tokens.weight"},
        {"llama", "model.", "embed_tokens.weight"},
    };
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        if (!take(from, signs[i].base, signs[i].name))
            continue;
        from->family = signs[i].family;
        from->base = signs[i].base;
        return RC_OK;
    }
    return RC_FAIL(err, RC_E_UNSUPPORTED, (rc_where){.file = from->path},
                   "has the names of no model known here: GPT-2 (wte.weight) or the Llama "
                   "family (model.embed_tokens.weight)");
}

/* Does `pattern`, where '#' stands for a number, spell `name`? *layer is that number, or -1. */
static bool matches(const char *pattern, const char *name, int64_t *layer)
{
    *layer = -1;
    for (; *pattern; pattern++) {
        if (*pattern != '#') {
            if (*name++ != *pattern)
                return false;
            continue;
        }
        char digits[16];
        size_t n = strspn(name, "0123456789");
        if (n == 0 || n >= sizeof digits)
            return false;
        memcpy(digits, name, n);
        digits[n] = '\0';
        if (!rc_parse_int(digits, layer))
            return false;
        name += n;
    }
    return *name == '\0';
}

/* The k-th name of "a|b|c" with '#' written out; false past the last. */
static bool source_name(const char *theirs, int k, int64_t layer, char out[NAME_BYTES])
{
    size_t n = 0;
    for (; k > 0; k--) {
        theirs = strchr(theirs, '|');
        if (!theirs)
            return false;
        theirs++;
    }
    for (; *theirs && *theirs != '|' && n < NAME_BYTES - 24; theirs++) {
        if (*theirs == '#')
            n += (size_t)snprintf(out + n, NAME_BYTES - n, "%" PRId64, layer);
        else
            out[n++] = *theirs;
    }
    out[n] = '\0';
    return true;
}

/* Stores one value in the weight's own type. */
static void store(const rc_weight *weight, int64_t i, float value)
{
    uint32_t bits;
    if (weight->dtype == RC_F32) {
        ((float *)weight->at)[i] = value;
        return;
    }
    memcpy(&bits, &value, sizeof bits); /* bf16, rounded to nearest even */
    bits += 0x7fffu + ((bits >> 16) & 1u);
    ((uint16_t *)weight->at)[i] = (uint16_t)(bits >> 16);
}

static int64_t n_rows_of(const rc_file_tensor *tensor, bool is_transposed)
{
    return tensor->n_dims == 0 ? 1 : tensor->dims[is_transposed ? tensor->n_dims - 1 : 0];
}

static int64_t width_of(const rc_file_tensor *tensor, bool is_transposed)
{
    return tensor->n_dims < 2 ? 1 : tensor->dims[is_transposed ? 0 : 1];
}

/* Puts `n_rows` of the tensor at row `first` of the weight. */
static rc_code copy_rows(source *from, const rc_file_tensor *tensor, bool is_transposed,
                         const rc_weight *weight, const int64_t rows_at[2], rc_error *err)
{
    int64_t width = weight->n_dims < 2 ? 1 : weight->dims[1], first = rows_at[0];
    float *line;
    rc_mark mark = rc_arena_mark(from->tmp);
    if (!is_transposed) {
        RC_TRY(RC_NEW(from->tmp, &line, width, err));
        for (int64_t r = 0; r < rows_at[1]; r++) {
            rc_file_tensor_to_f32(tensor, r * width, width, line);
            for (int64_t c = 0; c < width; c++)
                store(weight, (first + r) * width + c, line[c]);
        }
    } else { /* [in, out] of the file is [out, in] here: one line is a column */
        RC_TRY(RC_NEW(from->tmp, &line, rows_at[1], err));
        for (int64_t c = 0; c < width; c++) {
            rc_file_tensor_to_f32(tensor, c * rows_at[1], rows_at[1], line);
            for (int64_t r = 0; r < rows_at[1]; r++)
                store(weight, (first + r) * width + c, line[r]);
        }
    }
    rc_arena_rewind(from->tmp, mark);
    return RC_OK;
}

static const char *print_shape(const int64_t *dims, int n_dims, char buf[160])
{
    size_t n = 0;
    buf[0] = '\0';
    for (int i = 0; i < n_dims; i++)
        n += (size_t)snprintf(buf + n, 160 - n, "%s%" PRId64, i ? "," : "", dims[i]);
    return buf;
}

static rc_code shape_failed(const source *from, const rc_file_tensor *tensor,
                            const rc_weight *weight, rc_error *err)
{
    char theirs[160], ours[160], safe[160];
    rc_text_printable(tensor->name, strlen(tensor->name), safe, sizeof safe);
    return RC_FAIL(err, RC_E_INPUT, (rc_where){.file = from->path},
                   "tensor %s [%s] does not fit %s [%s]; the config describes another model",
                   safe, print_shape(tensor->dims, tensor->n_dims, theirs), weight->name,
                   print_shape(weight->dims, weight->n_dims, ours));
}

/* Without those that only pad. */
static int64_t count_rows(const rc_weight *weight)
{
    return weight->dims[0] - weight->n_padding / (weight->n_dims < 2 ? 1 : weight->dims[1]);
}

/* Rows of the file where the model has only padding: words of a larger vocabulary, unless 0. */
static rc_code check_padding(const source *from, const rc_file_tensor *tensor,
                             const rc_weight *weight, const int64_t rows_at[2], rc_error *err)
{
    int64_t width = weight->n_dims < 2 ? 1 : weight->dims[1], n_used = count_rows(weight);
    float *line;
    rc_mark mark = rc_arena_mark(from->tmp);
    RC_TRY(RC_NEW(from->tmp, &line, width, err));
    for (int64_t r = n_used - rows_at[0]; r < rows_at[1]; r++) {
        rc_file_tensor_to_f32(tensor, r * width, width, line);
        for (int64_t c = 0; c < width; c++)
            if (!(fabsf(line[c]) <= 0))
                return RC_FAIL(err, RC_E_INPUT, (rc_where){.file = from->path},
                               "row %" PRId64 " of %s is a word, but model.vocab_size is "
                               "%" PRId64 "; give the vocabulary that the weights have",
                               rows_at[0] + r, weight->name, n_used);
    }
    rc_arena_rewind(from->tmp, mark);
    return RC_OK;
}

/* Fills rows [first, ...) from one tensor; *first moves on. */
static rc_code fill_from(source *from, const row *recipe, const rc_file_tensor *tensor,
                         const rc_weight *weight, int64_t *first, rc_error *err)
{
    bool is_transposed = recipe && recipe->is_transposed;
    bool is_number = tensor->dtype == RC_FILE_F32 || tensor->dtype == RC_FILE_BF16 ||
                     tensor->dtype == RC_FILE_F16;
    if (!is_number)
        return RC_FAIL(err, RC_E_UNSUPPORTED, (rc_where){.file = from->path},
                       "the tensor for %s is %s; F32, BF16 and F16 are read", weight->name,
                       rc_file_dtype_name(tensor->dtype));
    int64_t n_rows = n_rows_of(tensor, is_transposed), room = weight->dims[0] - *first;
    if (tensor->n_dims != weight->n_dims ||
        width_of(tensor, is_transposed) != (weight->n_dims < 2 ? 1 : weight->dims[1]))
        return shape_failed(from, tensor, weight, err);
    if (n_rows > room && !strstr(weight->name, "position_embeddings"))
        return shape_failed(from, tensor, weight, err);
    int64_t rows_at[2] = {*first, n_rows < room ? n_rows : room};
    *first += rows_at[1];
    if (!is_transposed && *first > count_rows(weight))
        RC_TRY(check_padding(from, tensor, weight, rows_at, err));
    return copy_rows(from, tensor, is_transposed, weight, rows_at, err);
}

static rc_code missing(const source *from, const rc_weight *weight, const char *name,
                       rc_error *err)
{
    return RC_FAIL(err, RC_E_INPUT, (rc_where){.file = from->path},
                   "has no tensor %s for %s; the config describes another model%s", name,
                   weight->name,
                   strcmp(weight->name, "output_layer.weight") == 0
                       ? " (model.share_embeddings_and_output_weights is false)"
                       : "");
}

static const row *find_recipe(const source *from, const rc_weight *weight, int64_t *layer)
{
    for (int i = 0; i < N_ROWS && from->family; i++)
        if (strcmp(rows[i].family, from->family) == 0 &&
            matches(rows[i].ours, weight->name, layer))
            return &rows[i];
    return NULL;
}

/* Every row that takes part must come from the file; rows of padding are 0. */
static rc_code fill_rest(const source *from, const rc_weight *weight, int64_t first,
                         rc_error *err)
{
    int64_t width = weight->n_dims < 2 ? 1 : weight->dims[1], n_used = count_rows(weight);
    if (first < n_used)
        return RC_FAIL(err, RC_E_INPUT, (rc_where){.file = from->path},
                       "gives %" PRId64 " rows of %s, which has %" PRId64
                       "; the config describes another model",
                       first, weight->name, n_used);
    for (int64_t i = n_used * width; i < weight->dims[0] * width; i++)
        store(weight, i, 0);
    return RC_OK;
}

static rc_code fill(source *from, const rc_weight *weight, rc_error *err)
{
    int64_t first = 0, layer = -1;
    char name[NAME_BYTES];
    const row *recipe = find_recipe(from, weight, &layer);
    if (from->family && !recipe)
        return missing(from, weight, "of its family", err);
    for (int k = 0; k < MOST_SOURCES; k++) {
        if (!source_name(recipe ? recipe->theirs : weight->name, k, layer, name))
            break;
        bool is_root = name[0] == '/';
        const char *bare = is_root ? name + 1 : name;
        const rc_file_tensor *tensor = take(from, is_root ? "" : from->base, bare);
        if (!tensor)
            return missing(from, weight, bare, err);
        RC_TRY(fill_from(from, recipe, tensor, weight, &first, err));
    }
    return fill_rest(from, weight, first, err);
}

/* Buffers that old files carry: causal masks and rotary frequencies. */
static bool is_buffer(const char *name)
{
    static const char *const ends[] = {".attn.bias", ".attn.masked_bias",
                                       ".rotary_emb.inv_freq"};
    size_t n = strlen(name);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (n > strlen(ends[i]) && strcmp(name + n - strlen(ends[i]), ends[i]) == 0)
            return true;
    return false;
}

/* A tied model's file may hold the embedding a second time; then it must be the same. */
static bool is_tied_copy(source *from, const rc_file_tensor *tensor)
{
    if (strcmp(tensor->name, "lm_head.weight") != 0 || !from->family)
        return false;
    const char *name = strcmp(from->family, "gpt2") == 0 ? "wte.weight" : "embed_tokens.weight";
    const rc_file_tensor *other = take(from, from->base, name);
    return other && other->dtype == tensor->dtype && other->n_bytes == tensor->n_bytes &&
           memcmp(other->at, tensor->at, (size_t)tensor->n_bytes) == 0;
}

static rc_code check_all_used(source *from, rc_error *err)
{
    char safe[160];
    for (size_t i = 0; i < from->n_files; i++) {
        for (size_t k = 0; k < from->files[i].n; k++) {
            const rc_file_tensor *tensor = &from->files[i].at[k];
            if (from->is_used[i][k] || is_buffer(tensor->name) || is_tied_copy(from, tensor))
                continue;
            rc_text_printable(tensor->name, strlen(tensor->name), safe, sizeof safe);
            return RC_FAIL(err, RC_E_INPUT, (rc_where){.file = from->files[i].path},
                           "tensor %s has no place in this model; check num_layers, "
                           "add_bias_linear, add_qkv_bias, qk_layernorm and "
                           "share_embeddings_and_output_weights",
                           safe);
        }
    }
    return RC_OK;
}

rc_code rc_weights_start_from(const char *path, const rc_weight *weights, size_t n,
                              rc_arena *tmp, rc_error *err)
{
    source from = {.path = path, .tmp = tmp};
    rc_code code = open_files(&from, err);
    if (code == RC_OK)
        code = find_family(&from, err);
    for (size_t i = 0; i < n && code == RC_OK; i++)
        code = fill(&from, &weights[i], err);
    if (code == RC_OK)
        code = check_all_used(&from, err);
    for (size_t i = 0; i < from.n_files; i++)
        rc_safetensors_close(&from.files[i]);
    return code;
}
