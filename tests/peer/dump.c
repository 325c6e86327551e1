/* dump.c — what the comparison with PyTorch reads: `peer_dump train|valid|step CONFIG.yaml FOLDER`.
 *
 * train, valid  tokens and targets of all samples in order, as FOLDER/samples.safetensors
 * step          starts from the weights that the config names, runs the first micro-batch and
 *               writes loss, logits and every gradient to FOLDER/step.safetensors
 */
#include "train/training.h"

#include <recompute/read.h>

#include <stdio.h>
#include <string.h>

static rc_code read_config(const char *path, rc_arena *mem, rc_config **cfg, rc_error *err)
{
    rc_doc *doc;
    RC_TRY(rc_doc_read(path, mem, &doc, err));
    rc_input input = {doc, RC_FROM_FILE};
    RC_TRY(rc_config_make(&input, 1, mem, cfg, err));
    return rc_train_refuse_unknown(*cfg, err);
}

static rc_code write_file(const char *folder, const char *name, const rc_file_tensor *tensors,
                          size_t n, rc_arena *mem, rc_error *err)
{
    const char *path;
    rc_file_content content = {tensors, n, NULL, 0};
    RC_TRY(rc_arena_printf(mem, &path, err, "%s/%s", folder, name));
    return rc_safetensors_write(path, &content, mem, err);
}

/* Samples [0, n) of a dataset in order. */
static rc_code dump_data(const rc_training *training, const rc_dataset *dataset, int64_t n,
                         const char *folder, rc_error *err)
{
    int64_t s = training->set.s;
    int32_t *tokens, *targets;
    RC_TRY(RC_NEW(training->mem, &tokens, n * s, err));
    RC_TRY(RC_NEW(training->mem, &targets, n * s, err));
    for (int64_t i = 0; i < n; i++)
        RC_TRY(rc_dataset_sample(dataset, i, tokens + i * s, targets + i * s, err));
    rc_file_tensor tensors[] = {
        {.name = "tokens", .dtype = RC_FILE_I32, .n_dims = 2, .dims = {n, s}, .at = tokens},
        {.name = "targets", .dtype = RC_FILE_I32, .n_dims = 2, .dims = {n, s}, .at = targets},
    };
    return write_file(folder, "samples.safetensors", tensors, 2, training->mem, err);
}

static rc_code open_run(rc_training *training, rc_error *err)
{
    rc_run_options options = {.seed = 1, .n_micro_batches = 1};
    RC_TRY(rc_run_open(training->passes.schedule, &options, &training->run, err));
    RC_TRY(rc_training_list_weights(training, err));
    return rc_weights_start_from(training->cfg->pretrained_checkpoint, training->weights,
                                 training->n_weights, training->mem, err);
}

static rc_code dump_step(rc_training *training, const char *folder, rc_error *err)
{
    const rc_train_settings *set = &training->set;
    rc_file_tensor *tensors;
    int n;
    RC_TRY(open_run(training, err));
    for (int64_t i = 0; i < set->b; i++)
        RC_TRY(rc_dataset_sample(training->train, i, training->tokens + i * set->s,
                                 training->targets + i * set->s, err));
    double loss[2];
    rc_batch batch = {.tokens = training->tokens, .targets = training->targets};
    RC_TRY(rc_run_eval(training->run, &batch, &loss[0], err));
    const void *logits = rc_run_logits(training->run);
    size_t n_logits = (size_t)(set->b * set->s * training->passes.graph->dims.W);
    float *kept;
    RC_TRY(RC_NEW(training->mem, &kept, n_logits, err));
    memcpy(kept, logits, n_logits * sizeof *kept);
    RC_TRY(rc_run_micro(training->run, &batch, &loss[1], err));
    const rc_run_param *params = rc_run_params(training->run, &n);
    RC_TRY(RC_NEW(training->mem, &tensors, n + 2, err));
    for (int i = 0; i < n; i++) {
        tensors[i] = (rc_file_tensor){.name = training->weights[i].name,
                                      .dtype = RC_FILE_F32,
                                      .n_dims = training->weights[i].n_dims,
                                      .at = params[i].grad};
        memcpy(tensors[i].dims, training->weights[i].dims, sizeof training->weights[i].dims);
    }
    tensors[n] = (rc_file_tensor){.name = "logits",
                                  .dtype = RC_FILE_F32,
                                  .n_dims = 2,
                                  .dims = {set->b * set->s, training->passes.graph->dims.W},
                                  .at = kept};
    tensors[n + 1] = (rc_file_tensor){
        .name = "loss", .dtype = RC_FILE_F64, .n_dims = 1, .dims = {2}, .at = loss};
    return write_file(folder, "step.safetensors", tensors, (size_t)n + 2, training->mem, err);
}

static rc_code dump(char **argv, rc_arena *mem, rc_error *err)
{
    rc_config *cfg;
    rc_training *training;
    RC_TRY(read_config(argv[2], mem, &cfg, err));
    RC_TRY(rc_training_open(cfg, mem, &training, err));
    bool is_valid = strcmp(argv[1], "valid") == 0;
    const rc_dataset *dataset = is_valid ? training->valid : training->train;
    rc_code code = strcmp(argv[1], "step") == 0
                       ? dump_step(training, argv[3], err)
                       : dump_data(training, dataset, dataset->n_samples, argv[3], err);
    rc_training_close(training);
    return code;
}

int main(int argc, char **argv)
{
    rc_error err = {0};
    rc_arena *mem = rc_arena_open();
    if (argc != 4 || !mem) {
        fprintf(stderr, "usage: peer_dump train|valid|step CONFIG.yaml FOLDER\n");
        return 2;
    }
    rc_code code = dump(argv, mem, &err);
    if (code != RC_OK)
        fprintf(stderr, "peer_dump: %s:%d: %s\n", err.where.file ? err.where.file : "",
                err.where.line, err.msg);
    rc_arena_close(mem);
    return code == RC_OK ? 0 : 1;
}
