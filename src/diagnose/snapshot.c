/* snapshot.c — the few figures of a memory snapshot that a diagnosis weighs.
 *
 * takes  a snapshot file
 * gives  reserve, live bytes, the largest block that could serve a request, the failing request
 *        and its phase
 */
#include <recompute/diagnose.h>
#include <recompute/snapshot_file.h>

#include <string.h>

/* The last failing request; its frames are kept by id, the names live as long as the file. */
typedef struct failure {
    bool is_there;
    int64_t bytes, free_bytes;
    uint32_t stack;
} failure;

static rc_code see_event(void *state, const rc_snapshot_names *names, uint32_t trace,
                         const rc_snapshot_event *event, rc_error *err)
{
    failure *last = state;
    (void)names;
    (void)trace;
    (void)err;
    if (event->action == RC_ACTION_OOM)
        *last = (failure){true, event->size_bytes, event->device_free_bytes, event->stack};
    return RC_OK;
}

static rc_job_phase phase_of_stack(const rc_snapshot_file *file, uint32_t id)
{
    enum { MOST = 128 };
    const char *names[MOST], *paths[MOST];
    rc_snapshot_stack stack = rc_snapshot_stack_at(file->names, id);
    size_t n = stack.n_frames < MOST ? stack.n_frames : MOST;
    for (size_t i = 0; i < n; i++) { /* innermost first in the file, outermost first for us */
        rc_snapshot_frame frame =
            rc_snapshot_frame_at(file->names, stack.frame[stack.n_frames - 1 - i]);
        names[i] = rc_snapshot_string_at(file->names, frame.name).bytes;
        paths[i] = rc_snapshot_string_at(file->names, frame.filename).bytes;
    }
    return rc_log_phase_of(names, paths, n);
}

rc_code rc_snapshot_facts_read(const char *path, rc_arena *mem, rc_snapshot_facts **out,
                               rc_error *err)
{
    failure last = {.bytes = RC_LOG_UNKNOWN, .free_bytes = RC_LOG_UNKNOWN};
    rc_snapshot_sink sink = {&last, see_event};
    rc_snapshot_file *file;
    rc_snapshot_facts *facts;
    RC_TRY(rc_snapshot_read(path, &sink, mem, &file, NULL, err));
    RC_TRY(RC_NEW(mem, &facts, 1, err));
    facts->n_segments = (int64_t)file->n_segments;
    facts->oom_request_bytes = last.is_there ? last.bytes : RC_LOG_UNKNOWN;
    facts->oom_free_bytes = last.free_bytes;
    facts->is_expandable = file->settings.has_settings && file->settings.is_expandable;
    for (size_t i = 0; i < file->n_segments; i++) {
        const rc_snapshot_segment *segment = &file->segments[i];
        facts->reserved_bytes += segment->total_bytes;
        for (size_t k = 0; k < segment->n_blocks; k++) {
            const rc_snapshot_block *block = &file->blocks[segment->first_block + k];
            if (block->state != RC_BLOCK_INACTIVE)
                facts->active_bytes += block->size_bytes;
            else if (block->size_bytes > facts->largest_free_block_bytes)
                facts->largest_free_block_bytes = block->size_bytes;
        }
    }
    if (last.is_there)
        facts->phase = phase_of_stack(file, last.stack);
    *out = facts;
    return RC_OK;
}
