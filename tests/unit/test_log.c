/* test_log.c — the log reader: message forms, prefixes, broken lines, tracebacks, bounds. */
#include "check.h"

#include <recompute/log.h>

#include <math.h>
#include <string.h>

#define GIB 1073741824.0
#define MIB 1048576.0

typedef struct reading {
    rc_arena *mem;
    rc_log *log;
} reading;

static reading read_pieces(const char *text, size_t n, size_t piece)
{
    reading out = {.mem = rc_arena_open()};
    rc_log_reader *reader;
    assert_non_null(out.mem);
    assert_ok(rc_log_make(out.mem, &out.log, NULL));
    assert_ok(rc_log_open("t.log", RC_LOG_UNKNOWN, out.log, &reader, NULL));
    for (size_t at = 0; at < n; at += piece)
        assert_ok(rc_log_feed(reader, text + at, n - at < piece ? n - at : piece, NULL));
    assert_ok(rc_log_finish(reader, NULL));
    assert_ok(rc_log_verify(out.log, NULL));
    return out;
}

static reading read_text(const char *text)
{
    return read_pieces(text, strlen(text), strlen(text) + 1);
}

static void done(reading *at)
{
    rc_arena_close(at->mem);
}

/* Two printed decimals: equal within half of the last one. */
static void expect_bytes(const char *name, int64_t have, double value, double unit)
{
    double want = value * unit;
    if (value < 0 ? have != RC_LOG_UNKNOWN : fabs((double)have - want) > 1)
        fail_msg("%s is %lld bytes, expected %.0f", name, (long long)have, want);
}

typedef struct size_case {
    const char *name, *text;
    rc_oom_source source;
    int gpu;
    double unit, requested, capacity, allocated, free_, reserved, idle, process, other;
} size_case;

/* -1 where the message does not say. */
static const size_case size_cases[] = {
    {"torch 1.2",
     "RuntimeError: CUDA out of memory. Tried to allocate 8.50 GiB (GPU 0; 31.75 GiB total capacity; "
     "25.50 GiB already allocated; 5.25 GiB free; 0.25 GiB cached)",
     RC_OOM_TORCH, 0, GIB, 8.5, 31.75, 25.5, 5.25, 25.75, 0.25, -1, -1},
    {"torch 1.8",
     "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 3; 1024.00 MiB total capacity; "
     "900.00 MiB already allocated; 4.00 MiB free; 950.00 MiB reserved in total by PyTorch)",
     RC_OOM_TORCH, 3, MIB, 20, 1024, 900, 4, 950, 50, -1, -1},
    {"torch 2.1",
     "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 172.00 MiB. GPU 1 has a total "
     "capacty of 2048.00 MiB of which 91.50 MiB is free. Including non-PyTorch memory, this process has "
     "1900.00 MiB memory in use. Of the allocated memory 1800.00 MiB is allocated by PyTorch, and 5.25 MiB "
     "is reserved by PyTorch but unallocated.",
     RC_OOM_TORCH, 1, MIB, 172, 2048, 1800, 91.5, 1805.25, 5.25, 1900, -1},
    {"torch 2.6 beside others",
     "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB. GPU 2 has a "
     "total capacity of 40.00 GiB of which 0 bytes is free. Process 7 has 8.00 GiB memory in use. Process "
     "9 has 16.00 GiB memory in use. Including non-PyTorch memory, this process has 16.00 GiB memory in "
     "use. Of the allocated memory 14.00 GiB is allocated by PyTorch, and 0.50 GiB is reserved by PyTorch "
     "but unallocated.",
     RC_OOM_TORCH, 2, GIB, 1, 40, 14, 0, 14.5, 0.5, 16, 24},
    {"in a container",
     "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity "
     "of 80.00 GiB of which 0.25 GiB is free. Process 40112 has 79.50 GiB memory in use. Of the allocated "
     "memory 77.00 GiB is allocated by PyTorch, with 1.00 GiB allocated in private pools (e.g., CUDA Graphs), "
     "and 0.50 GiB is reserved by PyTorch but unallocated.",
     RC_OOM_TORCH, 0, GIB, 1, 80, 77, 0.25, 77.5, 0.5, 79.5, -1},
    {"XPU",
     "torch.OutOfMemoryError: XPU out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 16.00 GiB. "
     "Of the allocated memory 14.00 GiB is allocated by PyTorch, and 0.50 GiB is reserved by PyTorch but unallocated. "
     "Please use `empty_cache` to release all unoccupied cached memory.",
     RC_OOM_TORCH, 1, GIB, 2, 16, 14, -1, 14.5, 0.5, -1, -1},
    {"MLU without a blank",
     "RuntimeError: MLU out of memory. Tried to allocate 2.00 GiB. GPU 4 has a total capacity of 16.00 GiB "
     "of which 1.50 GiBis free. Of the allocated memory 14.00 GiB is allocated by PyTorch, and 0.25 GiB is reserved by "
     "PyTorch but unallocated.",
     RC_OOM_TORCH, 4, GIB, 2, 16, 14, 1.5, 14.25, 0.25, -1, -1},
    {"NPU workspace",
     "RuntimeError: NPU out of memory. NPUWorkspaceAllocator tried to allocate 2.00 GiB(NPU 6; 64.00 GiB total "
     "capacity; 1.00 GiB free)",
     RC_OOM_DEVICE, 6, GIB, 2, 64, -1, 1, -1, -1, -1, -1},
    {"cudaMallocAsync",
     "RuntimeError: Allocation on device 1 would exceed allowed memory. (out of memory)\n"
     "Currently allocated     : 16.50 GiB\nRequested               : 0.25 GiB\nDevice limit            : 22.00 GiB\n"
     "Free (according to CUDA): 0.50 GiB\nPyTorch limit (set by user-supplied memory fraction)\n"
     "                         : 17179869184.00 GiB\n",
     RC_OOM_ASYNC, 1, GIB, 0.25, 22, 16.5, 0.5, -1, -1, -1, -1},
    {"Gaudi",
     "RuntimeError: [Rank:0] FATAL ERROR :: MODULE:PT_DEVMEM Allocation failed for size::2097152 (2)MB",
     RC_OOM_DEVICE, -1, MIB, 2, -1, -1, -1, -1, -1, -1, -1},
    {"cut by a collector", "torch.OutOfMemoryError: CUDA out of memory.", RC_OOM_BARE, -1, GIB,
     -1, -1, -1, -1, -1, -1, -1, -1},
    {"overflown shape",
     "RuntimeError: CUDA out of memory. Tried to allocate more than 1EB memory.",
     RC_OOM_OVERFLOW, -1, GIB, -1, -1, -1, -1, -1, -1, -1, -1},
};

