/* pools.c — segments at the end of the recording, by pool.
 *
 * A free block serves only its own pool, size class and stream; one number for "fragmentation" hides
 * which of these is in the way, so all are kept apart.
 * source: c10/cuda/CUDACachingAllocator.cpp (kSmallSize, kSmallBuffer, kLargeBuffer,
 * kMinLargeAlloc, kRoundLarge)
 */
#include "snapshot/pools.h"

#include <stdlib.h>

enum { MIB = 1 << 20, SMALL_REQUEST = MIB, LARGE_DIRECT = 10 * MIB };

static int compare_ints(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}

/* Device, pool, class, stream. */
static int by_pool(const void *a, const void *b)
{
    const rc_snapshot_segment *x = *(const rc_snapshot_segment *const *)a;
    const rc_snapshot_segment *y = *(const rc_snapshot_segment *const *)b;
    if (x->device != y->device)
        return compare_ints(x->device, y->device);
    if (x->pool_id[0] != y->pool_id[0])
        return compare_ints(x->pool_id[0], y->pool_id[0]);
    if (x->pool_id[1] != y->pool_id[1])
        return compare_ints(x->pool_id[1], y->pool_id[1]);
    if (x->is_small != y->is_small)
        return compare_ints(x->is_small, y->is_small);
    return compare_ints(x->stream, y->stream);
}

static void add_block(const rc_snapshot_block *block, rc_pool_stats *to)
{
    to->n_blocks++;
    to->reserved_bytes += block->size_bytes;
    if (block->state == RC_BLOCK_INACTIVE) {
        to->n_inactive_blocks++;
        if (block->size_bytes > to->largest_inactive_bytes)
            to->largest_inactive_bytes = block->size_bytes;
        return;
    }
    to->active_bytes += block->size_bytes;
    to->requested_bytes += block->requested_bytes;
    if (block->state == RC_BLOCK_ALLOCATED)
        to->allocated_bytes += block->size_bytes;
}

static void add_segment(const rc_snapshot_file *file, const rc_snapshot_segment *segment,
                        rc_pool_stats *to)
{
    bool is_free = segment->n_blocks > 0;
    to->n_segments++;
    to->is_expandable = to->is_expandable || segment->is_expandable;
    for (size_t i = 0; i < segment->n_blocks; i++) {
        const rc_snapshot_block *block = &file->blocks[segment->first_block + i];
        is_free = is_free && block->state == RC_BLOCK_INACTIVE;
        add_block(block, to);
    }
    if (segment->n_blocks == 0) /* a file without blocks still says how much is reserved */
        to->reserved_bytes += segment->total_bytes;
    if (is_free)
        to->releasable_bytes += segment->total_bytes;
}

static void add_stats(const rc_pool_stats *from, rc_pool_stats *to)
{
    to->is_expandable = to->is_expandable || from->is_expandable;
    to->n_segments += from->n_segments;
    to->n_blocks += from->n_blocks;
    to->n_inactive_blocks += from->n_inactive_blocks;
    to->reserved_bytes += from->reserved_bytes;
    to->allocated_bytes += from->allocated_bytes;
    to->active_bytes += from->active_bytes;
    to->requested_bytes += from->requested_bytes;
    to->releasable_bytes += from->releasable_bytes;
    if (from->largest_inactive_bytes > to->largest_inactive_bytes)
        to->largest_inactive_bytes = from->largest_inactive_bytes;
}

