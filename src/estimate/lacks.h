/* lacks.h — settings that the estimate leaves out. */
#ifndef RC_ESTIMATE_LACKS_H
#define RC_ESTIMATE_LACKS_H

#include <recompute/estimate.h>

/* One more.
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
rc_code rc_estimate_add_lack(rc_estimate *estimate, rc_estimate_lack more, rc_arena *mem,
                             rc_error *err);

/* Fills estimate->lacks.
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
rc_code rc_estimate_find_lacks(const rc_config *cfg, rc_estimate *estimate, rc_arena *mem,
                               rc_error *err);

#endif
