/* train/fates.c — what the engine does not model, from the rows of engine_lacks.def.
 *
 * takes  a config
 * gives  the first thing it asks for that the engine would leave out
 */
#include "train/fates.h"

#include <recompute/train.h>

#include <string.h>

static const struct lacking {
    rc_field field;
    int64_t harmless;
    const char *why;
} fields[] = {
#define RC_LACKS(field, harmless, why) {RC_FIELD_##field, harmless, why},
#define RC_LACKS_ARG(scope, name, why)
#include "defs/engine_lacks.def"
#undef RC_LACKS
#undef RC_LACKS_ARG
};

typedef enum scope { MODEL, RUN } scope;
static const struct lacking_arg {
    scope scope;
    const char *name, *why;
} args[] = {
#define RC_LACKS(field, harmless, why)
#define RC_LACKS_ARG(scope, name, why) {scope, name, why},
#include "defs/engine_lacks.def"
#undef RC_LACKS
#undef RC_LACKS_ARG
};

static bool is_asked(const rc_config *cfg, const struct lacking *row)
{
    const void *at = rc_config_value_at(cfg, row->field);
    rc_field_type type = rc_field_find(row->field)->type;
    if (type == RC_FIELD_TYPE_BOOL)
        return *(const rc_field_BOOL *)at;
    int64_t value = type == RC_FIELD_TYPE_INT ? *(const rc_field_INT *)at : RC_NULL_INT;
    return value != RC_NULL_INT ? value != row->harmless : !cfg->origin[row->field].is_null;
}

rc_code rc_train_unsupported(const rc_config *cfg, rc_field field, const char *why,
                             rc_error *err)
{
    return RC_FAIL(err, RC_E_UNSUPPORTED, cfg->origin[field].where,
                   "%s: unsupported by the engine; %s", rc_field_find(field)->key, why);
}

/* "vision-*" is every name that begins so. */
static bool is_named(const char *row, const char *name)
{
    size_t n = strlen(row);
    return row[n - 1] == '*' ? strncmp(row, name, n - 1) == 0 : strcmp(row, name) == 0;
}

static rc_code refuse_args(const rc_config *cfg, scope of, rc_error *err)
{
    for (size_t i = 0; i < cfg->n_unknown; i++) {
        const rc_unknown_key *key = &cfg->unknown[i];
        if (key->fault != RC_KEY_LISTED)
            continue;
        for (size_t k = 0; k < sizeof args / sizeof *args; k++)
            if (args[k].scope == of && is_named(args[k].name, key->path + strlen("--")))
                return RC_FAIL(err, RC_E_UNSUPPORTED, key->where,
                               "%s: unsupported by the engine; %s", key->path, args[k].why);
    }
    return RC_OK;
}

/* Text is read as bytes, which have a vocabulary of their own; another tokenizer's is not known. */
static rc_code refuse_tokenizer(const rc_config *cfg, rc_error *err)
{
    for (size_t i = 0; i < cfg->n_unknown && cfg->vocab_size == RC_NULL_INT; i++) {
        const rc_unknown_key *key = &cfg->unknown[i];
        bool is_tokenizer = is_named("--tokenizer-*", key->path) ||
                            is_named("--vocab-file", key->path) ||
                            is_named("--merge-file", key->path);
        if (key->fault == RC_KEY_LISTED && is_tokenizer)
            return RC_FAIL(err, RC_E_INPUT, key->where,
                           "a tokenizer is not read here, so the size of its vocabulary is not "
                           "known; give --vocab-size or model.vocab_size");
    }
    return RC_OK;
}

rc_code rc_train_refuse_model(const rc_config *cfg, rc_error *err)
{
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (is_asked(cfg, &fields[i]))
            return rc_train_unsupported(cfg, fields[i].field, fields[i].why, err);
    RC_TRY(refuse_args(cfg, MODEL, err));
    return refuse_tokenizer(cfg, err);
}

rc_code rc_train_refuse_run(const rc_config *cfg, rc_error *err)
{
    RC_TRY(rc_config_refuse_foreign(cfg, err));
    RC_TRY(rc_train_refuse_model(cfg, err));
    return refuse_args(cfg, RUN, err);
}
