/* fates.h — what the engine does not model (src/train/ only; the model's part is public). */
#ifndef RC_TRAIN_FATES_H
#define RC_TRAIN_FATES_H

#include <recompute/config.h>

/* rc_train_refuse_model, and what training adds. errors RC_E_UNSUPPORTED RC_E_INPUT */
RC_MUST_CHECK
rc_code rc_train_refuse_run(const rc_config *cfg, rc_error *err);
/* Fails with RC_E_UNSUPPORTED, naming the field. */
RC_MUST_CHECK
rc_code rc_train_unsupported(const rc_config *cfg, rc_field field, const char *why,
                             rc_error *err);

#endif
