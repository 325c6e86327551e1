/* cases.c — the shapes every op is tested on: odd sizes, views, groups, every kind. */
#include "operands.h"

#define CASE(NAME, OP) .name = (NAME), .kind = RC_OP_##OP, .attr =
#define NORM(N, GROUPS, H)                                                                     \
    {                                                                                          \
        .n = (N), .groups = (GROUPS), .h = (H), .eps = 1e-5                                    \
    }
#define NORM_AROUND_0(N, GROUPS, H)                                                            \
    {                                                                                          \
        .n = (N), .groups = (GROUPS), .h = (H), .eps = 1e-5, .w_shift = 1                      \
    }
#define LINEAR(N, IN, OUT)                                                                     \
    {                                                                                          \
        .n = (N), .in = (IN), .out = (OUT)                                                     \
    }
#define HEADS(S, B, A, G, D) .s = (S), .b = (B), .n = (S) * (B), .a = (A), .g = (G), .d = (D)
#define ROPE(S, B, GROUPS, D, ROTARY)                                                          \
    {                                                                                          \
        .s = (S), .b = (B), .n = (S) * (B), .groups = (GROUPS), .d = (D),                      \
        .rotary_dim = (ROTARY), .rotary_base = 10000                                           \
    }
#define SCALED_ROPE(...)                                                                       \
    {                                                                                          \
        .s = 75, .b = 2, .n = 150, .groups = 3, .d = 16, .rotary_dim = 16, .rotary_base = 300, \
        .rope_scaling = {                                                                      \
            __VA_ARGS__                                                                        \
        }                                                                                      \
    }
#define ATTENTION(S, B, A, G, D)                                                               \
    HEADS(S, B, A, G, D), .scale = 0.3, .is_causal = true, .random_id = 5
#define ACT(KIND, GATED, N, F)                                                                 \
    {                                                                                          \
        .n = (N), .f = (F), .act = RC_ACT_##KIND, .is_gated = (GATED)                          \
    }

