/* test_args.c — argument lines, launch scripts, and the arguments in a log. */
#include "read_cases.h"

#include "args/flags.h"

static void args_reads_a_line(void **state)
{
    (void)state;
    expect_tree(
        rc_args_read,
        "--num-layers 24 --bf16 --recompute-modules core_attn mlp \\\n"
        "  --lr=3e-4 --split 969,30,1 --x -1\n",
        "{megatron_args: {num_layers: 24, bf16: T, recompute_modules: ['core_attn', 'mlp'],"
        " lr: 0.0003f, split: '969,30,1', x: -1}}");
    expect_tree(rc_args_read, "--a 1 --b\n--a 2\n", "{megatron_args: {b: T, a: 2}}");
    expect_refused(
        rc_args_read, "--moe-layer-freq ([0]*1+[1]*3)\n", 1, "^",
        "--moe-layer-freq needs a value: a number or a list"); /* the shell wants quotes */
    expect_tree(rc_args_read, "--moe-layer-freq \"([0]*1+[1]*3)\" --e ''\n",
                "{megatron_args: {moe_layer_freq: [0, 1, 1, 1], e: ''}}");
}

static void args_reads_a_script(void **state)
{
    (void)state;
    expect_tree(
        rc_args_read,
        "#!/bin/bash\n"
        "# a comment with --num-layers 99\n"
        "export CUDA_DEVICE_MAX_CONNECTIONS=1\n"
        "TP=${TP:-4}\n"
        "PP=$1\n"
        "WORLD=$((TP * 2 + 1))\n"
        "MODEL_ARGS=(\n"
        "    --num-layers 32   # layers\n"
        "    --hidden-size 4096\n"
        ")\n"
        "MODEL_ARGS+=(--swiglu)\n"
        "OTHER=\"--lr 1e-4 --seed ${SEED-7}\"\n"
        "NCCL_DEBUG=WARN torchrun --nproc_per_node 8 pretrain_gpt.py \\\n"
        "    ${MODEL_ARGS[@]} $OTHER --tensor-model-parallel-size $TP \\\n"
        "    --pipeline-model-parallel-size $PP --world $WORLD --host \"$(hostname) x\" \\\n"
        "    2>&1 | tee log.txt\n",
        "{megatron_args: {num_layers: 32, hidden_size: 4096, swiglu: T, lr: 0.0001f, seed: 7,"
        " tensor_model_parallel_size: 4, pipeline_model_parallel_size: '$1', world: 9,"
        " host: '$(hostname) x'}, env: {CUDA_DEVICE_MAX_CONNECTIONS: '1', NCCL_DEBUG: "
        "'WARN'}}");
}

static void args_follows_quotes_and_defaults(void **state)
{
    (void)state;
    expect_tree(rc_args_read,
                "A='x y'\nB=(1 \"2 3\")\n--a \"$A\" --b \"${B[@]}\" --c ${C:-${D:-5}} --d "
                "\"${E:+no}\" --f ${A:+yes}\n",
                "{megatron_args: {a: 'x y', b: [1, '2 3'], c: 5, d: '', f: 'yes'}}");
    expect_tree(rc_args_read, "--a \\$X --b \"\\\"q\\\"\" --c 'a'b\"c\"\n",
                "{megatron_args: {a: '$X', b: '\"q\"', c: 'abc'}}");
}

static void args_adds_to_strings_and_arrays(void **state)
{
    (void)state;
    expect_tree(
        rc_args_read,
        "A=()\nA+=x\nB=1\nB+=2\nB+=\nC=(1)\nC+=(2 3)\n--a \"${A[@]}\" --b $B --c ${C[@]}\n",
        "{megatron_args: {a: 'x', b: 12, c: [1, 2, 3]}}");
}

static void args_reads_scripts_inside_words_and_fragments(void **state)
{
    (void)state;
    expect_tree(rc_args_read,
                "srun --nodes 4 bash -c \"python pretrain_gpt.py --num-layers 8\"\n",
                "{megatron_args: {num_layers: 8}}");
    expect_tree(rc_args_read, "mkdir --parents x\nMODEL_ARGS=(--num-layers 3)\n",
                "{megatron_args: {num_layers: 3}}");
    expect_tree(rc_args_read, "MODEL_ARGS=(--num-layers 3)\nLR=\"--lr 2\"\n",
                "{megatron_args: {num_layers: 3, lr: 2}}");
    expect_tree(rc_args_read,
                "torchrun train.py --recipe llama model.num_layers=4 '+model.m=[a,b]'\n",
                "{model: {num_layers: 4, m: ['a', 'b']}, megatron_args: {recipe: 'llama'}}");
}