static void log_reads_sizes_of_every_message_form(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof size_cases / sizeof *size_cases; i++) {
        const size_case *want = &size_cases[i];
        reading got = read_text(want->text);
        if (got.log->n_ooms != 1)
            fail_msg("%s: %zu messages instead of one", want->name, got.log->n_ooms);
        const rc_oom *oom = &got.log->ooms[0];
        if (oom->source != want->source || oom->gpu != want->gpu)
            fail_msg("%s: source %d, gpu %d", want->name, (int)oom->source, oom->gpu);
        expect_bytes(want->name, oom->requested_bytes, want->requested, want->unit);
        expect_bytes(want->name, oom->capacity_bytes, want->capacity, want->unit);
        expect_bytes(want->name, oom->allocated_bytes, want->allocated, want->unit);
        expect_bytes(want->name, oom->free_bytes, want->free_, want->unit);
        expect_bytes(want->name, oom->reserved_bytes, want->reserved, want->unit);
        expect_bytes(want->name, oom->idle_bytes, want->idle, want->unit);
        expect_bytes(want->name, oom->process_bytes, want->process, want->unit);
        expect_bytes(want->name, oom->other_bytes, want->other, want->unit);
        done(&got);
    }
}

static void log_reads_a_message_broken_at_every_byte(void **state)
{
    (void)state;
    const char *message = size_cases[2].text;
    size_t n = strlen(message), begin = (size_t)(strstr(message, "Tried") - message);
    for (size_t cut = begin; cut < n; cut++) {
        char text[1024];
        snprintf(text, sizeof text, "%.*s\n%s\n", (int)cut, message, message + cut);
        reading got = read_text(text);
        assert_int_equal(got.log->n_ooms, 1);
        expect_bytes("requested", got.log->ooms[0].requested_bytes, 172, MIB);
        expect_bytes("idle", got.log->ooms[0].idle_bytes, 5.25, MIB);
        expect_bytes("process", got.log->ooms[0].process_bytes, 1900, MIB);
        done(&got);
    }
}

