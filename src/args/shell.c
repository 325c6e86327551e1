/* args/shell.c — a shell script as data: commands, variables, arrays, nothing executed.
 *
 * takes  the text of a script or an argument line
 * gives  the words of every command with quoting and expansion done, and the variables
 * next   args.c finds the trainer's arguments among the words
 *
 * A subset of POSIX shell and bash's arrays, read in one pass: assignments take effect in the
 * order of the text. Branches that the text decides are followed (branch.c); a variable that
 * undecided ones set to different values is unknown, and so is all that a substitution of commands
 * would give. Every byte keeps
 * the offset it was written at, so that a flag out of an array points into the array.
 */
#include "args/shell.h"

#include "args/expand.h"

#include <string.h>

/* Bytes of "NAME=" or "NAME+=" at the cursor, else 0. */
static size_t assignment_length(const rc_shell_text *text)
{
    const char *at = text->bytes + text->at;
    size_t n = 0;
    while (rc_shell_is_name(at[n]))
        n++;
    if (n == 0 || !rc_shell_is_name_start(at[0]))
        return 0;
    n += at[n] == '+' && at[n + 1] == '=';
    return at[n] == '=' ? n + 1 : 0;
}

static void skip_blanks(rc_shell_text *text, bool with_lines)
{
    for (;;) {
        const char *at = text->bytes + text->at;
        if (*at == ' ' || *at == '\t' || *at == '\r' || (with_lines && *at == '\n'))
            text->at++;
        else if (at[0] == '\\' && at[1] == '\n')
            text->at += 2;
        else if (at[0] == '\\' && at[1] == '\r' && at[2] == '\n')
            text->at += 3;
        else if (*at == '#' && (text->at == 0 || strchr(" \t\n\r;(", at[-1])))
            text->at += strcspn(at, "\n");
        else
            return;
    }
}

/* The elements of NAME=( ... ); the cursor stands behind the bracket. */
static rc_code read_array(rc_shell_reader *r, rc_shell_text *text, rc_shell_words *out,
                          rc_error *err)
{
    size_t open = text->at - 1;
    for (;;) {
        skip_blanks(text, true);
        if (text->bytes[text->at] == ')')
            break;
        if (text->bytes[text->at] == '\0')
            return RC_FAIL(err, RC_E_INPUT, rc_shell_where(r, text, open, 1),
                           "this array has no closing )");
        size_t before = text->at;
        RC_TRY(rc_shell_read_next(r, text, true, out, err));
        if (text->at == before)
            text->at++; /* an operator has no business here */
    }
    text->at++;
    return RC_OK;
}

/* The same value, or more words behind it: ARGS="$ARGS --bf16" is ARGS+=" --bf16". */
static bool is_kept(const rc_shell_words *before, const rc_shell_words *words)
{
    if (before->n != words->n)
        return false;
    for (size_t i = 0; i < words->n; i++) {
        size_t n = strlen(before->at[i].text);
        if (strncmp(before->at[i].text, words->at[i].text, n) != 0 ||
            !strchr(" ", words->at[i].text[n]))
            return false;
    }
    return true;
}

static rc_code add_elements(rc_shell_reader *r, rc_shell_variable *variable,
                            const rc_shell_words *words, rc_error *err)
{
    for (size_t i = 0; i < words->n; i++)
        RC_TRY(rc_shell_push(r, &variable->words, &words->at[i], err));
    variable->is_array = true;
    return RC_OK;
}

/* NAME+=value: behind the first element of an array too. */
static rc_code add_text(rc_shell_reader *r, rc_shell_variable *variable,
                        const rc_shell_words *words, rc_error *err)
{
    if (words->n == 0)
        return RC_OK;
    if (variable->words.n > 0)
        return rc_shell_join(r, &variable->words.at[0], &words->at[0], err);
    variable->words = *words;
    return RC_OK;
}

/* The value of a branch that may run instead of another: known only when the script runs. */
static rc_code make_unknown(rc_shell_reader *r, rc_shell_word *word, rc_error *err)
{
    int32_t *from;
    RC_TRY(RC_NEW(r->mem, &from, word->n_bytes + 1, err));
    for (size_t i = 0; i < word->n_bytes; i++)
        from[i] = ~rc_shell_offset(word->from[i]);
    word->from = from;
    word->is_unknown = true;
    return RC_OK;
}

