/* test_cases.c — judges one answer of `recompute diagnose` by a case's expect.json.
 *
 * takes  EXPECT.json ANSWER.json ANSWER.txt
 * gives  exit status 0 when the answer is right, else 1 and every point in which it is not
 *
 * Fields of expect.json: README.md in this folder.
 */
#include <recompute/check.h>
#include <recompute/read.h>

#include "base/file.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct answer {
    const rc_doc *doc;
    const char *text, *json; /* lower case */
    int n_wrong;
} answer;

static const char *text_of(const rc_doc *map, const char *key)
{
    const rc_doc *node = rc_doc_find(map, key);
    return node && node->kind == RC_DOC_STRING ? node->text : "";
}

static void wrong(answer *got, const char *what, const char *want, const char *have)
{
    printf("  %s: expected %s, got %s\n", what, want, have);
    got->n_wrong++;
}

static bool is_among(const char *value, const char *first, const rc_doc *others)
{
    if (strcmp(value, first) == 0)
        return true;
    for (const rc_doc *node = others ? others->child : NULL; node; node = node->next)
        if (strcmp(value, node->text) == 0)
            return true;
    return false;
}

static rc_code lower(const char *from, size_t n, rc_arena *mem, const char **out, rc_error *err)
{
    char *to;
    RC_TRY(RC_NEW(mem, &to, n + 1, err));
    for (size_t i = 0; i < n; i++)
        to[i] = (char)tolower((unsigned char)from[i]);
    *out = to;
    return RC_OK;
}

/* Whether one of the alternatives "a|b" stands in the answer. */
static bool is_mentioned(const answer *got, const char *alternatives)
{
    const char *at = alternatives;
    for (;;) {
        char word[200];
        size_t n = strcspn(at, "|");
        size_t kept = n < sizeof word ? n : sizeof word - 1;
        for (size_t i = 0; i < kept; i++)
            word[i] = (char)tolower((unsigned char)at[i]);
        word[kept] = '\0';
        if (kept > 0 && (strstr(got->text, word) || strstr(got->json, word)))
            return true;
        if (at[n] == '\0')
            return false;
        at += n + 1;
    }
}

static bool is_advised(const answer *got, const char *what)
{
    const rc_doc *actions = rc_doc_find(got->doc, "actions");
    static const char *const keys[] = {"action", "what", "paste"};
    for (const rc_doc *action = actions ? actions->child : NULL; action; action = action->next)
        for (size_t i = 0; i < 3; i++)
            if (strstr(text_of(action, keys[i]), what))
                return true;
    return false;
}

static void judge_must_not(answer *got, const rc_doc *list)
{
    for (const rc_doc *node = list ? list->child : NULL; node; node = node->next) {
        const char *value = strchr(node->text, ':');
        if (!value)
            continue;
        value++;
        bool is_bad = false;
        if (strncmp(node->text, "diagnosis:", 10) == 0)
            is_bad = strcmp(text_of(got->doc, "diagnosis"), value) == 0;
        else if (strncmp(node->text, "stage:", 6) == 0)
            is_bad = strcmp(text_of(got->doc, "stage"), value) == 0;
        else if (strncmp(node->text, "advise:", 7) == 0)
            is_bad = is_advised(got, value);
        if (is_bad)
            wrong(got, "must not", node->text, "just that");
    }
}

static double real_of(const rc_doc *node)
{
    if (!node || (node->kind != RC_DOC_INT && node->kind != RC_DOC_FLOAT))
        return (double)NAN;
    return node->kind == RC_DOC_INT ? (double)node->i : node->f;
}

/* Tolerance: half a percent or 0.01, whichever is larger. */
static void judge_numbers(answer *got, const rc_doc *wanted)
{
    const rc_doc *numbers = rc_doc_find(got->doc, "numbers");
    for (const rc_doc *node = wanted ? wanted->child : NULL; node; node = node->next) {
        const rc_doc *have_node = rc_doc_find(numbers, node->key);
        double want = real_of(node), have = real_of(have_node);
        double room = fabs(want) * 0.005 > 0.01 ? fabs(want) * 0.005 : 0.01;
        if (fabs(want - have) <= room)
            continue;
        char what[120], value[64];
        snprintf(what, sizeof what, "number %s", node->key);
        snprintf(value, sizeof value, "%g", have);
        wrong(got, what, node->text ? node->text : "a number", have_node ? value : "nothing");
    }
}

