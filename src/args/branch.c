/* args/branch.c — which parts of a script run: if, case, && and ||, as far as its text tells.
 *
 * takes  the words of commands and the words of the grammar, in their order
 * gives  for the place that is read now: it runs, it does not, or only the job will know
 *
 * Tests of strings and numbers are decided where every word of them is known: a script that sets
 * MODEL_SIZE=8b and asks for it takes one way. What looks at files or runs a program is not.
 */
#include "args/expand.h"

#include "base/num.h"

#include <fnmatch.h>
#include <string.h>

static rc_shell_truth both(rc_shell_truth a, rc_shell_truth b)
{
    return a < b ? a : b;
}

static rc_shell_truth either(rc_shell_truth a, rc_shell_truth b)
{
    return a > b ? a : b;
}

static rc_shell_truth opposite(rc_shell_truth a)
{
    return (rc_shell_truth)(RC_SHELL_YES - a);
}

static rc_shell_truth truth_of(bool is_true)
{
    return is_true ? RC_SHELL_YES : RC_SHELL_NO;
}

/* A pattern of the shell; many stars would take long to try. */
static rc_shell_truth matches(const char *pattern, const char *text)
{
    size_t n_stars = 0;
    for (const char *at = pattern; *at; at++)
        n_stars += *at == '*';
    return n_stars > 4 ? RC_SHELL_MAYBE : truth_of(fnmatch(pattern, text, 0) == 0);
}

/* --- tests: [ a = b ], [[ -z $x ]], test 1 -lt 2 */

static rc_shell_truth compare_numbers(const char *left, const char *op, const char *right)
{
    static const char *const names[] = {"-eq", "-ne", "-lt", "-le", "-gt", "-ge"};
    int64_t a, b;
    if (!rc_parse_int(left, &a) || !rc_parse_int(right, &b))
        return RC_SHELL_MAYBE;
    const bool results[] = {a == b, a != b, a<b, a <= b, a> b, a >= b};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(op, names[i]) == 0)
            return truth_of(results[i]);
    return RC_SHELL_MAYBE;
}

static rc_shell_truth compare(const rc_shell_word *words, bool has_patterns)
{
    const char *left = words[0].text, *op = words[1].text, *right = words[2].text;
    rc_shell_truth is_equal =
        has_patterns ? matches(right, left) : truth_of(strcmp(left, right) == 0);
    if (strcmp(op, "=") == 0 || strcmp(op, "==") == 0)
        return is_equal;
    return strcmp(op, "!=") == 0 ? opposite(is_equal) : compare_numbers(left, op, right);
}

/* `n` words between the brackets. */
static rc_shell_truth evaluate(const rc_shell_word *words, size_t n, bool has_patterns)
{
    if (n > 1 && strcmp(words[0].text, "!") == 0)
        return opposite(evaluate(words + 1, n - 1, has_patterns));
    for (size_t i = 0; i < n; i++)
        if (words[i].is_unknown)
            return RC_SHELL_MAYBE;
    bool is_empty = n > 0 && strcmp(words[0].text, "-z") == 0;
    bool is_full = n > 0 && strcmp(words[0].text, "-n") == 0;
    if (n == 3)
        return compare(words, has_patterns);
    if (n == 2 && (is_empty || is_full))
        return truth_of(is_empty == (words[1].n_bytes == 0));
    if (n == 1) /* an unquoted variable that is empty leaves [ -z ] */
        return truth_of(is_empty || (!is_full && words[0].n_bytes > 0));
    return n == 0 ? RC_SHELL_NO : RC_SHELL_MAYBE;
}

/* The part of a [[ a && b ]] that this command is, or a whole test. */
static rc_shell_truth test_of(rc_shell_reader *r, const rc_shell_words *words)
{
    const rc_shell_word *at = words->at;
    size_t n = words->n;
    bool is_double = r->is_in_test;
    if (!r->is_in_test) {
        is_double = strcmp(at->text, "[[") == 0;
        bool is_single = strcmp(at->text, "[") == 0, is_named = strcmp(at->text, "test") == 0;
        if (!is_double && !is_single && !is_named)
            return strcmp(at->text, "true") == 0 || strcmp(at->text, ":") == 0 ? RC_SHELL_YES
                   : strcmp(at->text, "false") == 0                            ? RC_SHELL_NO
                                                                               : RC_SHELL_MAYBE;
        if (is_single && strcmp(at[n - 1].text, "]") != 0)
            return RC_SHELL_MAYBE;
        n -= is_single;
        at++;
        n--;
    }
    r->is_in_test = is_double && (n == 0 || strcmp(at[n - 1].text, "]]") != 0);
    return evaluate(at, n - (is_double && !r->is_in_test), is_double);
}

