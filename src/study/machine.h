/* study/machine.h — what else the machine does while a study runs. */
#ifndef RC_STUDY_MACHINE_H
#define RC_STUDY_MACHINE_H

#include <recompute/study.h>

/* Seconds of cores since some moment in the past; NAN where the system does not tell. */
typedef struct rc_machine_look {
    double at, n_cores;
    /* of this process and its children that ended */
    double own;
    /* of everyone */
    double busy;
    /* this process's threads */
    double waited;
    double stolen, throttled;
} rc_machine_look;

/* Looks at /proc and the control group; costs well below a millisecond. Sources: proc(5),
 * Documentation/scheduler/sched-stats.rst and admin-guide/cgroup-v2.rst of the Linux kernel. */
void rc_machine_look_now(rc_machine_look *look);

/* What happened from `since` to now; is_launched: the study is other processes, whose waiting nothing
 * tells. */
void rc_machine_load_since(const rc_machine_look *since, bool is_launched, rc_study_load *load);

#endif
