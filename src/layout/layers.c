/* layout/layers.c — layers of the whole model: how many there may be, and those in a row that are alike. */
#include "layout/layers.h"

#include <inttypes.h>

enum { MOST_LAYERS = 1 << 16 };

rc_code rc_layers_need_number(const rc_config *cfg, rc_field field, int64_t n, rc_error *err)
{
    if (n >= 1 && n <= MOST_LAYERS)
        return RC_OK;
    return RC_FAIL(err, n < 1 ? RC_E_INPUT : RC_E_RANGE, cfg->origin[field].where,
                   "%s: the model has %" PRId64 " layers; 1 to %d can be laid out",
                   rc_field_key(field), n, MOST_LAYERS);
}

static bool is_same(rc_layer_kind a, rc_layer_kind b)
{
    return a.mixer == b.mixer && a.mlp == b.mlp;
}

rc_code rc_layer_runs_make(const rc_layer_kind *kinds, int n, rc_arena *mem,
                           const rc_layer_run **runs, int *n_runs, rc_error *err)
{
    rc_layer_run *made;
    int n_made = n > 0;
    for (int i = 1; i < n; i++)
        n_made += !is_same(kinds[i], kinds[i - 1]);
    RC_TRY(RC_NEW(mem, &made, n_made, err));
    *runs = made;
    *n_runs = n_made;
    for (int i = 0; i < n; i++) {
        made += i > 0 && !is_same(kinds[i], kinds[i - 1]);
        made->kind = kinds[i];
        made->n_layers++;
    }
    return RC_OK;
}
