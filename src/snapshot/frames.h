/* frames.h — what a stack of frames says: label, phase, source, module. */
#ifndef RC_SNAPSHOT_FRAMES_H
#define RC_SNAPSHOT_FRAMES_H

#include <recompute/snapshot.h>

/* Facts of frames and stacks, each worked out when it is first met. */
typedef struct rc_frame_facts {
    /* bit per row of snapshot_labels.def */
    uint32_t labels;
    uint32_t flags;
} rc_frame_facts;

typedef struct rc_stack_facts {
    /* index for rc_snapshot_label_name */
    unsigned char label;
    /* rc_snapshot_phase */
    unsigned char phase;
} rc_stack_facts;

struct rc_frame_book {
    rc_arena *mem;
    rc_frame_facts *frames;
    /* frames 1 .. n_frames-1 are known */
    size_t n_frames, n_frames_room;
    rc_stack_facts *stacks;
    size_t n_stacks, n_stacks_room;
};

/* Works out the stacks up to and with `stack`. */
RC_MUST_CHECK
rc_code rc_frame_book_reach(rc_frame_book *book, const rc_snapshot_names *names, uint32_t stack,
                            rc_error *err);

/* Texts for people and for grouping, made in `mem`; the stack was reached. */
RC_MUST_CHECK
rc_code rc_stack_source(const rc_frame_book *book, const rc_snapshot_names *names,
                        uint32_t stack, rc_arena *mem, const char **out, rc_error *err);
RC_MUST_CHECK
rc_code rc_stack_module(const rc_frame_book *book, const rc_snapshot_names *names,
                        uint32_t stack, rc_arena *mem, const char **out, rc_error *err);
/* For stacks without Python frames: the first frame that is neither unwinding, allocator nor
 * autograd plumbing. */
RC_MUST_CHECK
rc_code rc_stack_native(const rc_snapshot_names *names, uint32_t stack, rc_arena *mem,
                        const char **out, rc_error *err);

#endif
