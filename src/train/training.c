/* train/training.c — everything up to the first step, as a list of passes, and what can be said
 * about it.
 */
#include "train/training.h"

#include "train/agree.h"

#include "base/num.h"

#include <recompute/plan.h>

#include <inttypes.h>
#include <string.h>

static rc_code plan_memory(rc_training *training, rc_error *err)
{
    const rc_config *cfg = training->cfg;
    rc_passes *passes = &training->passes;
    *passes = (rc_passes){.cfg = cfg, .n_threads = training->set.n_threads};
    RC_TRY(rc_passes_make(passes, RC_NOUN_COST, training->mem, err));
    if (cfg->origin[RC_FIELD_memory_budget].is_null)
        return RC_OK;
    training->budget_bytes = cfg->memory_budget;
    return rc_plan_refuse_over_budget(passes->schedule, cfg->memory_budget,
                                      cfg->origin[RC_FIELD_memory_budget].where, training->mem,
                                      err);
}

/* Samples of all evaluations: one every eval_interval steps and one at the end. */
static rc_code count_valid_samples(const rc_train_settings *set, int64_t *n, rc_error *err)
{
    int64_t n_times = set->n_steps / set->eval_interval + 1;
    if (rc_mul(n_times, set->eval_iters, n) && rc_mul(*n, set->n_global, n))
        return RC_OK;
    return RC_FAIL(err, RC_E_RANGE, RC_NOWHERE, "the samples of all evaluations pass 2^63");
}

static rc_code plan_data(rc_training *training, rc_error *err)
{
    const rc_train_settings *set = &training->set;
    rc_dataset_want want = {.split = RC_SPLIT_TRAIN,
                            .s = set->s,
                            .seed = set->data_seed,
                            .is_eod_masked = training->cfg->eod_mask_loss};
    RC_TRY(rc_corpus_open(training->cfg, training->passes.graph->dims.W, training->mem,
                          &training->corpus, err));
    if (want.is_eod_masked && training->corpus->eod < 0)
        return RC_FAIL(err, RC_E_INPUT, training->cfg->origin[RC_FIELD_eod_mask_loss].where,
                       "dataset.eod_mask_loss needs engine.eod_id: an indexed dataset does not "
                       "say which token ends a document");
    want.n_samples = set->n_steps * set->n_global; /* both below 2^31 */
    training->n_train_wanted = want.n_samples;
    RC_TRY(rc_dataset_plan(training->corpus, &want, training->mem, &training->train, err));
    bool is_evaluated = set->eval_interval > 0 && set->eval_iters > 0 &&
                        training->corpus->n_tokens[RC_SPLIT_VALID] > 1;
    if (!is_evaluated)
        return RC_OK;
    want.split = RC_SPLIT_VALID;
    RC_TRY(count_valid_samples(set, &want.n_samples, err));
    training->n_valid_wanted = want.n_samples;
    return rc_dataset_plan(training->corpus, &want, training->mem, &training->valid, err);
}

/* What is still to come lies behind what a state says was seen, wherever that is. */
static int64_t needed_behind(int64_t n_seen, int64_t n_to_come, const rc_dataset *dataset)
{
    int64_t n;
    return rc_add(n_seen, n_to_come, &n) ? n : dataset->n_samples;
}

rc_code rc_training_order(rc_training *training, rc_error *err)
{
    const rc_state *state = &training->state;
    int64_t n_to_come = (training->set.n_steps - state->iteration) * training->set.n_global;
    RC_TRY(rc_dataset_order(training->train,
                            needed_behind(state->n_train_samples, n_to_come, training->train),
                            training->mem, err));
    if (!training->valid)
        return RC_OK;
    /* all of this run's, since a resumed one may have made more evaluations than it plans now */
    return rc_dataset_order(
        training->valid,
        needed_behind(state->n_valid_samples, training->n_valid_wanted, training->valid),
        training->mem, err);
}

int64_t rc_training_order_bytes(const rc_training *training)
{
    int64_t bytes = rc_dataset_order_bytes(training->train, training->n_train_wanted);
    if (training->valid)
        bytes += rc_dataset_order_bytes(training->valid, training->n_valid_wanted);
    return bytes;
}

/* What the counts of a checkpoint are held against. */
static void set_counts(rc_training *training)
{
    const rc_train_settings *set = &training->set;
    training->state.n_global = set->n_global;
    training->state.valid.n_steps = set->n_steps;
    if (!training->valid)
        return;
    training->state.valid.interval = set->eval_interval;
    training->state.valid.n_batch_samples = set->eval_iters * set->n_global;
}

