/* settings.h — the settings a plan compares. */
#ifndef RC_PLAN_SETTINGS_H
#define RC_PLAN_SETTINGS_H

#include <recompute/plan.h>

/* Every setting that acts differently in the graph, each once. */
RC_MUST_CHECK
rc_code rc_plan_settings(const rc_graph *graph, rc_arena *mem, rc_setting **out, size_t *n,
                         rc_error *err);

#endif