/* By meaning: the ids are the same, or the wanted one is another collection's name for the rule
 * (several rules may share such a name: one for the command line, one for the model's build). */
static bool is_same_rule(const char *have, const char *want)
{
    const rc_rule_facts *rule = rc_rule_find(have);
    const char *other = rule ? rc_rule_other_name(rule) : NULL;
    return strcmp(have, want) == 0 || (rule && rule == rc_rule_find(want)) ||
           (other && strcmp(other, want) == 0);
}

static void judge_rule(answer *got, const char *rule, const char *level)
{
    const rc_doc *findings = rc_doc_find(got->doc, "findings");
    for (const rc_doc *finding = findings ? findings->child : NULL; finding;
         finding = finding->next) {
        if (!is_same_rule(text_of(finding, "rule"), rule))
            continue;
        if (*level == '\0' || strcmp(text_of(finding, "level"), level) == 0)
            return;
        wrong(got, rule, level, text_of(finding, "level"));
        return;
    }
    wrong(got, "rule", rule, "no such finding");
}

static void judge(answer *got, const rc_doc *expect)
{
    const char *diagnosis = text_of(got->doc, "diagnosis"), *stage = text_of(got->doc, "stage");
    if (!is_among(diagnosis, text_of(expect, "diagnosis"), rc_doc_find(expect, "also_accept")))
        wrong(got, "diagnosis", text_of(expect, "diagnosis"), diagnosis);
    if (!is_among(stage, text_of(expect, "stage"), rc_doc_find(expect, "also_accept_stage")))
        wrong(got, "stage", text_of(expect, "stage"), stage);
    const rc_doc *mentions = rc_doc_find(expect, "must_mention");
    for (const rc_doc *node = mentions ? mentions->child : NULL; node; node = node->next)
        if (!is_mentioned(got, node->text))
            wrong(got, "must mention", node->text, "no such word");
    judge_must_not(got, rc_doc_find(expect, "must_not"));
    judge_numbers(got, rc_doc_find(expect, "numbers"));
    const char *level = text_of(expect, "rule_level");
    /* "version-dependent" findings may have any level. */
    if (strcmp(level, "warning") != 0 && strcmp(level, "error") != 0)
        level = "";
    if (text_of(expect, "invalid_rule")[0])
        judge_rule(got, text_of(expect, "invalid_rule"), level);
    const rc_doc *also = rc_doc_find(expect, "also_rules");
    for (const rc_doc *node = also ? also->child : NULL; node; node = node->next)
        judge_rule(got, node->text, "");
}

static rc_code run(char **argv, rc_arena *mem, int *n_wrong, rc_error *err)
{
    rc_doc *expect, *doc;
    answer got = {.n_wrong = 0};
    const char *bytes;
    size_t n;
    enum { MOST = 16 << 20 };
    RC_TRY(rc_file_read(argv[1], MOST, mem, &bytes, &n, err));
    RC_TRY(rc_json_read(argv[1], bytes, n, mem, &expect, err));
    RC_TRY(rc_file_read(argv[2], MOST, mem, &bytes, &n, err));
    RC_TRY(rc_json_read(argv[2], bytes, n, mem, &doc, err));
    RC_TRY(lower(bytes, n, mem, &got.json, err));
    RC_TRY(rc_file_read(argv[3], MOST, mem, &bytes, &n, err));
    RC_TRY(lower(bytes, n, mem, &got.text, err));
    got.doc = doc;
    judge(&got, expect);
    *n_wrong = got.n_wrong;
    return RC_OK;
}

int main(int argc, char **argv)
{
    rc_error err = {.code = RC_OK};
    int n_wrong = 0;
    if (argc != 4) {
        fprintf(stderr, "usage: test_cases EXPECT.json ANSWER.json ANSWER.txt\n");
        return 2;
    }
    rc_arena *mem = rc_arena_open();
    rc_code code = mem ? run(argv, mem, &n_wrong, &err) : RC_E_MEMORY;
    if (code != RC_OK)
        printf("  %s:%d: %s\n", err.where.file ? err.where.file : "", err.where.line, err.msg);
    rc_arena_close(mem);
    return code != RC_OK || n_wrong > 0;
}
