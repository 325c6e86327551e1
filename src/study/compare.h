/* study/compare.h — every row's times against the control of the same round. */
#ifndef RC_STUDY_COMPARE_H
#define RC_STUDY_COMPARE_H

#include <recompute/study.h>

/* Fills step_seconds and ratio of the rows; is_busy, clock and noise_ratio of the study.
 * memory  scratch only, from `tmp` */
RC_MUST_CHECK
rc_code rc_study_compare(rc_study *study, rc_arena *tmp, rc_error *err);

/* Half of it, or infinite when there is none. */
double rc_interval_half_width(const rc_interval *interval);
/* Of the rows that passed, the median half width of their ratios; infinite without one. */
RC_MUST_CHECK
rc_code rc_study_typical_width(const rc_study *study, rc_study_clock clock, rc_arena *tmp,
                               double *out, rc_error *err);

/* The words of study->machine. */
RC_MUST_CHECK
rc_code rc_study_say_machine(rc_study *study, rc_arena *mem, rc_error *err);

#endif