/* However the stream is cut into pieces, the facts are the same. */
static void log_does_not_depend_on_pieces(void **state)
{
    (void)state;
    const char *text =
        "[rank1]:   File \"a/megatron/core/m.py\", line 3, in forward\n[rank1]:     y = f(x)\n"
        "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total "
        "capacity of 8.00 GiB of which 0.50 GiB is free. Of the allocated memory 7.00 GiB is allocated by PyTorch, "
        "and 0.25 GiB is reserved by PyTorch but unallocated.\n";
    for (size_t piece = 1; piece < 40; piece++) {
        reading got = read_pieces(text, strlen(text), piece);
        assert_int_equal(got.log->n_ooms, 1);
        assert_int_equal(got.log->ooms[0].rank, 1);
        assert_int_equal(got.log->ooms[0].phase, RC_JOB_FORWARD);
        assert_int_equal(got.log->ooms[0].where.line, 3);
        assert_int_equal(got.log->n_lines, 3);
        done(&got);
    }
}

static void log_takes_ranks_from_every_prefix(void **state)
{
    (void)state;
    static const struct {
        const char *prefix;
        int rank, local_rank;
    } cases[] = {
        {"[rank3]: ", 3, -1},
        {"[default3]:[rank11]: ", 11, 3},
        {"15: ", 15, -1},
        {" 7: [rank7]: ", 7, -1},
        {"[1,3]<stderr>:", 3, -1},
        {"(Worker[rank=5] pid=123) ", 5, -1},
        {"pretraining/0 [default2]:[rank2]: ", 2, 2},
        {"2025-11-20T14:55:23.123Z [rank4]: ", 4, -1},
        {"[2025-11-20T14:55:23+08:00] [rank6]: ", 6, -1},
        {"\x1b[36m[rank8]:\x1b[0m ", 8, -1},
        {"(WorkerDict pid=348952, ip=10.0.0.1) ", -1, -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[200];
        snprintf(text, sizeof text,
                 "%storch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n",
                 cases[i].prefix);
        reading got = read_text(text);
        assert_int_equal(got.log->n_ooms, 1);
        if (got.log->ooms[0].rank != cases[i].rank ||
            got.log->ooms[0].local_rank != cases[i].local_rank)
            fail_msg("%s: rank %d, local rank %d", cases[i].prefix, got.log->ooms[0].rank,
                     got.log->ooms[0].local_rank);
        done(&got);
    }
}

typedef struct stage_case {
    const char *name;
    const char *frames; /* "PATH NAME CODE|..." */
    rc_job_phase phase;
} stage_case;

static const stage_case phase_cases[] = {
    {"forward inside backward",
     "t.py step loss.backward()|c.py backward outputs = ctx.run_function(*args)|m.py forward y",
     RC_JOB_BACKWARD},
    {"forward inside evaluation", "t.py evaluate out = model(x)|m.py forward y", RC_JOB_EVAL},
    {"flatten inside backward",
     "t.py backward_step x|d.py allreduce_params flat = _flatten_dense_tensors(g)",
     RC_JOB_GRAD_SYNC},
    {"state inside step",
     "t.py train optimizer.step()|torch/optim/adam.py _init_group state['exp_avg'] = torch.zeros_like(p)",
     RC_JOB_OPTIMIZER_INIT},
    {"update inside step",
     "t.py train optimizer.step()|torch/optim/adam.py _multi_tensor_adam x = torch._foreach_sqrt(device_exp_avg_sqs)",
     RC_JOB_OPTIMIZER_STEP},
    {"closure inside step",
     "l.py optimizer_step optimizer.step(closure=c)|l.py closure x|u.py training_step y|u.py forward z",
     RC_JOB_FORWARD},
    {"optimizer inside setup",
     "t.py setup_model_and_optimizer x|d.py initialize_optimizer_states self.optimizer.step()",
     RC_JOB_OPTIMIZER_INIT},
    {"load inside setup",
     "t.py setup_model_and_optimizer x|c.py load_checkpoint optimizer.load_state_dict(s)|o.py load_state_dict x",
     RC_JOB_CHECKPOINT_LOAD},
    {"backward inside a strategy's forward",
     "s.py forward x|u.py training_step self.manual_backward(loss)|torch/_tensor.py backward y",
     RC_JOB_BACKWARD},
    {"capture with its backward",
     "t.py create_cudagraphs x|g.py make_graphed_callables grads = torch.autograd.grad(y)",
     RC_JOB_GRAPH_CAPTURE},
    {"building",
     "c.py main model = llama2_7b()|torch/utils/_device.py __torch_function__ return func()",
     RC_JOB_MODEL_BUILD},
    {"saving", "t.py save_checkpoint_and_time save_checkpoint(|d.py all_gather_object x",
     RC_JOB_CHECKPOINT_SAVE},
    {"no phase at all", "t.py train x|t.py main y", RC_JOB_UNKNOWN},
};

static void log_stage_is_the_outermost_phase(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof phase_cases / sizeof *phase_cases; i++) {
        char text[2048] = "Traceback (most recent call last):\n";
        size_t n = strlen(text);
        for (const char *at = phase_cases[i].frames; *at;) {
            char path[100], name[100];
            size_t n_path = strcspn(at, " "), n_name = strcspn(at + n_path + 1, " ");
            const char *code = at + n_path + 1 + n_name + 1;
            size_t n_code = strcspn(code, "|");
            snprintf(path, sizeof path, "%.*s", (int)n_path, at);
            snprintf(name, sizeof name, "%.*s", (int)n_name, at + n_path + 1);
            n += (size_t)snprintf(text + n, sizeof text - n,
                                  "  File \"%s\", line 7, in %s\n    %.*s\n", path, name,
                                  (int)n_code, code);
            at = code + n_code;
            at += *at == '|';
        }
        snprintf(text + n, sizeof text - n, "torch.OutOfMemoryError: CUDA out of memory.\n");
        reading got = read_text(text);
        assert_int_equal(got.log->n_ooms, 1);
        if (got.log->ooms[0].phase != phase_cases[i].phase)
            fail_msg("%s: %s", phase_cases[i].name, rc_job_phase_name(got.log->ooms[0].phase));
        done(&got);
    }
}

