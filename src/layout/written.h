/* written.h — which layers stand on which stage, as a text or a list says it (layout and check). */
#ifndef RC_LAYOUT_WRITTEN_H
#define RC_LAYOUT_WRITTEN_H

#include <recompute/doc.h>

/* What a layout names. */
typedef enum rc_stage_layer {
    RC_STAGE_EMBEDDING,
    RC_STAGE_LOSS,
    RC_STAGE_ENCODER,
    RC_STAGE_DECODER,
    RC_STAGE_MTP
} rc_stage_layer;

typedef struct rc_pipeline_layout {
    /* false: it cannot be read; n_rows counts all the same */
    bool is_read;
    /* in order */
    rc_stage_layer *layers;
    size_t n_layers;
    /* [n_stages + 1] offsets into layers */
    size_t *stage_starts;
    size_t n_stages, n_room, n_stage_room;
    /* stages seen, their names not looked up yet; 0 where rows are no lists */
    size_t n_rows;
} rc_pipeline_layout;

/* Stage i stands on pipeline rank i % p, as its chunk i / p.
 *
 * takes   doc  of any kind
 * errors  RC_E_MEMORY
 * source  Megatron-LM pipeline_parallel_layer_layout.py, parse_str_to_list and __init__ */
RC_MUST_CHECK
rc_code rc_pipeline_layout_read(const rc_doc *doc, rc_arena *mem, rc_pipeline_layout *out,
                                rc_error *err);

#endif
