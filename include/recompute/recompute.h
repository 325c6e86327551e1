/* recompute.h — the whole library: every public header. Data flows from stage to stage, each taking one noun
 * and making the next:
 *
 *   read.h, args.h → config.h → layout.h → graph.h → policy.h → schedule.h → cost.h, plan.h, exec.h → train.h, study.h
 *
 * passes.h makes the nouns from graph to cost in one call; pipeline.h is the order in which a stage of a layout runs.
 * Beside this line stand check.h, which judges a config, and snapshot_file.h → snapshot.h and log.h →
 * diagnose.h, which read what a job left.
 *
 * Whatever a stage can print is a table.h, which report.h, picture.h and timeline.h write.
 */
#ifndef RECOMPUTE_RECOMPUTE_H
#define RECOMPUTE_RECOMPUTE_H

#include <recompute/arena.h>
#include <recompute/args.h>
#include <recompute/check.h>
#include <recompute/config.h>
#include <recompute/cost.h>
#include <recompute/diagnose.h>
#include <recompute/doc.h>
#include <recompute/error.h>
#include <recompute/estimate.h>
#include <recompute/exec.h>
#include <recompute/finding.h>
#include <recompute/graph.h>
#include <recompute/label.h>
#include <recompute/layout.h>
#include <recompute/log.h>
#include <recompute/op.h>
#include <recompute/passes.h>
#include <recompute/picture.h>
#include <recompute/pipeline.h>
#include <recompute/plan.h>
#include <recompute/policy.h>
#include <recompute/read.h>
#include <recompute/release.h>
#include <recompute/report.h>
#include <recompute/schedule.h>
#include <recompute/snapshot.h>
#include <recompute/snapshot_file.h>
#include <recompute/study.h>
#include <recompute/table.h>
#include <recompute/timeline.h>
#include <recompute/train.h>

#endif
