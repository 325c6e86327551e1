/* test_rules.c — the rules of `recompute check` on samples and on a corpus.
 *
 *   test_rules table FOLDER           every row of rules.def has its two samples
 *   test_rules sample FOLDER RULE...  RULE.bad.* gives the finding, RULE.good.* does not
 *   test_rules near FOLDER FILE       near misses: one clause of a rule's condition a line
 *   test_rules corpus FILE            every line's verdict, first rule, warnings, effective values
 *
 * A sample may begin with comments: `# te 2.5.0`, `# megatron 0.15` set the versions, `# also a b`
 * names errors that the bad one cannot help giving too. Exit 77 where the corpus is not there.
 *
 * A table of near misses has a rule's name at the margin and under it lines of
 *
 *     fires|first|silent  BASE  WORDS...  => TEXT  # why
 *
 * and `with WORDS...` lines, whose words stand before those of the lines behind it, up to the next one.
 *
 * BASE is `bad` or `good`, the rule's sample, another one's as RULE.bad, or `none`; WORDS are laid over
 * it as on a command line (overrides of Bridge, arguments of Megatron-LM), and te:2.5.0, megatron:0.15
 * and also:RULE do what the comments of a sample do. The message holds TEXT, or ends with it (TEXT$);
 * `first` is what the framework dies of. But for `also`, the framework accepts what a line describes, or
 * refuses it by this rule alone.
 */
#include "base/file.h"

#include <recompute/check.h>
#include <recompute/read.h>
#include <recompute/train.h>

#include <stdlib.h>
#include <string.h>

enum { MOST_WORDS = 32 };

typedef struct sample {
    const char *name;              /* for messages: the file, or the line of a table */
    const char *words[MOST_WORDS]; /* the path, and what is laid over it */
    size_t n_words;
    char also[512], te[32], megatron[16];
    rc_check *check;
} sample;

static int n_wrong;

#define WRONG(...) (n_wrong++, printf(__VA_ARGS__), printf("\n"))

static void stop_on(rc_code code, const rc_error *err, const char *path)
{
    if (code == RC_OK)
        return;
    printf("%s:%d:%d: %s\n", path, err->where.line, err->where.col, err->msg);
    exit(1);
}

/* --- samples */

static bool find_sample(const char *folder, const char *rule, const char *kind, char *path,
                        size_t room)
{
    static const char *const endings[] = {"yaml", "sh"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        snprintf(path, room, "%s/%s.%s.%s", folder, rule, kind, endings[i]);
        if (rc_path_exists(path))
            return true;
    }
    return false;
}

static void read_comment(const char *line, const char *word, char *out, size_t room)
{
    size_t n_word = strlen(word);
    if (strncmp(line, word, n_word) != 0)
        return;
    size_t n = strcspn(line + n_word, "\n");
    snprintf(out, room, "%.*s", (int)n, line + n_word);
}

static void read_comments(sample *one, const char *bytes)
{
    *one->also = '\0';
    snprintf(one->te, sizeof one->te, "2.9.0");
    snprintf(one->megatron, sizeof one->megatron, "main");
    for (const char *line = bytes; *line == '#'; line += strcspn(line, "\n") + 1) {
        read_comment(line, "# te ", one->te, sizeof one->te);
        read_comment(line, "# megatron ", one->megatron, sizeof one->megatron);
        read_comment(line, "# also ", one->also, sizeof one->also);
    }
}

/* What is to be checked, and the versions it is checked for. */
static void open_sample(sample *one, const char *path, rc_arena *mem)
{
    rc_error err = {0};
    const char *bytes;
    size_t n_bytes;
    *one = (sample){.name = path, .words = {path}, .n_words = 1};
    stop_on(rc_file_read(path, RC_READ_MAX_BYTES, mem, &bytes, &n_bytes, &err), &err, path);
    read_comments(one, bytes);
}

static void check_sample(sample *one, bool is_strict, rc_arena *mem)
{
    rc_error err = {0};
    rc_inputs inputs;
    rc_config *cfg;
    stop_on(rc_inputs_read(one->words, one->n_words, mem, &inputs, &err), &err, one->name);
    stop_on(rc_config_make(inputs.at, inputs.n, mem, &cfg, &err), &err, one->name);
    for (size_t i = 0; is_strict && i < cfg->n_unknown; i++)
        if (!cfg->unknown[i].is_value) /* but for what only the job knows */
            stop_on(rc_train_refuse_unknown(cfg, &err), &err, one->name);
    rc_check_options options = {.target = rc_check_find_target(cfg),
                                .megatron = one->megatron,
                                .transformer_engine = one->te,
                                .has_advice = true};
    stop_on(rc_check_make(cfg, &options, mem, &one->check, &err), &err, one->name);
}