static rc_code open_training(rc_training *training, rc_error *err)
{
    const rc_train_settings *set = &training->set;
    RC_TRY(rc_train_settings_make(training->cfg, &training->set, err));
    RC_TRY(rc_lr_make(training->cfg, set->n_global, &training->lr, err));
    RC_TRY(plan_memory(training, err));
    RC_TRY(rc_train_agree(training->cfg, training->mem, &training->is_function_told, err));
    RC_TRY(plan_data(training, err));
    RC_TRY(rc_training_identity(training, err));
    set_counts(training);
    RC_TRY(RC_NEW(training->mem, &training->tokens, set->b * set->s, err));
    return RC_NEW(training->mem, &training->targets, set->b * set->s, err);
}

rc_code rc_training_open(const rc_config *cfg, rc_arena *mem, rc_training **out, rc_error *err)
{
    rc_training *training;
    *out = NULL;
    RC_TRY(RC_NEW(mem, &training, 1, err));
    training->cfg = cfg;
    training->mem = mem;
    training->saved_at = -1;
    training->save_lock = -1;
    rc_code code = open_training(training, err);
    if (code == RC_OK)
        *out = training;
    else
        rc_training_close(training);
    return code;
}

void rc_training_close(rc_training *training)
{
    if (!training)
        return;
    rc_run_close(training->run);
    training->run = NULL;
    rc_path_unlock(&training->save_lock);
    rc_corpus_close(training->corpus);
}

static void print_dataset(const char *name, const rc_dataset *dataset, FILE *to)
{
    if (!dataset)
        return;
    fprintf(to,
            "%s: %" PRId64 " samples of %" PRId64 " tokens from %" PRId64 " documents, %" PRId64
            " tokens; %" PRId64 " passes%s\n",
            name, dataset->n_samples, dataset->s, dataset->corpus->n_documents[dataset->split],
            dataset->corpus->n_tokens[dataset->split], dataset->n_epochs,
            dataset->has_separate_last_epoch ? ", the last shuffled by itself" : "");
}

static void print_data(const rc_training *training, FILE *to)
{
    const rc_corpus *corpus = training->corpus;
    fprintf(to, "data: %zu %s%s\n", corpus->n_files,
            corpus->is_text ? "text, a token a byte" : "indexed dataset",
            corpus->n_files > 1 ? ", one after another" : "");
    print_dataset("train", training->train, to);
    print_dataset("validation", training->valid, to);
}

rc_code rc_training_dump(const rc_training *training, const char *noun, FILE *to, rc_error *err)
{
    rc_noun found;
    if (strcmp(noun, "data") == 0)
        print_data(training, to);
    else if (rc_noun_find(noun, strlen(noun), &found))
        rc_passes_print(&training->passes, found, to);
    else
        return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE,
                       "--dump knows config, data, graph, policy, schedule and cost, not %.40s",
                       noun);
    return RC_OK;
}

static rc_code add_facts(const rc_training *training, rc_arena *mem, rc_report *report,
                         rc_error *err)
{
    static const rc_column columns[] = {
        {"n_parameters", "parameters", RC_UNIT_COUNT},
        {"recompute", "recompute setting", RC_UNIT_TEXT},
        {"train_iters", "steps", RC_UNIT_COUNT},
        {"global_batch_size", "samples a step", RC_UNIT_COUNT},
        {"micro_batch_size", "samples a micro-batch", RC_UNIT_COUNT},
        {"seq_length", "tokens a sample", RC_UNIT_COUNT},
        {"n_train_tokens", "tokens in the train split", RC_UNIT_COUNT},
        {"n_train_epochs", "passes over it", RC_UNIT_COUNT},
        {"n_valid_tokens", "tokens in the validation split", RC_UNIT_COUNT},
        {"n_threads", "threads", RC_UNIT_COUNT},
        {"peak_bytes", "predicted peak", RC_UNIT_BYTES},
        {"budget_bytes", "budget", RC_UNIT_BYTES},
        {"order_bytes", "order of the data, beside it", RC_UNIT_BYTES},
    };
    const rc_train_settings *set = &training->set;
    rc_table *table;
    rc_cell *row;
    const char *setting = training->passes.policy->name;
    RC_TRY(rc_table_make(mem, "plan", "Before the first step", columns,
                         sizeof columns / sizeof *columns, &table, err));
    RC_TRY(rc_table_add_row(table, &row, err));
    row[0] = rc_cell_int(training->passes.graph->n_parameters);
    row[1] = rc_cell_text(setting);
    row[2] = rc_cell_int(set->n_steps);
    row[3] = rc_cell_int(set->n_global);
    row[4] = rc_cell_int(set->b);
    row[5] = rc_cell_int(set->s);
    row[6] = rc_cell_int(training->corpus->n_tokens[RC_SPLIT_TRAIN]);
    row[7] = rc_cell_int(training->train->n_epochs);
    row[8] = rc_cell_int(training->corpus->n_tokens[RC_SPLIT_VALID]);
    row[9] = rc_cell_int(set->n_threads);
    row[10] = rc_cell_int(training->passes.cost->peak_bytes);
    if (training->budget_bytes > 0)
        row[11] = rc_cell_int(training->budget_bytes);
    row[12] = rc_cell_int(rc_training_order_bytes(training));
    rc_report_add(report, table, true);
    return RC_OK;
}

