/* frames.c — from frames to labels, phases and sources.
 *
 * takes  frames, innermost first, as the file names them
 * gives  for each stack a label (what the memory is for) and a phase (when in the step)
 *
 * Each frame is looked at once: it yields a bit per label rule and some flags, and a stack's
 * answer is a walk over those. A million events share a few hundred stacks.
 * source: rules from the function and file names of Megatron-LM, TransformerEngine and PyTorch
 */
#include "snapshot/frames.h"

#include <string.h>

enum {
    N_RULES = 0
#define RC_SNAPSHOT_LABEL(label, files, functions) +1
#include "defs/snapshot_labels.def"
#undef RC_SNAPSHOT_LABEL
    ,
    LABEL_UNATTRIBUTED = N_RULES,
    LABEL_OTHER,
    LABEL_BEFORE,
    N_LABELS
};
_Static_assert((int)N_LABELS == (int)RC_SNAPSHOT_LABEL_COUNT,
               "RC_SNAPSHOT_LABEL_COUNT follows the rows");

static const struct rule {
    const char *label, *files, *functions;
} rules[] = {
#define RC_SNAPSHOT_LABEL(label, files, functions) {label, files, functions},
#include "defs/snapshot_labels.def"
#undef RC_SNAPSHOT_LABEL
};

enum {
    IS_PYTHON = 1 << 0,
    IS_CHECKPOINT = 1 << 1, /* a recompute begins here */
    IS_ENGINE = 1 << 2,     /* torch.autograd, called from Python */
    IS_BUILD = 1 << 3,
    IS_OPTIMIZER = 1 << 4,
    IS_BACKWARD = 1 << 5,
    IS_FORWARD = 1 << 6,
    IS_SOURCE = 1 << 7 /* the program's own code, no plumbing */
};

const char *rc_snapshot_label_name(int label)
{
    if (label >= 0 && label < N_RULES)
        return rules[label].label;
    return label == LABEL_UNATTRIBUTED ? "unattributed"
           : label == LABEL_BEFORE     ? "before_recording"
                                       : "other";
}

const char *rc_snapshot_phase_name(rc_snapshot_phase phase)
{
    static const char *const names[RC_SNAPSHOT_PHASE_COUNT] = {
        "build", "forward", "recompute", "backward", "optimizer", "no_frames", "other"};
    return phase < RC_SNAPSHOT_PHASE_COUNT ? names[phase] : "other";
}

/* ---- words ---- */

static bool ends_with(const char *text, size_t n, const char *end, size_t n_end)
{
    return n >= n_end && memcmp(text + n - n_end, end, n_end) == 0;
}

static bool ends_with_any(const char *text, size_t n, const char *const *ends, size_t n_ends)
{
    for (size_t i = 0; i < n_ends; i++)
        if (ends_with(text, n, ends[i], strlen(ends[i])))
            return true;
    return false;
}

/* The first place of `part` in `text`, or NULL. */
static const char *find_part(const char *text, const char *end, const char *part, size_t n_part)
{
    for (const char *at = text; n_part && (size_t)(end - at) >= n_part; at++) {
        at = memchr(at, part[0], (size_t)(end - at) - n_part + 1);
        if (!at)
            return NULL;
        if (memcmp(at, part, n_part) == 0)
            return at;
    }
    return NULL;
}

/* `part~word`: part somewhere, with no `word` after it. */
static bool has_part_without(const char *text, size_t n, const char *part, size_t n_part,
                             const char *word, size_t n_word)
{
    const char *end = text + n, *last = NULL;
    for (const char *at = text; (at = find_part(at, end, part, n_part)) != NULL; at++)
        last = at;
    return last && !find_part(last + n_part, end, word, n_word);
}

static bool matches_file(const char *pattern, size_t n_pattern, const char *text, size_t n)
{
    const char *tilde = memchr(pattern, '~', n_pattern);
    if (tilde) {
        size_t n_part = (size_t)(tilde - pattern);
        return has_part_without(text, n, pattern, n_part, tilde + 1, n_pattern - n_part - 1);
    }
    if (pattern[n_pattern - 1] == '$')
        return ends_with(text, n, pattern, n_pattern - 1);
    return find_part(text, text + n, pattern, n_pattern) != NULL;
}

static bool matches_function(const char *pattern, size_t n_pattern, const char *text, size_t n)
{
    bool is_not = pattern[0] == '!';
    bool is_same = n_pattern - is_not == n && memcmp(pattern + is_not, text, n) == 0;
    return is_same != is_not;
}

static bool matches_any(const char *patterns, const char *text, size_t n,
                        bool (*matches)(const char *, size_t, const char *, size_t))
{
    if (!*patterns)
        return true;
    while (*patterns) {
        size_t n_pattern = strcspn(patterns, " ");
        if (matches(patterns, n_pattern, text, n))
            return true;
        patterns += n_pattern;
        patterns += strspn(patterns, " ");
    }
    return false;
}