static bool is_among(const char *names, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = names; *at; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        if (length == n && strncmp(at, name, n) == 0)
            return true;
        at += length;
    }
    return false;
}

static void test_bad(const char *folder, const rc_rule_facts *rule, rc_arena *mem)
{
    char path[512], id[RC_RULE_ID_ROOM];
    sample one;
    bool is_found = false;
    if (!find_sample(folder, rule->name, "bad", path, sizeof path)) {
        WRONG("%s has no bad sample", rule->name);
        return;
    }
    open_sample(&one, path, mem);
    check_sample(&one, false, mem);
    rc_rule_id(rule, id);
    for (size_t i = 0; i < one.check->findings.n; i++) {
        const rc_finding *finding = &one.check->findings.at[i];
        bool is_it = one.check->rules[i] == rule;
        is_found = is_found || is_it;
        if (is_it && finding->level != rule->level)
            WRONG("%s: level is %s", path, rc_level_name(finding->level));
        if (!is_it && finding->level == RC_LEVEL_ERROR && !is_among(one.also, finding->rule))
            WRONG("%s: also gives %s", path, finding->rule);
    }
    if (!is_found)
        WRONG("%s: gives no %s", path, id);
    if (rule->level == RC_LEVEL_ERROR && is_found && one.check->rules[one.check->first] != rule)
        WRONG("%s: %s is not the first", path, id);
}

static void test_good(const char *folder, const rc_rule_facts *rule, rc_arena *mem)
{
    char path[512];
    sample one;
    if (!find_sample(folder, rule->name, "good", path, sizeof path)) {
        WRONG("%s has no good sample", rule->name);
        return;
    }
    open_sample(&one, path, mem);
    check_sample(&one, false, mem);
    for (size_t i = 0; i < one.check->findings.n; i++)
        if (one.check->rules[i] == rule || one.check->findings.at[i].level == RC_LEVEL_ERROR)
            WRONG("%s: gives %s", path, one.check->findings.at[i].rule);
}

static void test_sample(const char *folder, const char *id, rc_arena *mem)
{
    const rc_rule_facts *rule = rc_rule_find(id);
    if (!rule) {
        WRONG("no rule is called %s", id);
        return;
    }
    test_bad(folder, rule, mem);
    test_good(folder, rule, mem);
}

static void test_table(const char *folder)
{
    char path[512];
    for (size_t i = 0; i < rc_rule_count(); i++) {
        const char *name = rc_rule_find_nth(i)->name;
        if (!find_sample(folder, name, "bad", path, sizeof path) ||
            !find_sample(folder, name, "good", path, sizeof path))
            WRONG("%s lacks a sample in %s", name, folder);
    }
    printf("%zu rules\n", rc_rule_count());
}

/* --- near misses */

typedef struct near_line {
    const char *file;
    int line;
    const rc_rule_facts *rule;
    char with[1024], words[2048]; /* of lines before; and of this one behind them */
    bool fires, is_first;         /* the framework dies of it */
    const char *text;             /* what the message holds, or NULL */
    sample one;
} near_line;

#define WRONG_LINE(near, ...)                                                                  \
    (printf("%s:%d: %s: ", (near)->file, (near)->line, (near)->rule->name), WRONG(__VA_ARGS__))

/* `bad`, `good`, another rule's as RULE.bad, or `none`. */
static bool open_base(near_line *near, const char *folder, const char *base, rc_arena *mem)
{
    const char *dot = strchr(base, '.'), *kind = dot ? dot + 1 : base, *path;
    char rule[128], found[512];
    rc_error err = {0};
    if (strcmp(base, "none") == 0) {
        near->one = (sample){.te = "2.9.0", .megatron = "main"};
        return true;
    }
    snprintf(rule, sizeof rule, "%.*s", dot ? (int)(dot - base) : 127,
             dot ? base : near->rule->name);
    if (!find_sample(folder, rule, kind, found, sizeof found))
        return false;
    stop_on(rc_arena_printf(mem, &path, &err, "%s", found), &err, found);
    open_sample(&near->one, path, mem);
    return true;
}

