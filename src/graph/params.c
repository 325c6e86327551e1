/* graph/params.c — which buffers a parameter has, and their dtypes.
 *
 * takes  profile, precision and optimizer of a config
 * gives  graph->layout, from the rows of param_layouts.def and optimizers.def
 * next   schedule/ opens the buffers, cost/ adds them up
 */
#include "graph/params.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What a cell of param_layouts.def may say: a dtype, or where it comes from. */
typedef enum cell { NONE, F32, MODEL, GRADS, MAIN, REMAINDER, STATES } cell;

/* When the moments of a row of optimizers.def are kept. */
typedef enum kept { ALWAYS, MOMENTUM } kept;

typedef enum when {
#define RC_PARAM_LAYOUT(when, weight, grad, master, moments, source) LAYOUT_##when,
#include "defs/param_layouts.def"
#undef RC_PARAM_LAYOUT
} when;

static const struct row {
    const char *name, *source;
    cell weight, grad, master, moments;
} rows[] = {
#define RC_PARAM_LAYOUT(when, weight, grad, master, moments, source)                           \
    {#when, source, weight, grad, master, moments},
#include "defs/param_layouts.def"
#undef RC_PARAM_LAYOUT
};

static const struct optimizer {
    const char *name, *source;
    int n_of_matrix, n_of_other;
    kept kept;
} optimizers[] = {
#define RC_OPTIMIZER(name, n_of_matrix, n_of_other, kept, source)                              \
    {name, source, n_of_matrix, n_of_other, kept},
#include "defs/optimizers.def"
#undef RC_OPTIMIZER
};
enum { N_OPTIMIZERS = sizeof optimizers / sizeof *optimizers };

/* --- which one a config has */

static bool is_full(const char *dtype)
{
    return dtype && strstr(dtype, "32") != NULL;
}

static when find_layout(const rc_config *cfg, const rc_graph *graph)
{
    const bool is_half = graph->dtype != RC_F32;
    if (graph->profile == RC_PROFILE_ENGINE)
        return is_half ? LAYOUT_engine_half : LAYOUT_engine_float32;
    if (!cfg->use_precision_aware_optimizer)
        return is_half ? LAYOUT_half : LAYOUT_float32;
    if (!is_half)
        return LAYOUT_aware_float32;
    return graph->dtype == RC_BF16 && cfg->store_param_remainders &&
                   is_full(cfg->main_params_dtype)
               ? LAYOUT_aware_remainders
               : LAYOUT_aware_half;
}

/* Megatron-LM's arguments have the short names, Bridge torch's own; fp8 is held as bytes. */
static rc_code read_dtype(const rc_config *cfg, rc_field field, const char *typed,
                          rc_dtype *out, rc_error *err)
{
    static const struct {
        const char *name, *short_name;
        rc_dtype dtype;
    } names[] = {{"float32", "fp32", RC_F32},
                 {"bfloat16", "bf16", RC_BF16},
                 {"float16", "fp16", RC_F16},
                 {"uint8", "fp8", RC_U8}};
    const char *name = typed ? typed : "null";
    name += strncmp(name, "torch.", 6) == 0 ? 6 : 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i].name) != 0 && strcmp(name, names[i].short_name) != 0)
            continue;
        *out = names[i].dtype;
        return RC_OK;
    }
    return RC_FAIL(err, RC_E_UNSUPPORTED, cfg->origin[field].where,
                   "%s is %s; known here are: float32, bfloat16, float16, uint8",
                   rc_field_find(field)->name, name);
}

/* Megatron-LM's --main-grads-dtype bf16 keeps gradients out of float32 too. */
static rc_dtype grads_of(const rc_config *cfg, const rc_graph *graph)
{
    bool is_half = cfg->use_precision_aware_optimizer && !is_full(cfg->main_grads_dtype);
    return cfg->grad_reduce_in_fp32 && !is_half ? RC_F32 : graph->dtype;
}

static rc_code read_cell(const rc_config *cfg, const rc_graph *graph, cell says,
                         rc_param_role role, rc_dtype *out, rc_error *err)
{
    switch (says) {
    case NONE:
        *out = RC_DTYPE_COUNT;
        return RC_OK;
    case F32:
        *out = RC_F32;
        return RC_OK;
    case MODEL:
        *out = graph->dtype;
        return RC_OK;
    case GRADS:
        *out = grads_of(cfg, graph);
        return RC_OK;
    case REMAINDER: /* of its two bytes only the number matters here */
        *out = RC_BF16;
        return RC_OK;
    case MAIN:
        return read_dtype(cfg, RC_FIELD_main_params_dtype, cfg->main_params_dtype, out, err);
    case STATES:
        if (role == RC_PARAM_MOMENT1)
            return read_dtype(cfg, RC_FIELD_exp_avg_dtype, cfg->exp_avg_dtype, out, err);
        return read_dtype(cfg, RC_FIELD_exp_avg_sq_dtype, cfg->exp_avg_sq_dtype, out, err);
    }
    return RC_FAIL(err, RC_E_BUG, RC_NOWHERE, "no such cell of param_layouts.def");
}

