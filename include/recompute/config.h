/* config.h — rc_config: every setting as a typed field, and where each value came from.
 *
 * Fields carry Megatron's own names (src/defs/fields.def, one row each). `null` is a value:
 * an INT is then RC_NULL_INT, a REAL NAN, a BOOL false, a STR NULL, a LIST has at == NULL (an
 * empty list has at != NULL and n == 0), a RAW NULL. `origin[RC_FIELD_x].is_null` says it for all
 * types. RAW is for the few settings that may be of several types; the check reads the node.
 */
#ifndef RECOMPUTE_CONFIG_H
#define RECOMPUTE_CONFIG_H

#include <recompute/arena.h>
#include <recompute/doc.h>
#include <recompute/error.h>
#include <recompute/table.h>

#include <stdio.h>

RC_EXTERN_C_BEGIN

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
typedef const rc_doc *rc_field_RAW;

typedef enum rc_field_type {
    RC_FIELD_TYPE_INT,
    RC_FIELD_TYPE_BYTES,
    RC_FIELD_TYPE_REAL,
    RC_FIELD_TYPE_BOOL,
    RC_FIELD_TYPE_STR,
    RC_FIELD_TYPE_LIST,
    RC_FIELD_TYPE_RAW
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
    /* of the value in the user's input */
    rc_where where;
    /* the raw value, NULL for defaults: its kind tells 2 from 2.0 and true */
    const rc_doc *node;
    /* "mixed_precision.fp8": the key of Bridge that wins over the field's own; or NULL */
    const char *through;
} rc_origin;

/* What is wrong with a key. Megatron-LM's parser stops at an argument that it does not list, and at
 * a value that is none of an argument's choices. */
typedef enum rc_key_fault {
    RC_KEY_NO_FIELD,   /* of nothing we know */
    RC_KEY_LISTED,     /* an argument of Megatron-LM that no setting of ours stands for */
    RC_KEY_NOT_LISTED, /* no argument of Megatron-LM */
    RC_KEY_GONE,       /* an argument of long ago */
    RC_KEY_CLASS,      /* _target_ of a section: the class that Bridge makes of it */
    RC_KEY_NO_CHOICE   /* its value is none of the choices */
} rc_key_fault;

/* A key of the input that is no field, or a field's value that only the running job knows (a
 * substitution in a script, ${oc.env:N} in YAML): the field then keeps the value it had. */
typedef struct rc_unknown_key {
    /* "model.num_layer", "--num-layer" */
    const char *path;
    /* of the key, or of that value */
    rc_where where;
    bool is_value;
    /* of that value; RC_FIELD_COUNT for a key */
    rc_field field;
    rc_key_fault fault;
    /* what to write, where that is known; or NULL */
    const char *instead;
    /* what is given for it */
    const rc_doc *node;
} rc_unknown_key;

/* The key of the field that was probably meant by an unknown path, or NULL where none is near. The same
 * name in another section comes first. Not asked while reading: a file of Bridge has hundreds of keys
 * that are none of ours. */
RC_API const char *rc_field_nearest(const char *path);

/* Whose rules and defaults the inputs call for. */
typedef enum rc_framework {
    RC_FRAMEWORK_BRIDGE,      /* sections, as in Megatron Bridge and our own files */
    RC_FRAMEWORK_MEGATRON_LM, /* an argument line, script or dump */
    RC_FRAMEWORK_CORE         /* fields of TransformerConfig alone */
} rc_framework;

/* The first thing in a Hugging Face config.json that the engine does not compute, or that is unknown.
 * It does not matter to a judge of a Megatron job; whoever computes the model must refuse it. */
typedef struct rc_foreign {
    rc_where where;
    /* a whole message; NULL: there is none */
    const char *says;
} rc_foreign;

typedef struct rc_config {
#define RC_FIELD(name, key, type, dflt, flag, help) rc_field_##type name;
#include "defs/fields.def"
#undef RC_FIELD
    rc_origin origin[RC_FIELD_COUNT];
    rc_unknown_key *unknown;
    size_t n_unknown;
    rc_foreign foreign;
    rc_framework framework;
} rc_config;

/* Facts of a field, from its row. */
typedef struct rc_field_facts {
    const char *name, *key, *dflt, *flag, *help;
    rc_field_type type;
} rc_field_facts;

/* A field's row; `field` is below RC_FIELD_COUNT. */
RC_API const rc_field_facts *rc_field_find(rc_field field);
/* As people write it: the key, or the name of a field that has none. */
RC_API const char *rc_field_key(rc_field field);

/* The switch of Megatron-LM's command line that sets a BOOL field to that value, as `--no-rope-fusion`
 * for apply_rope_fusion false, into buf, which has `room` bytes; false when there is none. */
RC_API bool rc_field_switch(rc_field field, bool value, char *buf, size_t room);

/* The field with that name (`num_layers`), or RC_FIELD_COUNT. */
RC_API rc_field rc_field_find_name(const char *name);

/* A built-in model (src/defs/presets.def). */
typedef struct rc_preset {
    /* family: a model_type of Hugging Face */
    const char *name, *family;
    /* whose config.json, or which paper */
    const char *source;
    const char *settings;
} rc_preset;

/* All of them: *n rows. */
RC_API const rc_preset *rc_preset_list(size_t *n);
/* By name, written as people do (Llama-3.1-8B), or by its source; NULL when there is none. */
RC_API const rc_preset *rc_preset_find(const char *name);