static void take_word(sample *one, const char *word)
{
    size_t n_also = strlen(one->also);
    if (strncmp(word, "te:", 3) == 0)
        snprintf(one->te, sizeof one->te, "%s", word + 3);
    else if (strncmp(word, "megatron:", 9) == 0)
        snprintf(one->megatron, sizeof one->megatron, "%s", word + 9);
    else if (strncmp(word, "also:", 5) == 0)
        snprintf(one->also + n_also, sizeof one->also - n_also, " %s", word + 5);
    else if (one->n_words < MOST_WORDS)
        one->words[one->n_words++] = word;
    else
        WRONG("%s: more than %d words", one->name, MOST_WORDS);
}

/* What stands behind ` => `, or NULL; the comment and the spaces before it go. */
static const char *cut_text(char *line)
{
    char *comment = strstr(line, " #");
    if (comment)
        *comment = '\0';
    for (char *end = line + strlen(line); end > line && end[-1] == ' '; end--)
        end[-1] = '\0';
    char *text = strstr(line, " => ");
    if (text)
        *text = '\0';
    return text ? text + 4 : NULL;
}

/* Splits the line in place; false when it is none of the table's. */
static bool read_near(near_line *near, const char *folder, char *line, rc_arena *mem)
{
    rc_error err = {0};
    near->text = cut_text(line);
    const char *verb = strtok(line, " "), *base = strtok(NULL, " "), *own = strtok(NULL, "");
    near->is_first = verb && strcmp(verb, "first") == 0;
    near->fires = near->is_first || (verb && strcmp(verb, "fires") == 0);
    if (!base || (!near->fires && (strcmp(verb, "silent") != 0 || near->text)) ||
        !open_base(near, folder, base, mem))
        return false;
    stop_on(rc_arena_printf(mem, &near->one.name, &err, "%s:%d", near->file, near->line), &err,
            near->file);
    snprintf(near->words, sizeof near->words, "%s %s", near->with, own ? own : "");
    for (char *word = strtok(near->words, " "); word; word = strtok(NULL, " "))
        take_word(&near->one, word);
    return true;
}

static bool says(const char *reason, const char *text)
{
    size_t n = strlen(text), n_reason = strlen(reason);
    if (n == 0 || text[n - 1] != '$')
        return strstr(reason, text) != NULL;
    return n_reason >= n - 1 && strncmp(reason + n_reason - (n - 1), text, n - 1) == 0;
}

static void compare_near(const near_line *near)
{
    const rc_check *check = near->one.check;
    const char *said = NULL;
    bool is_right = false;
    for (size_t i = 0; i < check->findings.n; i++) {
        const rc_finding *finding = &check->findings.at[i];
        if (check->rules[i] == near->rule) {
            said = finding->reason;
            is_right = is_right || !near->text || says(said, near->text);
        } else if (finding->level == RC_LEVEL_ERROR && !is_among(near->one.also, finding->rule))
            WRONG_LINE(near, "%s refuses it", finding->rule);
    }
    if (near->fires != (said != NULL))
        WRONG_LINE(near, said ? "fires: %s" : "is silent%.0s", said ? said : "");
    else if (said && !is_right)
        WRONG_LINE(near, "says: %s", said);
    else if (near->is_first && (check->is_accepted || check->rules[check->first] != near->rule))
        WRONG_LINE(near, "another one is the first");
}

static void test_near(const char *folder, const char *file, rc_arena *mem)
{
    rc_error err = {0};
    const char *bytes;
    size_t n_bytes, n_lines = 0;
    near_line near = {.file = file};
    stop_on(rc_file_read(file, RC_READ_MAX_BYTES, mem, &bytes, &n_bytes, &err), &err, file);
    for (const char *at = bytes; at < bytes + n_bytes; at += strcspn(at, "\n") + 1) {
        char line[1024];
        snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
        near.line++;
        if (!*line || *line == '#' || strncmp(line, "    #", 5) == 0)
            continue;
        if (*line != ' ') {
            near.rule = rc_rule_find(line);
            *near.with = '\0';
        } else if (strncmp(line, "    with", 8) == 0) {
            snprintf(near.with, sizeof near.with, "%s", line + 8);
        } else if (near.rule) {
            rc_mark mark = rc_arena_mark(mem);
            if (read_near(&near, folder, line, mem)) {
                check_sample(&near.one, true, mem);
                compare_near(&near);
                n_lines++;
            } else
                WRONG_LINE(&near, "the line is not `fires|first|silent BASE WORDS => TEXT`");
            rc_arena_rewind(mem, mark);
        }
        if (!near.rule)
            WRONG("%s:%d: no rule is called %s", file, near.line, line);
    }
    printf("%zu near misses\n", n_lines);
}

/* --- the corpus */