static void log_keeps_peaks_of_every_rank(void **state)
{
    (void)state;
    reading got = read_text(
        "after 5 iterations memory (MB) | allocated: 10.5 | max allocated: 20.25 | reserved: 30.0 | max reserved: 40.0\n"
        "[Rank 2] (after 1 iterations) memory (MB) | allocated: 100.00 | max allocated: 300.00 | reserved: 400.00 | max reserved: "
        "400.00 | total device memory used: 512.50\n"
        "[Rank 2] (after 2 iterations) memory (MB) | allocated: 110.00 | max allocated: 310.00 | reserved: 390.00 | max reserved: 400.00\n"
        "nan iterations: 0 |[Rank 7] (after 1 iterations) memory (GB) | mem-allocated-gigabytes: 1.5 | mem-reserved-gigabytes: 3 | "
        "mem-max-allocated-gigabytes: 2.5 | mem-max-reserved-gigabytes: 3.5 | mem-alloc-retires: 2\n");
    assert_int_equal(got.log->n_ranks, 3);
    expect_bytes("rank 0 peak", got.log->ranks[0].max_allocated_bytes, 20.25, MIB);
    assert_int_equal(got.log->ranks[0].rank, 0);
    assert_int_equal(got.log->ranks[0].iteration, 5);
    assert_int_equal(got.log->ranks[1].rank, 2);
    expect_bytes("rank 2 live", got.log->ranks[1].allocated_bytes, 110, MIB);
    expect_bytes("rank 2 peak", got.log->ranks[1].max_allocated_bytes, 310, MIB);
    expect_bytes("rank 2 device", got.log->ranks[1].device_bytes, 512.5, MIB);
    assert_int_equal(got.log->ranks[2].rank, 7);
    expect_bytes("rank 7 peak", got.log->ranks[2].max_allocated_bytes, 2.5, 1e9);
    assert_int_equal(got.log->ranks[2].alloc_retries, 2);
    done(&got);
}