static bool is_one_of(const char *text, size_t n, const char *words)
{
    return matches_any(words, text, n, matches_function);
}

/* ---- frames ---- */

static uint32_t phase_flags(const rc_snapshot_string *name, const rc_snapshot_string *file)
{
    static const char *const checkpoint_files[] = {
        "/tensor_parallel/random.py", "/torch/utils/checkpoint.py",
        "/transformer_engine/pytorch/distributed.py"};
    static const char *const engine_files[] = {"/torch/autograd/graph.py",
                                               "/torch/autograd/__init__.py"};
    uint32_t flags = 0;
    const char *f = file->bytes;
    size_t n = file->n_bytes;
    if (ends_with_any(f, n, checkpoint_files, 3) &&
        is_one_of(name->bytes, name->n_bytes,
                  "backward _recompute _unified_recompute_hook recompute_fn unpack_hook"))
        flags |= IS_CHECKPOINT;
    if (ends_with_any(f, n, engine_files, 2))
        flags |= IS_ENGINE;
    if (is_one_of(name->bytes, name->n_bytes,
                  "setup_model_and_optimizer get_model initialize_megatron"))
        flags |= IS_BUILD;
    if (matches_any("core/optimizer/ /optimizers/fused_adam.py$ /torch/optim/", f, n,
                    matches_file))
        flags |= IS_OPTIMIZER;
    if (is_one_of(name->bytes, name->n_bytes, "backward backward_step custom_backward"))
        flags |= IS_BACKWARD;
    if (is_one_of(name->bytes, name->n_bytes, "forward forward_step"))
        flags |= IS_FORWARD;
    return flags;
}

static rc_frame_facts frame_facts(const rc_snapshot_names *names, uint32_t id)
{
    rc_snapshot_frame frame = rc_snapshot_frame_at(names, id);
    rc_snapshot_string name = rc_snapshot_string_at(names, frame.name);
    rc_snapshot_string file = rc_snapshot_string_at(names, frame.filename);
    rc_frame_facts facts = {0};
    if (!ends_with(file.bytes, file.n_bytes, ".py", 3))
        return facts;
    facts.flags = IS_PYTHON | phase_flags(&name, &file);
    if (!is_one_of(name.bytes, name.n_bytes,
                   "<module> <lambda> _call_impl _wrapped_call_impl inner") &&
        !matches_any("/torch/ /torch_ /cuda/ /hydra/ /python3. /importlib/", file.bytes,
                     file.n_bytes, matches_file))
        facts.flags |= IS_SOURCE;
    for (size_t i = 0; i < N_RULES; i++)
        if (matches_any(rules[i].files, file.bytes, file.n_bytes, matches_file) &&
            matches_any(rules[i].functions, name.bytes, name.n_bytes, matches_function))
            facts.labels |= (uint32_t)1 << i;
    return facts;
}

/* ---- stacks ---- */

/* A checkpoint frame with the autograd engine inside it is that checkpoint's own backward pass. */
static rc_snapshot_phase phase_of(const rc_frame_book *book, const rc_snapshot_stack *stack)
{
    uint32_t all = 0;
    bool has_engine = false;
    for (size_t i = 0; i < stack->n_frames; i++) {
        uint32_t flags = book->frames[stack->frame[i]].flags;
        if (flags & IS_CHECKPOINT)
            return has_engine ? RC_SNAPSHOT_BACKWARD : RC_SNAPSHOT_RECOMPUTE;
        has_engine = has_engine || (flags & IS_ENGINE);
        all |= flags;
    }
    return !(all & IS_PYTHON)   ? RC_SNAPSHOT_NO_FRAMES
           : all & IS_BUILD     ? RC_SNAPSHOT_BUILD
           : all & IS_OPTIMIZER ? RC_SNAPSHOT_OPTIMIZER
           : all & IS_BACKWARD  ? RC_SNAPSHOT_BACKWARD
           : all & IS_FORWARD   ? RC_SNAPSHOT_FORWARD
                                : RC_SNAPSHOT_OTHER;
}

static unsigned char label_of(const rc_frame_book *book, const rc_snapshot_stack *stack)
{
    uint32_t labels = 0, flags = 0;
    for (size_t i = 0; i < stack->n_frames; i++) {
        labels |= book->frames[stack->frame[i]].labels;
        flags |= book->frames[stack->frame[i]].flags;
    }
    if (!(flags & IS_PYTHON))
        return LABEL_UNATTRIBUTED;
    unsigned char label = 0;
    while (label < N_RULES && !(labels >> label & 1))
        label++;
    if (label == N_RULES)
        return LABEL_OTHER;
    unsigned char first = 0; /* rows may share a label: its number is the first one's */
    while (strcmp(rules[first].label, rules[label].label) != 0)
        first++;
    return first;
}

