/* table.h — pieces of reports shared by the snapshot commands. */
#ifndef RC_SNAPSHOT_TABLE_H
#define RC_SNAPSHOT_TABLE_H

#include <recompute/snapshot.h>

bool rc_view_shows(const rc_snapshot_view *view, int device);
/* Tables of who holds memory: by label, phase, source, module and native function. */
RC_MUST_CHECK
rc_code rc_snapshot_add_holders(const rc_snapshot *snapshot, rc_live_which which,
                                const rc_snapshot_view *view, rc_report *report, rc_error *err);
/* The last out-of-memory error, or the peak, in a few lines of words. */
RC_MUST_CHECK
rc_code rc_snapshot_add_answer(const rc_snapshot *snapshot, const rc_snapshot_view *view,
                               rc_report *report, rc_error *err);
/* What a reader must know to read the numbers right. */
RC_MUST_CHECK
rc_code rc_snapshot_add_notes(const rc_snapshot *snapshot, const rc_snapshot_view *view,
                              rc_report *report, rc_error *err);
const rc_live_set *rc_live_set_of(const rc_snapshot_device *device, rc_live_which which);

#endif