static void log_reads_glued_iteration_lines(void **state)
{
    (void)state;
    reading got = read_text(
        " [2025-01-01 00:00:00] iteration        3/      10 | consumed samples:           96 | elapsed time per iteration (ms): 250.5 | "
        "learning rate: 1.5E-04 | global batch size:    32 | lm loss: 2.25E+00 | loss scale: 1.0 | grad norm: 0.75 | number of skipped "
        "iterations:   1 | number of nan iterations:   2 |Number of parameters in most loaded shard in billions:  6.98\n"
        " iteration        4/      10 | elapsed time per iteration (ms): 300.5 | learning rate: 0.000E+00 | loss scale: 1.0 | grad norm: nan | "
        "number of skipped iterations:   0 | number of nan iterations:   1 |\n");
    const rc_log_train *train = &got.log->train;
    assert_int_equal(train->n_lines, 2);
    assert_int_equal(train->first_iteration, 3);
    assert_int_equal(train->last_iteration, 4);
    assert_int_equal(train->n_iterations, 10);
    assert_true(fabs(train->step_ms - 300.5) < 1e-9);
    assert_true(fabs(train->loss - 2.25) < 1e-9);
    assert_int_equal(train->skipped, 1);
    assert_int_equal(train->nan, 3);
    assert_int_equal(train->n_without_loss, 1);
    assert_int_equal(train->n_nan_grad, 1);
    assert_true(fabs(got.log->estimate.shard_params_billion - 6.98) < 1e-9);
    done(&got);
}

static void log_names_the_refused_rule(void **state)
{
    (void)state;
    reading got = read_text(
        "AssertionError: disable moe in recompute_modules when enabling overlap_moe_expert_parallel_comm\n");
    assert_int_equal(got.log->n_refusals, 1);
    assert_string_equal(got.log->refusals[0].rule, "ep-overlap-excludes-moe-recompute");
    done(&got);
}

static void log_tells_hints_from_settings(void **state)
{
    (void)state;
    reading got = read_text(
        "If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True "
        "to avoid fragmentation.\n# export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n");
    assert_false(got.log->is_expandable_on);
    done(&got);
    got = read_text(
        "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True,max_split_size_mb:256\n");
    assert_true(got.log->is_expandable_on);
    done(&got);
}

static void log_words_alone_are_no_failure(void **state)
{
    (void)state;
    reading got = read_text(
        "INFO if you run out of memory, lower the batch size\nexcept torch.cuda.OutOfMemoryError:\n"
        "    raise RuntimeError(\"out of memory\")\n");
    assert_int_equal(got.log->n_ooms, 0);
    done(&got);
}

/* Ten thousand failures and one endless line: the kept facts stay within their bounds. */
static void log_stays_bounded(void **state)
{
    (void)state;
    enum { N = 10000, LONG = 3 << 20 };
    char *text = malloc(LONG);
    assert_non_null(text);
    size_t n = 0;
    for (int i = 0; i < N; i++)
        n += (size_t)snprintf(
            text + n, LONG - n,
            "[rank%d]: CUDA out of memory. Tried to allocate %d.00 MiB (GPU 0; 8.00 GiB total capacity; "
            "7.00 GiB already allocated; 1.00 MiB free; 7.50 GiB reserved in total by PyTorch)\n",
            i, i + 1);
    reading got = read_pieces(text, n, 65536);
    assert_int_equal(got.log->n_ooms, RC_LOG_MAX_OOMS);
    assert_int_equal(got.log->n_ooms_seen, N);
    assert_int_equal(got.log->n_lines, N);
    done(&got);
    memset(text, 'x', LONG);
    memcpy(text + LONG / 2, "CUDA out of memory. Tried to allocate 3.00 GiB. ", 48);
    got = read_pieces(text, LONG, 4096);
    assert_int_equal(got.log->n_ooms, 1);
    assert_true(rc_arena_used_bytes(got.mem) < (8 << 20));
    done(&got);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(log_reads_sizes_of_every_message_form),
        cmocka_unit_test(log_reads_a_message_broken_at_every_byte),
        cmocka_unit_test(log_does_not_depend_on_pieces),
        cmocka_unit_test(log_takes_ranks_from_every_prefix),
        cmocka_unit_test(log_stage_is_the_outermost_phase),
        cmocka_unit_test(log_keeps_peaks_of_every_rank),
        cmocka_unit_test(log_reads_glued_iteration_lines),
        cmocka_unit_test(log_names_the_refused_rule),
        cmocka_unit_test(log_tells_hints_from_settings),
        cmocka_unit_test(log_words_alone_are_no_failure),
        cmocka_unit_test(log_stays_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
