/* check_explain.c — one rule, told with an example.
 *
 * above  check_json.c
 */
#include "check.h"

#include "base/text.h"

#include <string.h>

/* The samples of tests/rules/, put into the program when it is built. */
typedef struct sample {
    const char *rule, *bad, *good;
} sample;

static const sample samples[] = {
#include "rule_samples.inc"
    {NULL, NULL, NULL},
};

static const sample *find_sample(const rc_rule_facts *rule)
{
    for (const sample *at = samples; at->rule; at++)
        if (strcmp(at->rule, rule->name) == 0)
            return at;
    return NULL;
}

static void write_indented(const char *text, FILE *to)
{
    while (*text) {
        size_t n = strcspn(text, "\n");
        fprintf(to, "    %.*s\n", (int)n, text);
        text += n + (text[n] == '\n');
    }
}

static void write_people(const rc_rule_facts *rule, FILE *to)
{
    char id[RC_RULE_ID_ROOM], source[256], releases[RC_RULE_RELEASES_ROOM];
    const char *other = rc_rule_other_name(rule);
    const sample *example = find_sample(rule);
    fprintf(to, "%s: %s, layer %s\n", rc_rule_id(rule, id), rc_level_name(rule->level),
            rc_layer_name(rule->layer));
    if (other)
        fprintf(to, "also known as %s\n", other);
    fprintf(to, "\n%s.\n\n", rule->reason);
    fprintf(to, "settings: %s\n", *rule->fields ? rule->fields : "any");
    fprintf(to, "releases of Megatron Core: %s\n", rc_rule_releases(rule, releases));
    if (rule->effect != RC_EFFECT_ACCEPTS)
        fprintf(to, "source: %s\n", rc_rule_source(rule, source, sizeof source));
    if (*rule->fix)
        fprintf(to, "write instead: %s\n", rule->fix);
    if (!example)
        return;
    fprintf(to, "\nfires on:\n\n");
    write_indented(example->bad, to);
    fprintf(to, "\nand not on:\n\n");
    write_indented(example->good, to);
}

static void write_member(const char *key, const char *text, FILE *to)
{
    fprintf(to, ", \"%s\": ", key);
    rc_check_write_text_or_null(text, to);
}

static void write_json(const rc_rule_facts *rule, FILE *to)
{
    char id[RC_RULE_ID_ROOM], source[256], releases[RC_RULE_RELEASES_ROOM];
    const sample *example = find_sample(rule);
    fputs("{\"rule\": ", to);
    rc_json_write_string(rc_rule_id(rule, id), to);
    write_member("also_known_as", rc_rule_other_name(rule), to);
    write_member("layer", rc_layer_name(rule->layer), to);
    write_member("level", rc_level_name(rule->level), to);
    write_member("releases", rc_rule_releases(rule, releases), to);
    write_member("settings", rule->fields, to);
    write_member("reason", rule->reason, to);
    write_member("fix", rule->fix, to);
    write_member("source",
                 rule->effect != RC_EFFECT_ACCEPTS ? rc_rule_source(rule, source, sizeof source)
                                                   : NULL,
                 to);
    write_member("bad", example ? example->bad : NULL, to);
    write_member("good", example ? example->good : NULL, to);
    fputs("}\n", to);
}

rc_code rc_check_explain(const char *id, bool is_json, FILE *to, rc_error *err)
{
    const rc_rule_facts *rule = rc_rule_find(id);
    char nearest_buf[RC_RULE_ID_ROOM], safe[80];
    if (!rule) {
        const char *nearest = rc_rule_nearest(id, nearest_buf);
        return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE,
                       "no rule is called %s%s%s%s `recompute list rules` prints them",
                       rc_text_printable(id, strlen(id), safe, sizeof safe),
                       nearest ? ", did you mean " : "", nearest ? nearest : "",
                       nearest ? "?" : ";");
    }
    if (is_json)
        write_json(rule, to);
    else
        write_people(rule, to);
    return RC_OK;
}