/* Quoted [*] is one word: the script that a shell is given. */
static void args_joins_an_array_in_a_word(void **state)
{
    (void)state;
    expect_tree(
        rc_args_read,
        "A=(--num-layers 8 --hidden-size 64)\nsrun bash -c \"python p.py ${A[*]} --bf16\"\n",
        "{megatron_args: {num_layers: 8, hidden_size: 64, bf16: T}}");
}

static void args_marks_what_only_running_would_tell(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    rc_doc *doc;
    static const char text[] = "N=2\n"
                               "if [ \"$BIG\" = 1 ]; then N=4; fi\n"
                               "M=2\n"
                               "[ -n \"$X\" ] && M=3\n"
                               "if [ -f x ]; then K=1; else K=2; fi\n"
                               "if [ -f x ]; then S=1; else S=1; fi\n"
                               "--n $N --m $M --k $K --s $S --t `date` --u ${HOME}/x\n";
    assert_int_equal(rc_args_read("x", text, sizeof text - 1, mem, &doc, NULL), RC_OK);
    static const struct {
        const char *name;
        bool is_unknown;
    } cases[] = {{"n", true}, {"m", true}, {"k", true}, {"s", false}, {"t", true}, {"u", true}};
    const rc_doc *args = rc_doc_find(doc, "megatron_args");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const rc_doc *value = rc_doc_find(args, cases[i].name);
        assert_non_null(value);
        assert_int_equal(value->tag && strcmp(value->tag, "?") == 0, cases[i].is_unknown);
    }
    rc_arena_close(mem);
}

/* What a script takes as its own arguments stands in for nothing that it says itself. */
static void args_follows_branches_that_the_text_decides(void **state)
{
    (void)state;
    expect_tree(
        rc_args_read,
        "SIZE=${SIZE:-8b}; TP=2; AC=none\n"
        "if [ $SIZE = 70b ]; then L=80; elif [[ \"$SIZE\" == 8* && $TP -gt 1 ]]; then\n"
        "  L=32\n"
        "  [ $TP -ge 4 ] && L=99 || H=4096\n"
        "else L=1; fi\n"
        "case $AC in\n"
        "  full) R='--recompute-granularity full' ;;\n"
        "  sel|none)\n"
        "    R=\"\" ;;\n"
        "  *) R=--x ;;\n"
        "esac\n"
        "if ! test -z $AC; then S=--sequence-parallel; fi\n"
        "if [ -z \"\" ] && false; then S=--no; torchrun b.py --a 1 --b 2 --c 3 --d 4; fi\n"
        "while [ $# -gt 0 ]; do case $1 in --tp) TP=$2; shift ;; esac; done\n"
        "torchrun a.py --num-layers $L --hidden-size $H $R $S --tp $TP\n",
        "{megatron_args: {num_layers: 32, hidden_size: 4096, sequence_parallel: T, tp: 2}}");
    expect_tree(
        rc_args_read,
        "A=1\ncase x in x) A=2;; *) A=3;; esac\ncase $Y in y) A=4;; esac\n--a $A --b 1\n",
        "{megatron_args: {a: '4', b: 1}}");
}

static void args_reads_here_documents(void **state)
{
    (void)state;
    expect_tree(rc_args_read,
                "TP=4\n"
                "cat > job.sh <<-EOT\n"
                "\tN=8\n"
                "\tsrun pretrain_gpt.py --num-layers \\$N --bf16 \\\n"
                "\t  --tensor-model-parallel-size ${TP}\n"
                "\tEOT\n"
                "sbatch job.sh\n",
                "{megatron_args: {num_layers: 8, bf16: T, tensor_model_parallel_size: 4}}");
    expect_tree(rc_args_read,
                "sbatch << 'END' > out\nL=3\npython p.py --num-layers $L # \\\nEND\nL=5\n",
                "{megatron_args: {num_layers: 3}}");
    expect_tree(rc_args_read,
                "cat <<EOF\nusage: don't run p.py --x\nEOF\npython p.py --num-layers 4\n",
                "{megatron_args: {num_layers: 4}}");
    expect_tree(rc_args_read, "python - <<A <<B; --a 1\n'\nA\n\"\nB\n--b 2 `# note` --c 3\n",
                "{megatron_args: {a: 1, b: 2, c: 3}}");
}