void rc_shell_note_command(rc_shell_reader *r, const rc_shell_words *words, bool is_assignment)
{
    rc_shell_truth truth = is_assignment ? RC_SHELL_YES : test_of(r, words);
    if (r->is_negated)
        truth = opposite(truth);
    r->is_negated = false;
    r->truth = r->op == '&'   ? both(r->truth, truth)
               : r->op == '|' ? either(r->truth, truth)
                              : truth;
}

/* --- branches */

rc_shell_truth rc_shell_runs(const rc_shell_reader *r)
{
    rc_shell_truth runs = r->op == '&'   ? r->truth
                          : r->op == '|' ? opposite(r->truth)
                                         : RC_SHELL_YES;
    for (size_t i = 0; i < r->n_branches; i++)
        runs = both(runs, i < RC_SHELL_BRANCHES ? r->branches[i].runs : RC_SHELL_MAYBE);
    return runs;
}

static rc_shell_branch *innermost(rc_shell_reader *r, char kind)
{
    if (r->n_branches == 0 || r->n_branches > RC_SHELL_BRANCHES)
        return NULL;
    rc_shell_branch *branch = &r->branches[r->n_branches - 1];
    return branch->kind == kind ? branch : NULL;
}

static void open_branch(rc_shell_reader *r, rc_shell_branch branch)
{
    if (r->n_branches < RC_SHELL_BRANCHES)
        r->branches[r->n_branches] = branch;
    r->n_branches++;
}

/* One of the arms of a branch, where `is_wanted` says whether its own condition holds. */
static void enter_arm(rc_shell_branch *branch, rc_shell_truth is_wanted)
{
    branch->runs = both(is_wanted, opposite(branch->earlier));
    branch->earlier = either(branch->earlier, is_wanted);
}

/* then, else and elif; false for other words. */
static bool take_arm(rc_shell_reader *r, const char *word)
{
    rc_shell_branch *branch = innermost(r, 'i');
    bool is_then = strcmp(word, "then") == 0, is_else = strcmp(word, "else") == 0;
    bool is_elif = strcmp(word, "elif") == 0;
    if (branch && (is_then || is_else))
        enter_arm(branch, is_then ? r->truth : RC_SHELL_YES);
    if (branch && is_elif)
        branch->runs = RC_SHELL_YES; /* its condition is read */
    return is_then || is_else || is_elif;
}

bool rc_shell_take_keyword(rc_shell_reader *r, const char *word)
{
    static const char *const opens[] = {"if", "while", "until", "for", "select", NULL};
    static const char *const closes[] = {"fi", "esac", "done", NULL};
    static const char *const leads[] = {"do", "{", "}", "time", "exec", "nohup", NULL};
    if (rc_shell_is_among(word, opens)) {
        bool is_if = strcmp(word, "if") == 0;
        open_branch(r, (rc_shell_branch){.kind = is_if ? 'i' : 'l',
                                         .runs = is_if ? RC_SHELL_YES : RC_SHELL_MAYBE});
        return *word != 'f' && *word != 's';
    }
    if (rc_shell_is_among(word, closes)) {
        r->n_branches -= r->n_branches > 0;
        return true;
    }
    if (strcmp(word, "!") == 0) {
        r->is_negated = !r->is_negated;
        return true;
    }
    return take_arm(r, word) || rc_shell_is_among(word, leads);
}

void rc_shell_open_case(rc_shell_reader *r, const rc_shell_word *subject)
{
    open_branch(
        r, (rc_shell_branch){
               .kind = 'c', .runs = RC_SHELL_NO, .subject = *subject, .awaits_pattern = true});
}

bool rc_shell_awaits_pattern(rc_shell_reader *r)
{
    const rc_shell_branch *branch = innermost(r, 'c');
    return branch && branch->awaits_pattern;
}

bool rc_shell_end_arm(rc_shell_reader *r)
{
    rc_shell_branch *branch = innermost(r, 'c');
    if (branch)
        branch->awaits_pattern = true;
    return branch != NULL;
}

void rc_shell_enter_case_arm(rc_shell_reader *r, const rc_shell_words *patterns)
{
    rc_shell_branch *branch = innermost(r, 'c');
    rc_shell_truth is_wanted = RC_SHELL_NO;
    for (size_t i = 0; i < patterns->n; i++) {
        const rc_shell_word *pattern = &patterns->at[i];
        rc_shell_truth fits = strcmp(pattern->text, "*") == 0 ? RC_SHELL_YES
                              : pattern->is_unknown || branch->subject.is_unknown
                                  ? RC_SHELL_MAYBE
                                  : matches(pattern->text, branch->subject.text);
        is_wanted = either(is_wanted, fits);
    }
    enter_arm(branch, is_wanted);
    branch->awaits_pattern = false;
}
