/* make.h — the state of rc_config_make, shared by the files that read the different dialects. */
#ifndef RC_CONFIG_MAKE_H
#define RC_CONFIG_MAKE_H

#include "config/assign.h"
#include "config/index.h"

/* A row of aliases.def or hf.def. */
typedef struct rc_alias {
    const char *name, *when;
    const rc_assign *settings;
} rc_alias;
typedef enum rc_dialect { RC_DIALECT_ARGS, RC_DIALECT_BRIDGE, RC_DIALECT_HF } rc_dialect;

typedef struct rc_aliases {
    const rc_alias *at;
    size_t n;
} rc_aliases;
rc_aliases rc_aliases_find(rc_dialect dialect);

/* A row to apply when the input is read. */
typedef struct rc_late {
    rc_dialect dialect;
    const rc_alias *row;
    const rc_doc *node;
    rc_origin_kind kind;
} rc_late;

typedef struct rc_maker {
    rc_config *cfg;
    rc_arena *mem;
    /* all of them, for interpolations */
    const rc_input *inputs;
    size_t n_inputs;
    /* of the input being read */
    rc_origin_kind kind;

    /* "model.num_layers" to field; made on first use, as are the others */
    rc_names keys;
    /* "model" */
    rc_names prefixes;
    /* "num_layers" to field */
    rc_names names;
    /* "num_layers" of --num-layers to field */
    rc_names flags;
    /* per dialect: name to its first row */
    rc_names aliases[3];

    rc_late *late;
    size_t n_late, n_late_room;
    /* rows that Bridge applies again when all is read */
    rc_late *setup;
    size_t n_setup, n_setup_room;
    /* the row of `setup` that is being applied */
    const char *through;
    size_t n_unknown_room;
    /* of cfg->unknown */
    size_t n_late_values;
    /* arguments whose nearest was looked for */
    size_t n_unlisted;
} rc_maker;

RC_MUST_CHECK
rc_code rc_maker_prepare_sections(rc_maker *maker, rc_error *err);
RC_MUST_CHECK
rc_code rc_maker_prepare_flat(rc_maker *maker, rc_error *err);
RC_MUST_CHECK
rc_code rc_maker_prepare_aliases(rc_maker *maker, rc_dialect dialect, rc_error *err);

/* The first row for `name`, or NULL. */
const rc_alias *rc_maker_find_alias(const rc_maker *maker, rc_dialect dialect,
                                    const char *name);
/* Applies the rows of `row`'s name whose `when` fits the node. *is_known: did one fit? */
RC_MUST_CHECK
rc_code rc_maker_apply(rc_maker *maker, rc_dialect dialect, const rc_alias *row,
                       const rc_doc *node, bool *is_known, rc_error *err);
RC_MUST_CHECK
rc_code rc_maker_set(rc_maker *maker, rc_field field, const rc_doc *node, const char *shown,
                     rc_error *err);
RC_MUST_CHECK
rc_code rc_maker_note_unknown(rc_maker *maker, const char *path, const rc_doc *node,
                              rc_error *err);
/* Notes a key or value that is at fault. */
RC_MUST_CHECK
rc_code rc_maker_note(rc_maker *maker, rc_unknown_key unknown, rc_error *err);
/* Notes what Megatron-LM's parser would stop at, or not know here. `is_known`: it is a setting. */
RC_MUST_CHECK
rc_code rc_maker_judge_arg(rc_maker *maker, const rc_doc *node, rc_field known, bool is_known,
                           rc_error *err);
/* Notes that a known setting's value is known only to the running job. */
RC_MUST_CHECK
rc_code rc_maker_note_value(rc_maker *maker, rc_field field, const char *path, rc_where where,
                            rc_error *err);
/* A later input gives the value. */
void rc_maker_forget_value(rc_maker *maker, rc_field field);

RC_MUST_CHECK
rc_code rc_maker_defer(rc_maker *maker, rc_dialect dialect, const rc_alias *row,
                       const rc_doc *node, rc_error *err);
/* Applies the settings of a row; `node` is what called for them. */
RC_MUST_CHECK
rc_code rc_maker_apply_settings(rc_maker *maker, const rc_assign *settings, const rc_doc *node,
                                int depth, rc_error *err);
/* What a model_type sets. */
RC_MUST_CHECK
rc_code rc_maker_apply_family(rc_maker *maker, rc_family family, const rc_doc *node,
                              rc_error *err);
const rc_assign *rc_family_settings(rc_family family);
/* The opposite of what the node says, as a boolean. */
RC_MUST_CHECK
rc_code rc_maker_negate(rc_maker *maker, const rc_doc *node, rc_doc **out, rc_error *err);

rc_framework rc_inputs_framework(const rc_input *inputs, size_t n_inputs);

/* {preset: NAME} */
RC_MUST_CHECK
rc_code rc_maker_read_preset(rc_maker *maker, const rc_doc *node, rc_error *err);

/* Reads a flat map in the dialect of Megatron-LM, of TransformerConfig or of Hugging Face. */
RC_MUST_CHECK
rc_code rc_maker_read_args(rc_maker *maker, const rc_doc *map, rc_error *err);
RC_MUST_CHECK
rc_code rc_maker_read_arg(rc_maker *maker, const rc_doc *node, rc_error *err);
RC_MUST_CHECK
rc_code rc_maker_read_names(rc_maker *maker, const rc_doc *map, rc_error *err);
RC_MUST_CHECK
rc_code rc_maker_read_hf(rc_maker *maker, const rc_doc *map, rc_error *err);
/* Notes that the engine does not compute a model_type of Hugging Face, where it does not. */
RC_MUST_CHECK
rc_code rc_maker_judge_family(rc_maker *maker, const char *name, rc_where where, rc_error *err);

#endif
