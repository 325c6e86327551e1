/* layout.h — which layers stand on which stage, as a text or a list says it.
 *
 * above  checking.h
 */
#ifndef RC_CHECK_LAYOUT_H
#define RC_CHECK_LAYOUT_H

#include "check/checking.h"

/* The layout's layer names by stage; NULL after a violation. */
typedef enum rc_stage_layer {
    RC_STAGE_EMBEDDING,
    RC_STAGE_LOSS,
    RC_STAGE_ENCODER,
    RC_STAGE_DECODER,
    RC_STAGE_MTP
} rc_stage_layer;

typedef struct rc_pipeline_layout {
    /* in order */
    rc_stage_layer *layers;
    size_t n_layers;
    /* [n_stages + 1] offsets into layers */
    size_t *stage_starts;
    size_t n_stages, n_room, n_stage_room;
    /* stages seen, their names not looked up yet; 0 where rows are no lists */
    size_t n_rows;
} rc_pipeline_layout;
/* false: it cannot be read (or memory is out: checking->code) */
bool rc_pipeline_layout_read(rc_checking *checking, const rc_doc *doc,
                             rc_pipeline_layout *layout);

#endif
