/* config.h — rc_config: every setting as a typed field, and where each value came from.
 *
 * Fields carry Megatron's own names (src/defs/fields.def, one row each). `null` is a value:
 * an INT is then RC_NULL_INT, a REAL NAN, a BOOL false, a STR NULL, a LIST has at == NULL (an
 * empty list has at != NULL and n == 0). `origin[RC_FIELD_x].is_null` says it for all types.
 */
#ifndef RECOMPUTE_CONFIG_H
#define RECOMPUTE_CONFIG_H

#include <recompute/arena.h>
#include <recompute/doc.h>
#include <recompute/error.h>
#include <recompute/table.h>

#include <stdio.h>

#define RC_NULL_INT INT64_MIN

typedef struct rc_strings {
    const char **at;
    size_t n;
} rc_strings;

typedef int64_t rc_field_INT;
typedef int64_t rc_field_BYTES;
typedef double rc_field_REAL;
typedef bool rc_field_BOOL;
typedef const char *rc_field_STR;
typedef rc_strings rc_field_LIST;

typedef enum rc_field_type {
    RC_FIELD_TYPE_INT,
    RC_FIELD_TYPE_BYTES,
    RC_FIELD_TYPE_REAL,
    RC_FIELD_TYPE_BOOL,
    RC_FIELD_TYPE_STR,
    RC_FIELD_TYPE_LIST
} rc_field_type;

typedef enum rc_field {
#define RC_FIELD(name, key, type, dflt, flag, help) RC_FIELD_##name,
#include "defs/fields.def" /* installed beside this header */
#undef RC_FIELD
    RC_FIELD_COUNT
} rc_field;

typedef enum rc_origin_kind {
    RC_FROM_DEFAULT,
    RC_FROM_PRESET,   /* --model NAME */
    RC_FROM_FILE,     /* a config file */
    RC_FROM_FLAG,     /* a Megatron-LM argument */
    RC_FROM_OVERRIDE, /* key=value on the command line */
    RC_FROM_DERIVED   /* a null that another field decides, as the framework does */
} rc_origin_kind;

typedef struct rc_origin {
    rc_origin_kind kind;
    bool is_null;
    rc_where where;     /* of the value in the user's input */
    const rc_doc *node; /* the raw value, NULL for defaults: its kind tells 2 from 2.0 and true */
} rc_origin;

/* A key of the input that is no field. */
typedef struct rc_unknown_key {
    const char *path; /* "model.num_layer" */
    rc_where where;
    const char *nearest; /* known key to suggest, or NULL */
} rc_unknown_key;

typedef struct rc_config {
#define RC_FIELD(name, key, type, dflt, flag, help) rc_field_##type name;
#include "defs/fields.def"
#undef RC_FIELD
    rc_origin origin[RC_FIELD_COUNT];
    rc_unknown_key *unknown;
    size_t n_unknown;
} rc_config;

/* Facts of a field, from its row. */
typedef struct rc_field_facts {
    const char *name, *key, *dflt, *flag, *help;
    rc_field_type type;
} rc_field_facts;
RC_API const rc_field_facts *rc_field_find(rc_field field);

/* One source of settings, a map of sections as Bridge writes them: {model: {num_layers: 4}}. */
typedef struct rc_input {
    const rc_doc *doc;
    rc_origin_kind kind;
} rc_input;

/**
 * The settings of one run, later inputs winning over earlier ones.
 *
 * takes   inputs  borrowed; must outlive the config
 * gives   *out    every field set; nothing derived yet: what was null is null
 * errors  RC_E_INPUT with the position when a value is not of its field's type
 */
RC_MUST_CHECK
RC_API rc_code rc_config_make(const rc_input *inputs, size_t n_inputs, rc_arena *mem,
                              rc_config **out, rc_error *err);
/* Fails with RC_E_INPUT at the first unknown key, naming the nearest known one. */
RC_MUST_CHECK
RC_API rc_code rc_config_refuse_unknown(const rc_config *cfg, rc_error *err);
RC_API void rc_config_print(const rc_config *cfg, FILE *to);
RC_MUST_CHECK
RC_API rc_code rc_config_table(const rc_config *cfg, rc_arena *mem, rc_table **out,
                               rc_error *err);

/* What a setting resolves to when it is null, as Megatron derives it. */
RC_API int64_t rc_config_head_dim(const rc_config *cfg);   /* d */
RC_API int64_t rc_config_groups(const rc_config *cfg);     /* g */
RC_API int64_t rc_config_ffn(const rc_config *cfg);        /* f */
/* V padded; `tokenizer_size` is used where vocab_size is null (256 + 1 for bytes). */
RC_API int64_t rc_config_vocab(const rc_config *cfg, int64_t tokenizer_size);

#endif
