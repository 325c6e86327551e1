/* recompute.h — the whole library: data flows down this list, each stage taking one noun and making
 * the next. */
#ifndef RECOMPUTE_RECOMPUTE_H
#define RECOMPUTE_RECOMPUTE_H

#include <recompute/error.h>
#include <recompute/arena.h>
#include <recompute/doc.h>
#include <recompute/finding.h>
#include <recompute/table.h>
#include <recompute/op.h>
#include <recompute/label.h>
#include <recompute/read.h>
#include <recompute/config.h>
#include <recompute/graph.h>
#include <recompute/policy.h>
#include <recompute/schedule.h>
#include <recompute/cost.h>
#include <recompute/plan.h>
#include <recompute/exec.h>
#include <recompute/report.h>

#endif