/* A part of a line that is known only when the script runs leaves the rest known. */
static void args_keeps_what_stands_beside_the_unknown(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    rc_doc *doc;
    static const char text[] = "D=\"--mock-data\"\n"
                               "[ -d $DATA ] && D=\"--data-path $DATA/x\"\n"
                               "OPTS=\"$D --num-layers 4 --lr $LR --hidden-size 64\"\n"
                               "[ -d $DATA ] && OPTS=\"$OPTS --seed 3\"\n"
                               "CMD=\"torchrun p.py $OPTS --seq-length 8\"\n"
                               "eval $CMD\n";
    assert_int_equal(rc_args_read("x", text, sizeof text - 1, mem, &doc, NULL), RC_OK);
    static const struct {
        const char *name;
        bool is_unknown;
    } cases[] = {{"num_layers", false}, {"hidden_size", false},
                 {"seq_length", false}, {"seed", false}, /* an addition is read, as += is */
                 {"data_path", true},   {"lr", true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const rc_doc *value = rc_doc_find(rc_doc_find(doc, "megatron_args"), cases[i].name);
        assert_non_null(value);
        assert_int_equal(value->tag && strcmp(value->tag, "?") == 0, cases[i].is_unknown);
    }
    rc_arena_close(mem);
}

static void args_refuses_what_the_parser_stops_at(void **state)
{
    (void)state;
    expect_refused(rc_args_read, "--num-layers 4 --swiglu true\n", 1,
                   /* */ "                        ^",
                   "--swiglu is a switch and takes no value");
    expect_refused(rc_args_read, "--swiglu=1\n", 1,
                   /* */ "         ^", "leave out =1");
    expect_refused(rc_args_read, "--seed 1 \\\n  2\n", 2,
                   /* */ "  ^", "--seed takes one value; 2 is one too many");
    expect_refused(rc_args_read, "--lr 1e-4x\n", 1,
                   /* */ "     ^", "--lr must be a number, not \"1e-4x\"");
    expect_refused(rc_args_read, "--seed 1 -bf16\n", 1,
                   /* */ "         ^", "-bf16 is no argument: they begin with two dashes");
    expect_refused(rc_args_read, "--hidden-size = 8\n", 1,
                   /* */ "              ^", "must be a whole number, not \"=\"");
    expect_refused(rc_args_read, "p.py \\ \n --seed 1\n", 1,
                   /* */ "     ^", "white space behind this backslash");
    expect_refused(rc_args_read, "--seed 1.5\n", 1,
                   /* */ "       ^", "--seed must be a whole number");
    expect_tree(rc_args_read, "--bf16 \"$@\" --seed 1 $EXTRA --own $(date) x --min-lr -1\n",
                "{megatron_args: {bf16: T, seed: 1, own: '$(date)', min_lr: -1}}");
}

static void flags_stand_in_order_and_are_found(void **state)
{
    (void)state;
    for (size_t i = 0; i < rc_flag_count(); i++) {
        const char *name = rc_flag_at(i)->name;
        assert_ptr_equal(rc_flag_find(name, strlen(name)), rc_flag_at(i));
        if (i > 0)
            assert_true(strcmp(rc_flag_at(i - 1)->name, name) < 0);
    }
    assert_null(rc_flag_find("num-layer", 9));
    assert_null(rc_flag_find("num_layers", 10));
    static const struct {
        const char *typed, *meant;
    } cases[] = {{"num_layers", "num-layers"},
                 {"recompute-gran", "recompute-granularity"}, /* the only one that begins so */
                 {"moe-router", NULL},                        /* many do */
                 {"tokenizer-typ", "tokenizer-type"},
                 {"use-te", NULL}, /* of trainers of their own: too little of a longer name */
                 {"lrr", NULL},
                 {"something-of-ones-own", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const rc_flag *nearest = rc_flag_nearest(cases[i].typed);
        assert_string_equal(nearest ? nearest->name : "", cases[i].meant ? cases[i].meant : "");
    }
}

static void args_reads_the_forms_of_example_scripts(void **state)
{
    (void)state;
    expect_tree(
        rc_args_read,
        "GPUS=2\n"
        "NNODES=${SLURM_NNODES:-\"1\"}\n"
        "WORLD_SIZE=$(($GPUS*$NNODES))\n"
        "PATH_OF=${1:-\"ckpt/x\"}\n"
        "mkdir -p \"$(dirname \"$PATH_OF\")\"\n"
        "DTYPE=\"fp8\"\n"
        "DTYPE_ARGS=()\n"
        "if [[ \"$DTYPE\" == \"fp8\" ]]; then\n"
        "    DTYPE_ARGS+=(\n"
        "        \"--fp8-format hybrid\"\n"
        "        \"--fp8-param-gather\"\n"
        "    )\n"
        "fi\n"
        "LOG_ARGS=(\n"
        "  #  --log-interval 1 \\\n"
        "    --eval-iters 10 \\\n"
        "    #--save $PATH_OF \\\n"
        "    --load \"$PATH_OF\" \\\n"
        ")\n"
        "declare -a MORE=(--lr 1)\n"
        "function run() {\n"
        "  torchrun ${DISTRIBUTED_ARGS[@]} \"pretrain_gpt.py\" ${DTYPE_ARGS[@]} \"${LOG_ARGS[@]}\" \\\n"
        "    ${MORE[*]} --world-size $WORLD_SIZE &> out.txt\n"
        "}\n"
        "set +x\n",
        "{megatron_args: {fp8_format: 'hybrid', fp8_param_gather: T, eval_iters: 10,"
        " load: 'ckpt/x', lr: 1, world_size: 2}}");
}

static void args_point_to_where_the_value_was_written(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    rc_doc *doc;
    static const char text[] = "A=(\n"
                               "  --num-layers 32\n" /* 16: the value */
                               ")\n"
                               "L=12\n"
                               "python p.py ${A[@]} --lr=3 --x $L\n";
    assert_int_equal(rc_args_read("x", text, sizeof text - 1, mem, &doc, NULL), RC_OK);
    const rc_doc *layers = rc_doc_find_path(doc, "megatron_args.num_layers");
    assert_int_equal(layers->where.line, 2);
    assert_int_equal(layers->where.col, 16);
    assert_int_equal(layers->where.n_cols, 2);
    assert_int_equal(layers->key_where.col, 3);
    assert_int_equal(layers->key_where.n_cols, 12);
    const rc_doc *lr = rc_doc_find_path(doc, "megatron_args.lr");
    assert_int_equal(lr->where.line, 5);
    assert_int_equal(lr->where.col, 26);
    const rc_doc *x = rc_doc_find_path(doc, "megatron_args.x");
    assert_int_equal(x->where.line, 4);
    assert_int_equal(x->where.col, 3);
    rc_arena_close(mem);
}

static void args_refuses_with_position(void **state)
{
    (void)state;
    expect_refused(rc_args_read, "--a 1\n--b 'x\n", 2,
                   /* */ "    ^", "this quote is not closed");
    expect_refused(rc_args_read, "A=(--x 1\n", 1,
                   /* */ "  ^", "this array has no closing )");
    expect_refused(rc_args_read, "--a ${X\n", 1,
                   /* */ "    ^", "this ${ has no closing }");
    expect_refused(rc_args_read, "--a $(ls\n", 1,
                   /* */ "    ^", "this $( has no closing )");
    expect_refused(rc_args_read, "hello world\n", 1, "^", "no arguments");
    expect_refused_bytes(rc_args_read, "--a b\0c", 7, 1,
                         /* */ "     ^", "a NUL byte");
}

static void args_bounds_what_a_script_expands_to(void **state)
{
    (void)state;
    char text[4096] = "A=aaaaaaaaaaaaaaaa\n";
    for (int i = 0; i < 60; i++)
        strcat(text, "A=$A$A\n");
    strcat(text, "--x $A\n");
    rc_arena *mem = rc_arena_open();
    rc_doc *doc;
    rc_error err = {0};
    assert_int_equal(rc_args_read("x", text, strlen(text), mem, &doc, &err), RC_E_RANGE);
    assert_non_null(strstr(err.msg, "more than 8 MiB of text"));
    assert_int_equal(err.where.line, 1); /* where the text it was adding was written */
    rc_arena_close(mem);
}

static void dump_reads_the_arguments_of_a_log(void **state)
{
    (void)state;
    expect_tree(
        rc_dump_read,
        "using world size: 8\n"
        "------------------------ arguments ------------------------\n"
        "  accumulate_allreduce_grads_in_fp32 .............. True\n"
        "  recompute_granularity ........................... full\r\n"
        "  recompute_modules ............................... ['core_attn', 'mlp']\n"
        "  recompute_method ................................ None\n"
        "  lr .............................................. 0.0003\n"
        "  attention_backend ............................... AttnBackend.auto\n"
        "  cuda_graph_scope ................................ [<CudaGraphScope.attn: 2>]\n"
        "  params_dtype .................................... torch.bfloat16\n"
        "  data_path ....................................... ['/a b/c']\n"
        "  an_argument_whose_name_is_longer_than_the_column  5\n"
        "-------------------- end of arguments ---------------------\n"
        "loading ..... data\n",
        "{megatron_args: {accumulate_allreduce_grads_in_fp32: T, recompute_granularity: 'full',"
        " recompute_modules: ['core_attn', 'mlp'], recompute_method: null, lr: 0.0003f,"
        " attention_backend: 'AttnBackend.auto', cuda_graph_scope: ['attn'],"
        " params_dtype: 'torch.bfloat16', data_path: ['/a b/c'],"
        " an_argument_whose_name_is_longer_than_the_column: 5}}");
    expect_tree(
        rc_dump_read,
        "12: 2025-01-01 10:00:00 [rank0]:   num_layers ............................ 24\n"
        "12: something else .... here\n"
        "(Worker pid=1)   bf16 .................................. True\x1b[0m\n",
        "{megatron_args: {num_layers: 24, bf16: T}}");
}

static void dump_overlooks_bytes_that_are_no_text(void **state)
{
    (void)state;
    static const char text[] = "\xFF\0\n  num_layers ............................ 24\n";
    rc_arena *mem = rc_arena_open();
    rc_doc *doc;
    assert_int_equal(rc_dump_read("x", text, sizeof text - 1, mem, &doc, NULL), RC_OK);
    const rc_doc *layers = rc_doc_find_path(doc, "megatron_args.num_layers");
    assert_int_equal(layers->i, 24);
    assert_int_equal(layers->where.line, 2);
    assert_int_equal(layers->where.col, 43);
    rc_arena_close(mem);
    expect_refused(rc_dump_read, "nothing\n", 1, "^", "no arguments");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(args_reads_a_line),
        cmocka_unit_test(args_reads_a_script),
        cmocka_unit_test(args_follows_quotes_and_defaults),
        cmocka_unit_test(args_joins_an_array_in_a_word),
        cmocka_unit_test(args_adds_to_strings_and_arrays),
        cmocka_unit_test(args_reads_scripts_inside_words_and_fragments),
        cmocka_unit_test(args_marks_what_only_running_would_tell),
        cmocka_unit_test(args_follows_branches_that_the_text_decides),
        cmocka_unit_test(args_reads_here_documents),
        cmocka_unit_test(args_keeps_what_stands_beside_the_unknown),
        cmocka_unit_test(args_refuses_what_the_parser_stops_at),
        cmocka_unit_test(flags_stand_in_order_and_are_found),
        cmocka_unit_test(args_reads_the_forms_of_example_scripts),
        cmocka_unit_test(args_point_to_where_the_value_was_written),
        cmocka_unit_test(args_refuses_with_position),
        cmocka_unit_test(args_bounds_what_a_script_expands_to),
        cmocka_unit_test(dump_reads_the_arguments_of_a_log),
        cmocka_unit_test(dump_overlooks_bytes_that_are_no_text),
    };
    return cmocka_run_group_tests_name("args", tests, NULL, NULL);
}