bool rc_shell_is_outside(const rc_shell_word *word)
{
    size_t n_unknown = 0;
    for (size_t i = 0; i < word->n_bytes; i++)
        n_unknown += word->from[i] < 0;
    return n_unknown > 0 && n_unknown == word->n_bytes;
}

/* Sets a variable. Where a branch may run that gives it another value than it had, it becomes
 * unknown; but a value from outside the script, as in TP=$2, leaves the one the script gives. */
static rc_code set_variable(rc_shell_reader *r, rc_shell_variable *variable,
                            rc_shell_words words, bool is_array, rc_error *err)
{
    rc_shell_truth runs = rc_shell_runs(r);
    bool had_value = variable->words.n > 0 || variable->is_array;
    bool is_ambiguous =
        runs == RC_SHELL_MAYBE && had_value && !is_array && !is_kept(&variable->words, &words);
    if (runs == RC_SHELL_NO ||
        (is_ambiguous && words.n == 1 && rc_shell_is_outside(&words.at[0])))
        return RC_OK;
    variable->is_array = is_array;
    variable->words = words;
    return is_ambiguous && words.n > 0 ? make_unknown(r, &words.at[0], err) : RC_OK;
}

static rc_code read_assignment(rc_shell_reader *r, rc_shell_text *text, size_t n_prefix,
                               rc_shell_variable **out, rc_error *err)
{
    const char *at = text->bytes + text->at;
    bool is_added = at[n_prefix - 2] == '+';
    rc_shell_words words = {0};
    RC_TRY(rc_shell_variable_take(r, at, n_prefix - 1 - is_added, out, err));
    text->at += n_prefix;
    bool is_array = text->bytes[text->at] == '(';
    if (is_array) {
        text->at++;
        RC_TRY(read_array(r, text, &words, err));
    } else {
        RC_TRY(rc_shell_read_next(r, text, false, &words, err));
    }
    if (!is_added)
        return set_variable(r, *out, words, is_array, err);
    if (rc_shell_runs(r) == RC_SHELL_NO)
        return RC_OK;
    return is_array ? add_elements(r, *out, &words, err) : add_text(r, *out, &words, err);
}

bool rc_shell_is_among(const char *word, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(word, *words) == 0)
            return true;
    return false;
}

static bool is_exporter(const char *word)
{
    static const char *const words[] = {"export", "declare", "typeset", "readonly",
                                        "local",  "env",     NULL};
    return rc_shell_is_among(word, words);
}

/* What is known of the command being read. */
typedef struct command {
    rc_shell_words words;
    rc_shell_variable *assigned[64]; /* in front of the command's name */
    size_t n_assigned;
    bool is_exporter;
} command;

/* `export`, `env`, and `declare -x` hand their variables to what is started. */
static bool is_export(const command *c)
{
    static const char *const words[] = {"export", "env", NULL};
    bool is_marked = false;
    for (size_t i = 1; i < c->words.n; i++)
        is_marked = is_marked || strcmp(c->words.at[i].text, "-x") == 0;
    return is_marked || rc_shell_is_among(c->words.at[0].text, words);
}

static rc_code finish_command(rc_shell_reader *r, command *c, rc_error *err)
{
    bool runs = rc_shell_runs(r) != RC_SHELL_NO;
    if (c->words.n > 0 || c->n_assigned > 0)
        rc_shell_note_command(r, &c->words, c->words.n == 0 || c->is_exporter);
    if (!runs) {
        *c = (command){0};
        return RC_OK;
    }
    bool has_name = c->words.n > 0 && !c->is_exporter;
    for (size_t i = 0; i < c->n_assigned && has_name; i++)
        c->assigned[i]->is_exported = true;
    for (size_t i = 1; i < c->words.n && c->is_exporter && is_export(c); i++) {
        rc_shell_variable *variable =
            rc_shell_variable_find(r, c->words.at[i].text, c->words.at[i].n_bytes);
        if (variable)
            variable->is_exported = true;
    }
    if (c->words.n > 0)
        RC_TRY(rc_shell_add_command(r, c->words, err));
    *c = (command){0};
    return RC_OK;
}