const rc_cost *rc_training_cost(const rc_training *training)
{
    return training->passes.cost;
}

rc_code rc_training_report(const rc_training *training, rc_arena *mem, rc_report *report,
                           rc_error *err)
{
    static const rc_column columns[] = {{"category", NULL, RC_UNIT_TEXT},
                                        {"at_peak_bytes", "at the peak", RC_UNIT_BYTES},
                                        {"largest_bytes", "largest", RC_UNIT_BYTES}};
    rc_table *table;
    rc_cell *row;
    RC_TRY(add_facts(training, mem, report, err));
    RC_TRY(rc_table_make(mem, "memory", "Memory by category", columns, 3, &table, err));
    for (int i = 0; i < RC_CATEGORY_COUNT; i++) {
        RC_TRY(rc_table_add_row(table, &row, err));
        row[0] = rc_cell_text(rc_category_name((rc_category)i));
        row[1] = rc_cell_int(training->passes.cost->at_peak[i]);
        row[2] = rc_cell_int(training->passes.cost->largest[i]);
    }
    rc_report_add(report, table, false);
    return RC_OK;
}

rc_code rc_train_result_table(const rc_train_result *result, rc_arena *mem, rc_table **out,
                              rc_error *err)
{
    static const rc_column columns[] = {
        {"iteration", "steps done", RC_UNIT_COUNT},
        {"train_iters", "of", RC_UNIT_COUNT},
        {"is_stopped", "stopped early", RC_UNIT_BOOL},
        {"consumed_samples", "samples consumed", RC_UNIT_COUNT},
        {"first_loss", "first loss", RC_UNIT_REAL},
        {"last_loss", "last loss", RC_UNIT_REAL},
        {"valid_loss", "validation loss", RC_UNIT_REAL},
        {"seconds", "time in steps", RC_UNIT_SECONDS},
        {"tokens_per_second", "tokens a second", RC_UNIT_REAL},
        {"peak_bytes", "predicted peak", RC_UNIT_BYTES},
        {"touched_bytes", "measured in the first step", RC_UNIT_BYTES},
        {"process_peak_bytes", "process at its peak", RC_UNIT_BYTES},
        {"process_before_bytes", "process before the run", RC_UNIT_BYTES},
        {"beside_bytes", "taken beside the account", RC_UNIT_BYTES},
        {"saved_to", "saved to", RC_UNIT_TEXT},
    };
    rc_cell *row;
    RC_TRY(rc_table_make(mem, "result", "Training", columns, sizeof columns / sizeof *columns,
                         out, err));
    RC_TRY(rc_table_add_row(*out, &row, err));
    row[0] = rc_cell_int(result->iteration);
    row[1] = rc_cell_int(result->n_steps);
    row[2] = rc_cell_int(result->is_stopped);
    row[3] = rc_cell_int(result->n_samples);
    row[4] = rc_cell_real(result->first_loss);
    row[5] = rc_cell_real(result->last_loss);
    row[6] = rc_cell_real(result->valid_loss);
    row[7] = rc_cell_real(result->seconds);
    if (result->seconds > 0)
        row[8] = rc_cell_real((double)result->n_tokens / result->seconds);
    row[9] = rc_cell_int(result->peak_bytes);
    row[10] = rc_cell_int(result->touched_bytes);
    row[11] = rc_cell_int(result->process_peak_bytes);
    row[12] = rc_cell_int(result->process_before_bytes);
    row[13] = rc_cell_int(result->process_peak_bytes - result->process_before_bytes -
                          result->touched_bytes);
    row[14] = rc_cell_text(result->saved_to[0] ? result->saved_to : NULL);
    row[10].is_null = result->touched_bytes == 0; /* no step was done */
    for (int i = 11; i <= 13; i++)
        row[i].is_null = result->process_peak_bytes == 0;
    for (int i = 4; i <= 6; i++)
        row[i].is_null = !(row[i].f == row[i].f); /* NAN: never measured */
    return RC_OK;
}