const op_case op_cases[] = {
    {CASE("tokens", embedding){.n = 36, .s = 12, .b = 3, .h = 70, .V = 17}, .absent = 4},
    {CASE("positions", embedding){.n = 36, .s = 12, .b = 3, .h = 70, .V = 17}, .gap = 3},
    {CASE("one", embedding){.n = 1, .s = 1, .b = 1, .h = 1, .V = 2}},

    {CASE("odd", layernorm) NORM(37, 1, 51)},
    {CASE("view", layernorm) NORM(70, 1, 128), .gap = 9},
    {CASE("no bias", layernorm) NORM(33, 1, 65), .absent = 4},
    {CASE("rows in every chunk", layernorm) NORM(96, 1, 40)},
    {CASE("one", layernorm) NORM(1, 1, 3)},

    {CASE("odd", rmsnorm) NORM(37, 1, 51)},
    {CASE("heads", rmsnorm) NORM(29, 6, 24), .gap = 11},
    {CASE("rows in every chunk", rmsnorm) NORM(64, 1, 40)},
    {CASE("one", rmsnorm) NORM(1, 1, 3)},

    {CASE("odd", linear) LINEAR(37, 51, 29)},
    {CASE("view", linear) LINEAR(64, 48, 80), .gap = 16},
    {CASE("odd view, no bias", linear) LINEAR(45, 33, 67), .gap = 5, .absent = 4},
    {CASE("one row", linear) LINEAR(1, 130, 7)},
    {CASE("one column", linear) LINEAR(70, 1, 1)},
    {CASE("long", linear) LINEAR(600, 20, 200)},
    {CASE("deep", linear) LINEAR(130, 700, 65)},

    {CASE("halves", rope) ROPE(70, 2, 4, 12, 12), .gap = 5},
    {CASE("part", rope) ROPE(9, 3, 2, 11, 6)},
    {CASE("interleaved", rope){.s = 131,
                               .b = 1,
                               .n = 131,
                               .groups = 3,
                               .d = 16,
                               .rotary_dim = 16,
                               .rotary_base = 500,
                               .is_rotary_interleaved = true}},

    {CASE("blocks", attention){ATTENTION(128, 1, 2, 2, 16)}},
    {CASE("odd", attention){ATTENTION(67, 2, 2, 2, 20)}},
    {CASE("groups, view", attention){ATTENTION(81, 1, 6, 2, 24)}, .gap = 17},
    {CASE("one group", attention){ATTENTION(150, 1, 3, 1, 32)}},
    {CASE("wide heads", attention){ATTENTION(70, 1, 2, 1, 72)}},
    {CASE("all keys", attention){HEADS(77, 1, 2, 2, 9), .scale = 0.5}},
    {CASE("dropout", attention){ATTENTION(72, 2, 2, 1, 16), .p = 0.2}},
    {CASE("dropout, odd", attention){ATTENTION(69, 1, 4, 2, 5), .p = 0.5}, .gap = 3},
    {CASE("dropout, all keys", attention){HEADS(66, 1, 2, 2, 8), .scale = 0.5, .p = 0.1,
                                          .random_id = 9}},
    {CASE("large scores", attention){ATTENTION(70, 1, 2, 2, 16)}, .magnitude = 8},
    {CASE("one", attention){ATTENTION(1, 1, 1, 1, 1)}},

    {CASE("odd", attn_scores){ATTENTION(37, 2, 3, 3, 10)}, .gap = 3},
    {CASE("groups", attn_scores){ATTENTION(32, 1, 4, 2, 16)}},
    {CASE("one", attn_scores){ATTENTION(1, 1, 1, 1, 1)}},

    {CASE("causal", softmax){ATTENTION(37, 2, 3, 3, 10)}},
    {CASE("all keys", softmax){HEADS(33, 1, 2, 2, 10)}},
    {CASE("large scores", softmax){ATTENTION(40, 1, 2, 2, 10)}, .magnitude = 90},

    {CASE("odd", dropout){.n_elem = 4099, .p = 0.3, .random_id = 11}},
    {CASE("short", dropout){.n_elem = 3, .p = 0.5, .random_id = 2}},
    {CASE("off", dropout){.n_elem = 1500}},

    {CASE("odd", attn_context){ATTENTION(37, 2, 3, 3, 10)}, .gap = 3},
    {CASE("groups", attn_context){ATTENTION(32, 1, 4, 2, 16)}},

    {CASE("dropout", bias_dropout_add){.n = 37, .h = 51, .p = 0.2, .random_id = 4}, .gap = 7},
    {CASE("dropout, wide", bias_dropout_add){.n = 9, .h = 1100, .p = 0.2, .random_id = 8}},
    {CASE("dropout, no bias", bias_dropout_add){.n = 20, .h = 64, .p = 0.5}, .absent = 4},
    {CASE("off", bias_dropout_add){.n = 150, .h = 65}},
    {CASE("off, no bias", bias_dropout_add){.n = 20, .h = 64}, .gap = 1, .absent = 4},

    {CASE("gelu_tanh", activation) ACT(GELU_TANH, false, 37, 51), .magnitude = 6},
    {CASE("gelu", activation) ACT(GELU, false, 37, 51), .magnitude = 6},
    {CASE("silu", activation) ACT(SILU, false, 37, 51), .magnitude = 6},
    {CASE("relu", activation) ACT(RELU, false, 37, 51), .avoids_zero = true},
    {CASE("squared_relu", activation) ACT(SQUARED_RELU, false, 37, 51), .avoids_zero = true},
    {CASE("gated gelu_tanh", activation) ACT(GELU_TANH, true, 21, 35), .gap = 6},
    {CASE("gated gelu", activation) ACT(GELU, true, 21, 35), .gap = 6},
    {CASE("gated silu", activation) ACT(SILU, true, 21, 35), .gap = 6},
    {CASE("gated relu", activation) ACT(RELU, true, 21, 35), .avoids_zero = true},
    {CASE("gated squared_relu", activation) ACT(SQUARED_RELU, true, 21, 35),
     .avoids_zero = true},

    {CASE("odd", cross_entropy){.n = 37, .V = 53, .loss_scale = 1}},
    {CASE("view", cross_entropy){.n = 20, .V = 300, .loss_scale = 0.25}, .gap = 4},
    {CASE("large logits", cross_entropy){.n = 20, .V = 65, .loss_scale = 1}, .magnitude = 90},
    {CASE("one", cross_entropy){.n = 1, .V = 1, .loss_scale = 1}},

    {CASE("view", contiguous){.n = 37, .h = 51}, .gap = 13},

    /* Below the others, because a case's numbers are drawn by its place in this list. */
    {CASE("around 0", layernorm) NORM_AROUND_0(37, 1, 51)},
    {CASE("around 0, no bias", layernorm) NORM_AROUND_0(33, 2, 20), .gap = 3, .absent = 4},
    {CASE("around 0", rmsnorm) NORM_AROUND_0(37, 1, 51)},
    {CASE("around 0, heads", rmsnorm) NORM_AROUND_0(29, 6, 24), .gap = 11},
    {CASE("linear", rope) SCALED_ROPE(.kind = RC_ROPE_LINEAR, .factor = 4)},
    {CASE("llama3", rope) SCALED_ROPE(.kind = RC_ROPE_LLAMA3, .factor = 8, .old_length = 60,
                                      .least_turns = 1, .most_turns = 4)},
    {CASE("yarn", rope)
         SCALED_ROPE(.kind = RC_ROPE_YARN, .factor = 3, .old_length = 40, .least_turns = 1,
                     .most_turns = 9, .is_rounded = true, .amplitude = 1.25),
     .gap = 2},
};

const int n_op_cases = sizeof op_cases / sizeof op_cases[0];