/* NAME=value in front of a command is of its environment, behind `export` of all that follow. */
static rc_code read_setting(rc_shell_reader *r, rc_shell_text *text, size_t n_prefix,
                            command *c, rc_error *err)
{
    rc_shell_variable *variable;
    RC_TRY(read_assignment(r, text, n_prefix, &variable, err));
    if (c->is_exporter && is_export(c))
        variable->is_exported = true;
    else if (c->n_assigned < sizeof c->assigned / sizeof *c->assigned)
        c->assigned[c->n_assigned++] = variable;
    return RC_OK;
}

/* Drops a word of the grammar in front of a command. */
static void look_at_first_word(rc_shell_reader *r, command *c)
{
    if (rc_shell_take_keyword(r, c->words.at[0].text)) {
        c->words.n--;
        memmove(c->words.at, c->words.at + 1, c->words.n * sizeof *c->words.at);
    }
    c->is_exporter = c->words.n > 0 && is_exporter(c->words.at[0].text);
}

/* `case subject in`: patterns follow. A subject that is empty leaves no word. */
static void look_at_case(rc_shell_reader *r, command *c)
{
    static const rc_shell_word empty = {.text = ""};
    if (strcmp(c->words.at[c->words.n - 1].text, "in") != 0)
        return;
    rc_shell_open_case(r, c->words.n > 2 ? &c->words.at[1] : &empty);
    *c = (command){0};
}

/* `a|b)` of a case; the cursor stands in front of it, or of the `esac`. */
static rc_code read_pattern(rc_shell_reader *r, rc_shell_text *text, rc_error *err)
{
    rc_shell_words patterns = {0};
    for (;;) {
        skip_blanks(text, true);
        char at = text->bytes[text->at];
        if (at == '\0' || at == ')')
            break;
        size_t before = text->at;
        RC_TRY(rc_shell_read_next(r, text, false, &patterns, err));
        if (text->at == before)
            text->at++; /* ( or | */
        else if (patterns.n > 0 && strcmp(patterns.at[patterns.n - 1].text, "esac") == 0) {
            rc_shell_take_keyword(r, "esac");
            return RC_OK;
        }
    }
    text->at += text->bytes[text->at] == ')';
    rc_shell_enter_case_arm(r, &patterns);
    return RC_OK;
}

static rc_code read_assignment_or_word(rc_shell_reader *r, rc_shell_text *text, command *c,
                                       rc_error *err)
{
    size_t n_prefix = c->words.n == 0 || c->is_exporter ? assignment_length(text) : 0;
    if (n_prefix > 0)
        return read_setting(r, text, n_prefix, c, err);
    size_t n_before = c->words.n, at_before = text->at;
    RC_TRY(rc_shell_read_next(r, text, true, &c->words, err));
    if (text->at == at_before)
        text->at++; /* nothing a word may begin with */
    if (c->words.n == n_before)
        return RC_OK;
    const rc_shell_word *first = &c->words.at[n_before];
    char next = text->bytes[text->at];
    bool is_number = strspn(first->text, "0123456789") == first->n_bytes;
    if (is_number && (next == '>' || next == '<'))
        c->words.n = n_before; /* the 2 of 2>&1 */
    else if (n_before == 0)
        look_at_first_word(r, c);
    else if (strcmp(c->words.at[0].text, "case") == 0)
        look_at_case(r, c);
    return RC_OK;
}

/* <<END, whose lines begin behind this one. */
static rc_code note_here_document(rc_shell_reader *r, rc_shell_text *text, rc_error *err)
{
    rc_shell_words word = {0};
    text->at += 2;
    bool strips_tabs = text->bytes[text->at] == '-';
    text->at += strips_tabs;
    skip_blanks(text, false);
    size_t from = text->at;
    RC_TRY(rc_shell_read_next(r, text, false, &word, err));
    bool is_literal = false;
    for (size_t i = from; i < text->at; i++)
        is_literal = is_literal || strchr("'\"\\", text->bytes[i]);
    if (word.n > 0 && r->n_here < RC_SHELL_HERE)
        r->here[r->n_here++] = (rc_shell_here){word.at[0], is_literal, strips_tabs};
    return RC_OK;
}