static rc_code reach_frame(rc_frame_book *book, const rc_snapshot_names *names, uint32_t frame,
                           rc_error *err)
{
    RC_TRY(RC_GROW(book->mem, &book->frames, book->n_frames, &book->n_frames_room,
                   (size_t)frame + 1, err));
    for (; book->n_frames <= frame; book->n_frames++)
        book->frames[book->n_frames] = frame_facts(names, (uint32_t)book->n_frames);
    return RC_OK;
}

rc_code rc_frame_book_reach(rc_frame_book *book, const rc_snapshot_names *names, uint32_t id,
                            rc_error *err)
{
    RC_TRY(RC_GROW(book->mem, &book->stacks, book->n_stacks, &book->n_stacks_room,
                   (size_t)id + 1, err));
    for (; book->n_stacks <= id; book->n_stacks++) {
        rc_snapshot_stack stack = rc_snapshot_stack_at(names, (uint32_t)book->n_stacks);
        for (size_t i = 0; i < stack.n_frames; i++)
            RC_TRY(reach_frame(book, names, stack.frame[i], err));
        book->stacks[book->n_stacks] =
            (rc_stack_facts){label_of(book, &stack), (unsigned char)phase_of(book, &stack)};
    }
    return RC_OK;
}

/* ---- texts ---- */

static rc_code frame_text(const rc_snapshot_names *names, uint32_t id, rc_arena *mem,
                          const char **out, rc_error *err)
{
    rc_snapshot_frame frame = rc_snapshot_frame_at(names, id);
    const char *file = rc_snapshot_string_at(names, frame.filename).bytes;
    const char *slash = strrchr(file, '/');
    return rc_arena_printf(mem, out, err, "%s@%s:%lld",
                           rc_snapshot_string_at(names, frame.name).bytes,
                           slash ? slash + 1 : file, (long long)frame.line);
}

/* The innermost frame that is the program's own, or 0. */
static uint32_t source_frame(const rc_frame_book *book, const rc_snapshot_stack *stack)
{
    for (size_t i = 0; i < stack->n_frames; i++)
        if (book->frames[stack->frame[i]].flags & IS_SOURCE)
            return stack->frame[i];
    return 0;
}

rc_code rc_stack_source(const rc_frame_book *book, const rc_snapshot_names *names, uint32_t id,
                        rc_arena *mem, const char **out, rc_error *err)
{
    rc_snapshot_stack stack = rc_snapshot_stack_at(names, id);
    if (stack.n_frames == 0) {
        *out = "<no frames>";
        return RC_OK;
    }
    uint32_t frame = source_frame(book, &stack);
    return frame_text(names, frame ? frame : stack.frame[0], mem, out, err);
}

rc_code rc_stack_module(const rc_frame_book *book, const rc_snapshot_names *names, uint32_t id,
                        rc_arena *mem, const char **out, rc_error *err)
{
    rc_snapshot_stack stack = rc_snapshot_stack_at(names, id);
    uint32_t frame = source_frame(book, &stack);
    if (!frame) {
        *out = stack.n_frames ? "<library code>" : "<no frames>";
        return RC_OK;
    }
    rc_snapshot_string file =
        rc_snapshot_string_at(names, rc_snapshot_frame_at(names, frame).filename);
    const char *start = file.bytes + strlen(file.bytes);
    for (int n_slashes = 0; start > file.bytes; start--)
        if (start[-1] == '/' && ++n_slashes == 3)
            break;
    return rc_arena_copy(mem, start, strlen(start), out, err);
}

rc_code rc_stack_native(const rc_snapshot_names *names, uint32_t id, rc_arena *mem,
                        const char **out, rc_error *err)
{
    static const char *const noise[] = {"torch::unwind",
                                        "torch::Captured",
                                        "torch::autograd::",
                                        "torch::jit::",
                                        "c10::",
                                        "std::",
                                        "at::detail::empty",
                                        "at::native::empty",
                                        "at::_ops::",
                                        "at::empty",
                                        "at::(anonymous",
                                        "at::DeviceCaching",
                                        "__libc",
                                        "__clone",
                                        "clone",
                                        "start_thread",
                                        "execute_native_thread",
                                        "_Py",
                                        "Py",
                                        "??",
                                        "torch::cuda::",
                                        "gather_with_cpp",
                                        "<unknown>"};
    rc_snapshot_stack stack = rc_snapshot_stack_at(names, id);
    *out = "<no frames>";
    for (size_t i = 0; i < stack.n_frames; i++) {
        rc_snapshot_frame frame = rc_snapshot_frame_at(names, stack.frame[i]);
        const char *name = rc_snapshot_string_at(names, frame.name).bytes;
        bool is_noise = !*name;
        for (size_t k = 0; k < sizeof noise / sizeof *noise; k++)
            is_noise = is_noise || strncmp(name, noise[k], strlen(noise[k])) == 0;
        if (!is_noise)
            return rc_arena_copy(mem, name, strlen(name), out, err);
    }
    if (stack.n_frames)
        *out = "<library code>";
    return RC_OK;
}