static bool is_same(const rc_doc *a, const rc_doc *b)
{
    if (!a || !b || a->kind != b->kind || a->n_children != b->n_children)
        return a == b;
    if (a->kind == RC_DOC_STRING)
        return strcmp(a->text, b->text) == 0;
    if (a->kind == RC_DOC_MAP) {
        for (const rc_doc *x = a->child; x; x = x->next)
            if (!is_same(x, rc_doc_find(b, x->key)))
                return false;
        return true;
    }
    if (a->kind != RC_DOC_LIST)
        return a->kind == RC_DOC_FLOAT ? !(a->f < b->f) && !(a->f > b->f) : a->i == b->i;
    const rc_doc *y = b->child;
    for (const rc_doc *x = a->child; x; x = x->next, y = y->next)
        if (!is_same(x, y))
            return false;
    return true;
}

static const char *text_of(const rc_doc *line, const char *key)
{
    const rc_doc *value = rc_doc_find(line, key);
    return value && value->kind == RC_DOC_STRING ? value->text : "";
}

static bool has_same_warnings(const rc_doc *line, const rc_check *check)
{
    const rc_doc *expected = rc_doc_find(line, "warnings");
    const rc_doc *one = expected ? expected->child : NULL;
    for (size_t i = 0; i < check->n_warnings; i++, one = one->next)
        if (!one || strcmp(one->text, check->warnings[i]) != 0)
            return false;
    return one == NULL;
}

static void compare(const rc_doc *line, const rc_check *check)
{
    const char *id = text_of(line, "id");
    bool is_accepted = strcmp(text_of(line, "verdict"), "accept") == 0;
    const char *rule = check->is_accepted ? "" : check->findings.at[check->first].rule;
    if (is_accepted != check->is_accepted || strcmp(rule, text_of(line, "rule")) != 0)
        WRONG("%s: expected %s %s, got %s", id, text_of(line, "verdict"), text_of(line, "rule"),
              *rule ? rule : "accept");
    else if (strcmp(text_of(line, "exception"), check->exception ? check->exception : "") != 0)
        WRONG("%s: expected %s", id, text_of(line, "exception"));
    if (!has_same_warnings(line, check))
        WRONG("%s: other warnings", id);
    if (!is_accepted || !check->is_accepted)
        return;
    if (!is_same(rc_doc_find(line, "effective"), check->effective))
        WRONG("%s: other effective values", id);
    if (!is_same(rc_doc_find(line, "effective_other"), check->effective_other))
        WRONG("%s: other effective_other values", id);
}

static void test_line(const char *bytes, size_t n, rc_arena *mem)
{
    rc_error err = {0};
    rc_doc *line;
    rc_check *check;
    rc_check_options options = {.target = RC_CHECK_CORE};
    stop_on(rc_json_read("corpus", bytes, n, mem, &line, &err), &err, "corpus");
    bool is_mla = strcmp(text_of(line, "kind"), "MLATransformerConfig") == 0;
    options.transformer_engine = text_of(line, "te_version");
    if (rc_doc_find(line, "megatron"))
        options.megatron = text_of(line, "megatron");
    stop_on(
        rc_check_make_core(rc_doc_find(line, "config"), is_mla, &options, mem, &check, &err),
        &err, "corpus");
    compare(line, check);
}

static void test_corpus(const char *path, rc_arena *mem)
{
    rc_error err = {0};
    const char *bytes;
    size_t n_bytes, n_lines = 0;
    if (!rc_path_exists(path)) {
        printf("skipped: no corpus at %s\n", path);
        exit(77);
    }
    stop_on(rc_file_read(path, RC_READ_MAX_BYTES, mem, &bytes, &n_bytes, &err), &err, path);
    for (const char *at = bytes; at < bytes + n_bytes;) {
        size_t n = strcspn(at, "\n");
        rc_mark mark = rc_arena_mark(mem);
        test_line(at, n, mem);
        rc_arena_rewind(mem, mark);
        n_lines++;
        at += n + 1;
    }
    printf("%zu lines\n", n_lines);
}

int main(int argc, char **argv)
{
    rc_arena *mem = rc_arena_open();
    if (!mem || argc < 3)
        return 2;
    if (strcmp(argv[1], "table") == 0)
        test_table(argv[2]);
    else if (strcmp(argv[1], "sample") == 0 && argc > 3)
        for (int i = 3; i < argc; i++)
            test_sample(argv[2], argv[i], mem);
    else if (strcmp(argv[1], "near") == 0 && argc > 3)
        test_near(argv[2], argv[3], mem);
    else if (strcmp(argv[1], "corpus") == 0)
        test_corpus(argv[2], mem);
    rc_arena_close(mem);
    return n_wrong > 0;
}