/* The bytes from the cursor to the line that ends the document, and those of that line. */
static size_t find_here_end(const rc_shell_text *text, const rc_shell_here *here,
                            size_t *n_line)
{
    size_t at = text->at;
    for (; text->bytes[at]; at += *n_line) {
        const char *line = text->bytes + at;
        size_t n = strcspn(line, "\n"), n_tabs = here->strips_tabs ? strspn(line, "\t") : 0;
        *n_line = n + (line[n] == '\n');
        n -= n > n_tabs && line[n - 1] == '\r';
        if (n - n_tabs == here->end.n_bytes &&
            memcmp(line + n_tabs, here->end.text, here->end.n_bytes) == 0)
            return at;
    }
    *n_line = 0;
    return at;
}

/* The documents begun on the line that ends here. One that calls a trainer is a script: it is kept
 * as the word of a command of its own, as behind bash -c. */
static rc_code read_here_documents(rc_shell_reader *r, rc_shell_text *text, rc_error *err)
{
    size_t n = r->n_here;
    r->n_here = 0;
    for (size_t i = 0; i < n; i++) {
        static const rc_shell_word name = {.text = "<<", .n_bytes = 0};
        size_t n_line, end = find_here_end(text, &r->here[i], &n_line);
        const char *trainer = strstr(text->bytes + text->at, ".py");
        bool is_script = trainer && trainer < text->bytes + end;
        rc_shell_words words = {0};
        RC_TRY(rc_shell_push(r, &words, &name, err));
        if (is_script && rc_shell_runs(r) != RC_SHELL_NO) {
            RC_TRY(rc_shell_read_body(r, text, end, r->here[i].is_literal, &words, err));
            RC_TRY(rc_shell_add_command(r, words, err));
        }
        text->at = end + n_line;
    }
    return RC_OK;
}

static rc_code read_redirection(rc_shell_reader *r, rc_shell_text *text, rc_error *err)
{
    rc_shell_words dropped = {0};
    const char *at = text->bytes + text->at;
    if (at[0] == '<' && at[1] == '<' && at[2] != '<')
        return note_here_document(r, text, err);
    text->at += strspn(at, "<>&-");
    skip_blanks(text, false);
    return rc_shell_read_next(r, text, false, &dropped, err);
}

/* ; & | ( ) and the end of a line; && and || make what follows hang on what was. */
static rc_code read_operator(rc_shell_reader *r, rc_shell_text *text, command *c, rc_error *err)
{
    const char *at = text->bytes + text->at;
    RC_TRY(finish_command(r, c, err));
    bool is_list = (at[0] == '&' || at[0] == '|') && at[1] == at[0];
    bool is_arm_end = at[0] == ';' && (at[1] == ';' || at[1] == '&') && rc_shell_end_arm(r);
    r->op = is_list ? at[0] : 0;
    text->at += is_arm_end ? strspn(at, ";&") : strchr("&|", *at) ? strspn(at, "&|") : 1;
    if (is_list)
        skip_blanks(text, true);
    return *at == '\n' ? read_here_documents(r, text, err) : RC_OK;
}

static rc_code read_text(rc_shell_reader *r, rc_shell_text *text, rc_error *err)
{
    command c = {0};
    for (;;) {
        skip_blanks(text, false);
        char at = text->bytes[text->at];
        if (at == '\0')
            break;
        if (c.words.n == 0 && c.n_assigned == 0 && rc_shell_awaits_pattern(r))
            RC_TRY(read_pattern(r, text, err));
        else if (strchr("\n;|&()", at))
            RC_TRY(read_operator(r, text, &c, err));
        else if (at == '<' || at == '>')
            RC_TRY(read_redirection(r, text, err));
        else
            RC_TRY(read_assignment_or_word(r, text, &c, err));
    }
    return finish_command(r, &c, err);
}

rc_code rc_shell_read(rc_source *source, rc_arena *mem, rc_shell *out, rc_error *err)
{
    rc_shell_reader r = {.source = source, .mem = mem, .shell = out};
    *out = (rc_shell){0};
    RC_TRY(rc_shell_reader_open(&r, err));
    rc_shell_text text = {.bytes = source->bytes, .at = rc_source_start(source)};
    return read_text(&r, &text, err);
}

rc_code rc_shell_read_word(rc_source *source, const rc_shell_word *word, rc_arena *mem,
                           rc_shell *shell, rc_error *err)
{
    rc_shell_reader r = {.source = source, .mem = mem, .shell = shell};
    RC_TRY(rc_shell_reader_open(&r, err));
    rc_shell_text text = {.bytes = word->text, .from = word->from};
    return read_text(&r, &text, err);
}
