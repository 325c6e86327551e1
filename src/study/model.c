/* model.c — the rows of studies.def as data. */
#include <recompute/study.h>

static const rc_study_model models[] = {
#define RC_STUDY(name, title, settings) {#name, title, settings},
#include "defs/studies.def"
#undef RC_STUDY
};

const rc_study_model *rc_study_model_find(size_t k)
{
    return k < sizeof models / sizeof *models ? &models[k] : NULL;
}
