/* check.h — the pieces of `recompute check`: one file per form of output. Each says which others it stands on. */
#ifndef RC_CLI_CHECK_H
#define RC_CLI_CHECK_H

#include "cli.h"

#include <recompute/check.h>

#include <stdio.h>

/* One configuration under check. */
typedef struct rc_subject {
    /* as named on the command line, or "command line" */
    const char *path;
    const rc_config *cfg;
    rc_check *check;
    rc_check_options options;
    /* options.target is asked for; else the kind of input decides */
    bool has_target;
    /* why, and then there is no cfg; else NULL */
    const char *unreadable;
    /* of what cannot be read */
    rc_where where;
} rc_subject;

/* How results are shown. */
typedef struct rc_check_show {
    /* print notes too */
    bool has_notes;
    /* warnings count as errors */
    bool is_strict;
    /* and every value that is set, with its source */
    bool has_origins;
    bool has_colour;
} rc_check_show;

const char *rc_check_target_name(rc_check_target target);
/* false, and *out is left, when none has that name */
bool rc_check_target_find(const char *name, rc_check_target *out);
/* 0 clean, 1 findings that count, 2 unreadable. */
int rc_subject_status(const rc_subject *subject, const rc_check_show *show);

/* The first field at or behind *field that is not at its default, and its value as YAML; false at the
 * end, or out of memory. */
bool rc_subject_find_setting(const rc_subject *subject, rc_arena *mem, rc_field *field,
                             const char **value);

/* Text or null as JSON. */
void rc_check_write_text_or_null(const char *text, FILE *to);

void rc_check_write_people(const rc_subject *subject, const rc_check_show *show, FILE *to);
void rc_check_write_json(const rc_subject *subjects, size_t n, const rc_check_show *show,
                         FILE *to);
RC_MUST_CHECK
rc_code rc_check_write_sarif(const rc_subject *subjects, size_t n, rc_arena *mem, FILE *to,
                             rc_error *err);
/* Findings as rows, in any of the formats of tables, to standard output. */
RC_MUST_CHECK
rc_code rc_check_write_table(const rc_subject *subjects, size_t n, const rc_check_show *show,
                             rc_format format, rc_arena *mem, rc_error *err);
/* One rule with an example. */
RC_MUST_CHECK
rc_code rc_check_explain(const char *id, bool is_json, FILE *to, rc_error *err);

/* One configuration of config-class fields a line in, one JSON verdict a line out (cli/check_jsonl.c).
 * *status becomes 1 when a line is rejected, 2 when one cannot be read. */
RC_MUST_CHECK
rc_code rc_check_jsonl(const char *path, const rc_check_options *options, FILE *to, int *status,
                       rc_error *err);

/* What is combined into one configuration, later ones winning. */
typedef struct rc_check_inputs {
    rc_input *at;
    size_t n;
    /* the one that --write edits, or NULL */
    const rc_doc *file;
} rc_check_inputs;

/* What the words of the command line ask for. */
typedef struct rc_check_plan {
    /* each a configuration of its own; "command line" when none was named */
    const char **paths;
    size_t n_paths, n_room;
    /* --model: below every file */
    rc_input *presets;
    size_t n_presets;
    /* --with: on top of every file */
    rc_input *with;
    size_t n_with;
    /* arguments and overrides: on top of all */
    rc_input *settings;
    size_t n_settings;
    /* the one path is "command line" */
    bool has_no_file;
} rc_check_plan;

RC_MUST_CHECK
rc_code rc_check_plan_make(const rc_args *args, rc_arena *mem, rc_check_plan *out,
                           rc_error *err);
/* The inputs of one path, which is read here. */
RC_MUST_CHECK
rc_code rc_check_plan_read(const rc_check_plan *plan, const char *path, rc_arena *mem,
                           rc_check_inputs *out, rc_error *err);

/* Makes the configuration, with `fix` (field names to values, or NULL) on top, and checks it. */
RC_MUST_CHECK
rc_code rc_check_run(const rc_check_inputs *inputs, const rc_doc *fix, rc_arena *mem,
                     rc_subject *subject, rc_error *err);

/**
 * Fixes findings of `level` and above until none is left that a rule can fix by itself.
 *
 * gives  *fix    MAP of settings to change; empty when there is nothing to do
 *        *after  the configuration with them
 */
RC_MUST_CHECK
rc_code rc_check_fix(const rc_check_inputs *inputs, const rc_subject *subject, rc_level level,
                     rc_arena *mem, const rc_doc **fix, rc_subject *after, rc_error *err);
/* Edits the YAML file in place: values only, comments and layout stay. Atomic. */
RC_MUST_CHECK
rc_code rc_check_write_yaml(const rc_subject *subject, const rc_doc *file, const rc_doc *fix,
                            rc_arena *mem, rc_error *err);

#endif
