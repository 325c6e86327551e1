/* pools.h — segments at the end: pools, fragmentation, and what an OOM could have had. */
#ifndef RC_SNAPSHOT_POOLS_H
#define RC_SNAPSHOT_POOLS_H

#include <recompute/snapshot.h>

/* Fills total, by_device and pools. */
RC_MUST_CHECK
rc_code rc_pools_make(rc_snapshot *snapshot, rc_error *err);
/* Fills what the segments say about a failed request. */
void rc_pools_judge_oom(const rc_snapshot *snapshot, const int64_t pool_id[2],
                        rc_snapshot_oom *oom);

#endif
