/* user.c — a program outside this tree, in C11 and in C++17 alike: it includes the installed headers, uses
 * their macros, and links the installed library.
 *
 * gives  exit status 0 when recompute retains less than retaining everything, and a failure is passed up
 */
#include <recompute/recompute.h>

#include <stdio.h>
#include <string.h>

static rc_code retained(const rc_graph *graph, const char *name, rc_arena *mem, int64_t *bytes,
                        rc_error *err)
{
    rc_setting setting;
    rc_policy *policy;
    rc_schedule *schedule;
    if (!rc_setting_parse(name, &setting))
        return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE, "\"%s\" is no setting", name);
    RC_TRY(rc_policy_make(graph, &setting, mem, &policy, err));
    RC_TRY(rc_schedule_make(policy, 1, mem, &schedule, err));
    *bytes = schedule->retained_bytes;
    return RC_OK;
}

static rc_code compare(rc_arena *mem, rc_error *err)
{
    static const char *const words[] = {
        "model.num_layers=2",          "model.hidden_size=64", "model.num_attention_heads=4",
        "model.vocab_size=256",        "model.seq_length=32",  "train.micro_batch_size=1",
        "model.normalization=RMSNorm",
    };
    static const char *const names[] = {"none", "selective/core_attn", "full/uniform/1"};
    rc_inputs inputs;
    rc_config *cfg;
    rc_graph *graph;
    int64_t *bytes = NULL;
    size_t n_room = 0;
    RC_TRY(rc_inputs_read(words, sizeof words / sizeof words[0], mem, &inputs, err));
    RC_TRY(rc_config_make(inputs.at, inputs.n, mem, &cfg, err));
    rc_graph_request request = {cfg, RC_PROFILE_ENGINE, 0, NULL, 0, 0};
    RC_TRY(rc_graph_make(&request, mem, &graph, err));
    for (size_t i = 0; i < 3; i++) {
        RC_TRY(RC_GROW(mem, &bytes, i, &n_room, i + 1, err));
        RC_TRY(retained(graph, names[i], mem, &bytes[i], err));
    }
    if (!(bytes[0] > bytes[1] && bytes[1] > bytes[2]))
        return RC_FAIL(err, RC_E_BUG, RC_NOWHERE, "recompute retains as much as none");
    return retained(graph, "half", mem, &bytes[0], err);
}

int main(void)
{
    rc_error err = {RC_OK, RC_NOWHERE, NULL, ""};
    rc_arena *mem = rc_arena_open();
    rc_code code = mem ? compare(mem, &err) : RC_E_MEMORY;
    bool is_passed_up = code == RC_E_INPUT && strcmp(err.msg, "\"half\" is no setting") == 0;
    if (!is_passed_up)
        fprintf(stderr, "%s %s\n", err.msg, err.raised_at ? err.raised_at : "");
    rc_arena_close(mem);
    return is_passed_up ? 0 : 1;
}