/* One source of settings: a map of sections as Bridge writes them, {model: {num_layers: 4}}.
 * Four sections are flat maps with names of another program:
 *   megatron_args  Megatron-LM arguments by name, dashes as underscores; a switch is true
 *   hf_config      a Hugging Face config.json
 *   core           fields of TransformerConfig by name, as in the rules of Megatron Core
 *   fields         our field names, saying nothing about a framework (presets)
 * {preset: NAME} is a built-in model. Any other scalar outside the sections is read as in
 * megatron_args, then by field name. */
typedef struct rc_input {
    const rc_doc *doc;
    rc_origin_kind kind;
} rc_input;

typedef struct rc_inputs {
    rc_input *at;
    size_t n;
    /* whose rules they call for: what `--for` overrides */
    rc_framework framework;
    /* paths read, in order */
    const char **files;
    size_t n_files;
} rc_inputs;

/**
 * The inputs that the words of a command line name, in order.
 *
 * takes   words   paths ("-" is standard input), key=value overrides, Megatron-LM arguments with
 *                 their values, --model NAME; mixed as people mix them. A word behind an argument
 *                 is its value unless it is an override or the path of a file
 * gives   *out    consecutive overrides and arguments are one input each
 * errors  as rc_doc_read, rc_override_read; positions on the command line are word:column
 */
RC_MUST_CHECK
RC_API rc_code rc_inputs_read(const char *const *words, size_t n_words, rc_arena *mem,
                              rc_inputs *out, rc_error *err);

/* The same words without opening a file, where each file is a configuration of its own.
 *
 * takes   words  as rc_inputs_read
 * gives   *out   `files` lists the paths, folders too, and `at` the other inputs
 * errors  RC_E_INPUT, RC_E_RANGE as rc_override_read */
RC_MUST_CHECK
RC_API rc_code rc_inputs_read_settings(const char *const *words, size_t n_words, rc_arena *mem,
                                       rc_inputs *out, rc_error *err);
/* "bridge", "megatron-lm", "core" */
RC_API const char *rc_framework_name(rc_framework framework);

/**
 * The settings of one run, later inputs winning over earlier ones.
 *
 * takes   inputs  borrowed; must outlive the config
 * gives   *out    every field set; nothing derived yet: what was null is null
 * errors  RC_E_INPUT with the position when a value is not of its field's type
 * cost    one pass over the inputs; a table of the field names is built once per call
 */
RC_MUST_CHECK
RC_API rc_code rc_config_make(const rc_input *inputs, size_t n_inputs, rc_arena *mem,
                              rc_config **out, rc_error *err);

/* Fails where cfg->foreign says something.
 * errors  RC_E_UNSUPPORTED with its message and position */
RC_MUST_CHECK
RC_API rc_code rc_config_refuse_foreign(const rc_config *cfg, rc_error *err);

/* Fails always.
 *
 * takes   unknown  a key that must not be passed over
 * errors  RC_E_INPUT at the key, naming the nearest known one, or the section in which that name stands */
RC_MUST_CHECK
RC_API rc_code rc_config_refuse_key(const rc_unknown_key *unknown, rc_error *err);
/* One stable text form, for --dump and tests. */
RC_API void rc_config_print(const rc_config *cfg, FILE *to);

/* For people and programs.
 *
 * gives   *out  a row per field: its value and where it came from
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_config_table(const rc_config *cfg, rc_arena *mem, rc_table **out,
                               rc_error *err);

/* Fails where a field that is needed is null.
 *
 * takes   field  below RC_FIELD_COUNT
 * errors  RC_E_INPUT with its position */
RC_MUST_CHECK
RC_API rc_code rc_config_need(const rc_config *cfg, rc_field field, rc_error *err);

/* A config from a flat map of TransformerConfig fields, as one line of `--jsonl` has it.
 *
 * takes   fields  must outlive the config
 * gives   *out    as rc_config_make
 * errors  as rc_config_make; RC_E_INPUT for what is no map */
RC_MUST_CHECK
RC_API rc_code rc_config_from_core_json(const rc_doc *fields, rc_arena *mem, rc_config **out,
                                        rc_error *err);

/* Where the field's value stands: an rc_field_TYPE of the field's type. */
RC_API const void *rc_config_value_at(const rc_config *cfg, rc_field field);

/* A field's value as text.
 *
 * takes   field  below RC_FIELD_COUNT
 * gives   *out   in YAML's notation: "null", "4", "[core_attn]"
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_config_show(const rc_config *cfg, rc_field field, rc_arena *mem,
                              const char **out, rc_error *err);
/* "default", "file", ... */
RC_API const char *rc_origin_kind_name(rc_origin_kind kind);

/* What a setting resolves to when it is null, as Megatron derives it; RC_NULL_INT when what it
 * derives from is null too. */

/* d: kv_channels, or h/a.
 * source  Megatron-LM megatron/core/transformer/transformer_config.py, __post_init__ */
RC_API int64_t rc_config_head_dim(const rc_config *cfg);

/* g: num_query_groups, or a; a too where Megatron-LM's command line lacks --group-query-attention.
 * source  as above; megatron/training/arguments.py, core_transformer_config_from_args */
RC_API int64_t rc_config_groups(const rc_config *cfg);

/* f: ffn_hidden_size, or 4h; on Megatron-LM's command line with a gated unit 8h/3 rounded down to a multiple
 * of 64 (int((4 * h * 2 / 3) / 64) * 64), so that parameters stay as many.
 * source  as above; megatron/training/arguments.py, validate_args */
RC_API int64_t rc_config_ffn(const rc_config *cfg);

/* V padded to a multiple of make_vocab_size_divisible_by * t; `tokenizer_size` is used where vocab_size is
 * null (256 + 1 for bytes).
 * source  Megatron-LM, _vocab_size_with_padding */
RC_API int64_t rc_config_vocab(const rc_config *cfg, int64_t tokenizer_size);

RC_EXTERN_C_END

#endif