rc_code rc_pools_make(rc_snapshot *snapshot, rc_error *err)
{
    const rc_snapshot_file *file = snapshot->file;
    const rc_snapshot_segment **order;
    RC_TRY(RC_NEW(snapshot->mem, &order, file->n_segments, err));
    for (size_t i = 0; i < file->n_segments; i++)
        order[i] = &file->segments[i];
    if (file->n_segments > 1)
        qsort(order, file->n_segments, sizeof *order, by_pool);
    size_t n_pools = file->n_segments > 0;
    for (size_t i = 1; i < file->n_segments; i++)
        n_pools += by_pool(&order[i - 1], &order[i]) != 0;
    RC_TRY(RC_NEW(snapshot->mem, &snapshot->pools, n_pools, err));
    RC_TRY(RC_NEW(snapshot->mem, &snapshot->by_device, n_pools, err));
    snapshot->total.device = -1;
    for (size_t i = 0; i < file->n_segments; i++) {
        if (i == 0 || by_pool(&order[i - 1], &order[i]) != 0)
            snapshot->pools[snapshot->n_pools++] =
                (rc_pool_stats){.device = order[i]->device,
                                .is_small = order[i]->is_small,
                                .stream = order[i]->stream,
                                .pool_id = {order[i]->pool_id[0], order[i]->pool_id[1]}};
        add_segment(file, order[i], &snapshot->pools[snapshot->n_pools - 1]);
    }
    for (size_t i = 0; i < snapshot->n_pools; i++) {
        const rc_pool_stats *pool = &snapshot->pools[i];
        if (i == 0 || snapshot->by_device[snapshot->n_by_device - 1].device != pool->device)
            snapshot->by_device[snapshot->n_by_device++] =
                (rc_pool_stats){.device = pool->device};
        add_stats(pool, &snapshot->by_device[snapshot->n_by_device - 1]);
        add_stats(pool, &snapshot->total);
    }
    return RC_OK;
}

/* What the driver is asked for when no free block serves. */
static int64_t segment_bytes_for(int64_t size_bytes, bool is_expandable)
{
    if (is_expandable)
        return size_bytes;
    if (size_bytes <= SMALL_REQUEST)
        return 2 * MIB;
    if (size_bytes < LARGE_DIRECT)
        return 20 * MIB;
    return (size_bytes + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);
}

static const char *verdict_of(const rc_snapshot_oom *oom)
{
    if (oom->largest_bytes >= oom->size_bytes)
        return "race"; /* memory came free between the failure and the dump */
    return oom->device_free_bytes + oom->same_bytes >= oom->needed_bytes ? "fragmentation"
                                                                         : "capacity";
}

/* Free memory that was in the wrong place for this request, where it would have been enough. */
static const char *helper_of(const rc_snapshot_oom *oom)
{
    int64_t could = oom->device_free_bytes + oom->same_bytes;
    if (could >= oom->needed_bytes)
        return NULL;
    if (could + oom->other_stream_bytes >= oom->needed_bytes)
        return "other_streams";
    return could + oom->private_bytes >= oom->needed_bytes ? "private_pools" : NULL;
}

void rc_pools_judge_oom(const rc_snapshot *snapshot, const int64_t pool_id[2],
                        rc_snapshot_oom *oom)
{
    bool is_expandable = snapshot->file->settings.is_expandable;
    oom->is_small = oom->size_bytes <= SMALL_REQUEST;
    for (size_t i = 0; i < snapshot->n_pools; i++) {
        const rc_pool_stats *pool = &snapshot->pools[i];
        if (pool->device != oom->device)
            continue;
        int64_t free_bytes = pool->reserved_bytes - pool->active_bytes;
        bool is_pool = pool->pool_id[0] == pool_id[0] && pool->pool_id[1] == pool_id[1];
        is_expandable = is_expandable || pool->is_expandable;
        if (!is_pool) {
            oom->private_bytes += free_bytes;
        } else if (pool->is_small != oom->is_small) {
            oom->other_class_bytes += free_bytes;
        } else if (pool->stream != oom->stream) {
            oom->other_stream_bytes += free_bytes;
        } else {
            oom->same_bytes += free_bytes;
            oom->largest_bytes = pool->largest_inactive_bytes;
        }
    }
    oom->needed_bytes = segment_bytes_for(oom->size_bytes, is_expandable);
    oom->verdict = verdict_of(oom);
    oom->enough_with = helper_of(oom);
}
