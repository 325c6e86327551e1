/* recompute.h — the whole library: data flows down this list, each stage taking one noun and making
 * the next. */
#ifndef RECOMPUTE_RECOMPUTE_H
#define RECOMPUTE_RECOMPUTE_H

#include <recompute/arena.h>
#include <recompute/config.h>
#include <recompute/cost.h>
#include <recompute/doc.h>
#include <recompute/error.h>
#include <recompute/exec.h>
#include <recompute/finding.h>
#include <recompute/graph.h>
#include <recompute/label.h>
#include <recompute/op.h>
#include <recompute/plan.h>
#include <recompute/policy.h>
#include <recompute/read.h>
#include <recompute/report.h>
#include <recompute/schedule.h>
#include <recompute/table.h>

#endif