/* The engine's one optimizer is adam; another is refused where it would train. */
static rc_code find_optimizer(const rc_config *cfg, const rc_graph *graph,
                              rc_param_layout *layout, rc_error *err)
{
    const bool is_engine = graph->profile == RC_PROFILE_ENGINE;
    const char *name = is_engine ? "adam" : cfg->optimizer ? cfg->optimizer : "null";
    char list[200] = "";
    for (size_t i = 0; i < N_OPTIMIZERS; i++) {
        const struct optimizer *row = &optimizers[i];
        const size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", row->name);
        if (strcmp(row->name, name) != 0)
            continue;
        bool has_none = row->kept == MOMENTUM && !(fabs(cfg->sgd_momentum) > 0);
        layout->n_moments_of_matrix = has_none ? 0 : row->n_of_matrix;
        layout->n_moments_of_other = has_none ? 0 : row->n_of_other;
        return RC_OK;
    }
    return RC_FAIL(err, RC_E_UNSUPPORTED, cfg->origin[RC_FIELD_optimizer].where,
                   "optimizer is %s; the state of these is known here: %s", name, list);
}

rc_code rc_params_layout(const rc_config *cfg, rc_graph *graph, rc_error *err)
{
    const struct row *row = &rows[find_layout(cfg, graph)];
    const cell cells[RC_PARAM_ROLE_COUNT] = {row->weight, row->grad, row->master, row->moments,
                                             row->moments};
    rc_param_layout *layout = &graph->layout;
    for (int role = 0; role < RC_PARAM_ROLE_COUNT; role++)
        RC_TRY(
            read_cell(cfg, graph, cells[role], (rc_param_role)role, &layout->dtype[role], err));
    return find_optimizer(cfg, graph, layout, err);
}

bool rc_graph_param_dtype(const rc_graph *graph, const rc_tensor *weight, rc_param_role role,
                          rc_dtype *out)
{
    const rc_param_layout *layout = &graph->layout;
    bool is_matrix =
        weight->has_weight_decay && weight->layer >= 0 && weight->layer < graph->dims.L;
    int n_moments = is_matrix ? layout->n_moments_of_matrix : layout->n_moments_of_other;
    *out = layout->dtype[role];
    return *out != RC_DTYPE_COUNT && (int)role < RC_PARAM_MOMENT1 + n_moments;
}

/* --- for people */

rc_code rc_graph_layouts_table(rc_arena *mem, rc_table **out, rc_error *err)
{
    static const char *const cells[] = {
        [NONE] = "none",
        [F32] = "float32",
        [MODEL] = "as the model",
        [GRADS] = "float32 with grad_reduce_in_fp32, else as the model",
        [MAIN] = "main_params_dtype",
        [REMAINDER] = "2 bytes that bf16 lacks of float32",
        [STATES] = "exp_avg_dtype and exp_avg_sq_dtype"};
    static const rc_column columns[] = {
        {"layout", NULL, RC_UNIT_TEXT},   {"weight", NULL, RC_UNIT_TEXT},
        {"gradient", NULL, RC_UNIT_TEXT}, {"master", "master weight", RC_UNIT_TEXT},
        {"moments", NULL, RC_UNIT_TEXT},  {"source", NULL, RC_UNIT_TEXT}};
    RC_TRY(rc_table_make(mem, "layouts", "What the buffers of a parameter hold", columns, 6,
                         out, err));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rc_cell *row;
        RC_TRY(rc_table_add_row(*out, &row, err));
        row[0] = rc_cell_text(rows[i].name);
        row[1] = rc_cell_text(cells[rows[i].weight]);
        row[2] = rc_cell_text(cells[rows[i].grad]);
        row[3] = rc_cell_text(cells[rows[i].master]);
        row[4] = rc_cell_text(cells[rows[i].moments]);
        row[5] = rc_cell_text(rows[i].source);
    }
    return RC_OK;
}

rc_code rc_graph_optimizers_table(rc_arena *mem, rc_table **out, rc_error *err)
{
    static const rc_column columns[] = {
        {"optimizer", NULL, RC_UNIT_TEXT},
        {"of_matrix", "moments of a layer's matrix", RC_UNIT_COUNT},
        {"of_other", "of other weights", RC_UNIT_COUNT},
        {"source", NULL, RC_UNIT_TEXT}};
    RC_TRY(rc_table_make(mem, "optimizers", "Moments that an optimizer of Megatron keeps",
                         columns, 4, out, err));
    for (size_t i = 0; i < N_OPTIMIZERS; i++) {
        rc_cell *row;
        RC_TRY(rc_table_add_row(*out, &row, err));
        row[0] = rc_cell_text(optimizers[i].name);
        row[1] = rc_cell_int(optimizers[i].n_of_matrix);
        row[2] = rc_cell_int(optimizers[i].n_of_other);
        row[3] = rc_cell_text(optimizers[i].source);
    }
    return RC_OK;
}
