/* check_subject.c — one configuration under check: made of its inputs, judged, and asked about.
 *
 * above  nothing of `check`; its other files stand on this one
 */
#include "check.h"

#include <string.h>

static const char *const target_names[] = {"core", "megatron-lm", "bridge"};

const char *rc_check_target_name(rc_check_target target)
{
    return target_names[target];
}

bool rc_check_target_find(const char *name, rc_check_target *out)
{
    for (size_t i = 0; i < sizeof target_names / sizeof *target_names; i++)
        if (strcmp(target_names[i], name) == 0) {
            *out = (rc_check_target)i;
            return true;
        }
    return false;
}

int rc_subject_status(const rc_subject *subject, const rc_check_show *show)
{
    if (subject->unreadable)
        return 2;
    bool has_warning = rc_findings_count(&subject->check->findings, RC_LEVEL_WARNING) > 0;
    return !subject->check->is_accepted || (show->is_strict && has_warning);
}

bool rc_subject_find_setting(const rc_subject *subject, rc_arena *mem, rc_field *field,
                             const char **value)
{
    while (*field < RC_FIELD_COUNT && subject->cfg->origin[*field].kind == RC_FROM_DEFAULT)
        ++*field;
    return *field < RC_FIELD_COUNT &&
           rc_config_show(subject->cfg, *field, mem, value, NULL) == RC_OK;
}

/* The inputs, and the fix on top of them, as one configuration. */
static rc_code make_config(const rc_check_inputs *inputs, const rc_doc *fix, rc_arena *mem,
                           rc_config **out, rc_error *err)
{
    rc_input *all;
    size_t n = inputs->n;
    rc_doc *root;
    RC_TRY(RC_NEW(mem, &all, n + 1, err));
    memcpy(all, inputs->at, n * sizeof *all);
    if (fix && fix->child) {
        rc_doc *fields;
        RC_TRY(rc_doc_new(mem, RC_DOC_MAP, RC_NOWHERE, &root, err));
        RC_TRY(rc_doc_new(mem, RC_DOC_MAP, RC_NOWHERE, &fields, err));
        fields->child = fix->child;
        fields->last = fix->last;
        fields->n_children = fix->n_children;
        rc_doc_add(root, "fields", RC_NOWHERE, fields);
        all[n++] = (rc_input){root, RC_FROM_OVERRIDE};
    }
    return rc_config_make(all, n, mem, out, err);
}

rc_code rc_check_run(const rc_check_inputs *inputs, const rc_doc *fix, rc_arena *mem,
                     rc_subject *subject, rc_error *err)
{
    rc_config *cfg;
    RC_TRY(make_config(inputs, fix, mem, &cfg, err));
    subject->cfg = cfg;
    if (!subject->has_target) /* the kind of input decides */
        subject->options.target = rc_check_find_target(cfg);
    return rc_check_make(cfg, &subject->options, mem, &subject->check, err);
}
