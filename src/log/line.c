/* line.c — one line of a log: colours off, prefixes understood, numbers read.
 *
 * takes  raw bytes between two newlines
 * gives  the text, who printed it (rank, local rank, process), and where the message begins
 * next   the handlers of log_*.c
 */
#include "log/parts.h"

#include "base/num.h"

#include <math.h>
#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '-' || c == '.';
}

const char *log_find(const char *text, size_t n, const char *needle)
{
    size_t n_needle = strlen(needle);
    if (n_needle == 0 || n_needle > n)
        return NULL;
    const char *end = text + n - n_needle + 1;
    for (const char *at = text; at < end; at++) {
        at = memchr(at, needle[0], (size_t)(end - at));
        if (!at)
            return NULL;
        if (memcmp(at, needle, n_needle) == 0)
            return at;
    }
    return NULL;
}

bool log_has(const log_line *line, const char *needle)
{
    return log_find(line->text, line->n, needle) != NULL;
}

/* --- numbers */

static const char *skip_blanks(const char *at, const char *limit)
{
    while (at < limit && (*at == ' ' || *at == '\t'))
        at++;
    return at;
}

static bool has_word(const char *at, const char *limit, const char *word)
{
    size_t n = strlen(word);
    return (size_t)(limit - at) >= n && memcmp(at, word, n) == 0;
}

/* Digits with an optional fraction and exponent; `,` between digits is a thousands mark. */
static const char *read_digits(const char *at, const char *limit, double *value)
{
    double number = 0, scale = 1;
    bool has_point = false;
    for (; at < limit; at++) {
        if (*at == '.' && !has_point)
            has_point = true;
        else if (*at == ',' && !has_point && at + 1 < limit && is_digit(at[1]))
            continue;
        else if (is_digit(*at)) {
            number = number * 10 + (*at - '0');
            scale *= has_point ? 10 : 1;
        } else
            break;
    }
    *value = number / scale;
    return at;
}

static const char *read_exponent(const char *at, const char *limit, double *value)
{
    if (at + 1 >= limit || (*at != 'e' && *at != 'E'))
        return at;
    const char *digit = at + 1;
    bool is_negative = *digit == '-';
    if (*digit == '-' || *digit == '+')
        digit++;
    if (digit >= limit || !is_digit(*digit))
        return at;
    int exponent = 0;
    for (; digit < limit && is_digit(*digit); digit++)
        exponent = exponent < 1000 ? exponent * 10 + (*digit - '0') : exponent;
    *value *= pow(10, is_negative ? -exponent : exponent);
    return digit;
}

/* "nan" and "inf" */
static bool read_no_number(const char *at, const char *limit, double *value)
{
    if (has_word(at, limit, "nan") || has_word(at, limit, "NaN"))
        *value = (double)NAN;
    else if (has_word(at, limit, "inf") || has_word(at, limit, "Inf"))
        *value = (double)INFINITY;
    else
        return false;
    return true;
}

static bool starts_number(const char *at, const char *limit)
{
    if (at < limit && *at == '.')
        at++;
    return at < limit && is_digit(*at);
}

bool log_number(const char *at, const char *limit, double *value, const char **end)
{
    at = skip_blanks(at, limit);
    bool is_negative = at < limit && *at == '-';
    if (at < limit && (*at == '-' || *at == '+'))
        at++;
    if (read_no_number(at, limit, value)) {
        *end = at + 3;
    } else if (starts_number(at, limit)) {
        at = read_digits(at, limit, value);
        *end = read_exponent(at, limit, value);
    } else {
        return false;
    }
    if (is_negative)
        *value = -*value;
    return true;
}

bool log_number_after(const log_line *line, size_t from, const char *needle, double *value)
{
    if (from > line->n)
        return false;
    const char *limit = line->text + line->n;
    const char *at = log_find(line->text + from, line->n - from, needle);
    if (!at)
        return false;
    at += strlen(needle);
    while (at < limit && (*at == ' ' || *at == ':' || *at == '=' || *at == '\t'))
        at++;
    const char *end;
    return log_number(at, limit, value, &end);
}

int64_t log_bytes_of(double value, double unit)
{
    double bytes = value * unit + 0.5;
    /* 2^63 itself does not fit; what is larger is "no limit" in torch's messages. */
    return bytes >= 0 && bytes < 9.2e18 ? (int64_t)bytes : RC_LOG_UNKNOWN;
}

bool log_size(const char *at, const char *limit, int64_t *bytes, const char **end)
{
    double value;
    if (!log_number(at, limit, &value, &at) || !(value >= 0))
        return false;
    at = skip_blanks(at, limit);
    double unit = rc_find_printed_unit(at, limit, end);
    if (unit > 0)
        *bytes = log_bytes_of(value, unit);
    return unit > 0;
}

/* --- prefixes; each returns where the text goes on, or NULL when it is not that prefix */

static const char *read_int(const char *at, const char *limit, int *value)
{
    int64_t number = 0;
    const char *start = at;
    for (; at < limit && is_digit(*at) && number < 100000000; at++)
        number = number * 10 + (*at - '0');
    if (at == start)
        return NULL;
    *value = (int)number;
    return at;
}

/* "[rank3]:", "[default3]:", "[Rank 3]" */
static const char *bracket_rank(const char *at, const char *limit, log_line *line)
{
    static const struct {
        const char *word;
        bool is_local;
    } words[] = {{"[rank", false}, {"[Rank", false}, {"[default", true}, {"[local_rank", true}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (!has_word(at, limit, words[i].word))
            continue;
        const char *digit = at + strlen(words[i].word);
        while (digit < limit && (*digit == ' ' || *digit == ':' || *digit == '='))
            digit++;
        int value;
        const char *end = read_int(digit, limit, &value);
        if (!end || end >= limit || *end != ']')
            return NULL;
        if (words[i].is_local)
            line->local_rank = value;
        else
            line->rank = value;
        end++;
        return end < limit && *end == ':' ? end + 1 : end;
    }
    return NULL;
}

/* mpirun --tag-output: "[1,3]<stderr>:" */
static const char *mpi_rank(const char *at, const char *limit, log_line *line)
{
    int job, rank;
    if (at >= limit || *at != '[')
        return NULL;
    const char *end = read_int(at + 1, limit, &job);
    if (!end || end >= limit || *end != ',')
        return NULL;
    end = read_int(end + 1, limit, &rank);
    if (!end || !has_word(end, limit, "]<std"))
        return NULL;
    end = memchr(end, '>', (size_t)(limit - end));
    if (!end)
        return NULL;
    line->rank = rank;
    return end + 1 < limit && end[1] == ':' ? end + 2 : end + 1;
}

/* srun -l: " 0: " or "15: " */
static const char *srun_rank(const char *at, const char *limit, log_line *line)
{
    int value;
    const char *end = read_int(at, limit, &value);
    if (!end || end + 1 >= limit || end[0] != ':' || end[1] != ' ' || value > 1000000)
        return NULL;
    if (line->rank < 0)
        line->rank = value;
    return end + 2;
}

/* Ray: "(Name pid=123, ip=...) " or "(Name[rank=5] pid=123) " */
static const char *ray_process(const char *at, const char *limit, log_line *line)
{
    if (at >= limit || *at != '(')
        return NULL;
    size_t n = (size_t)(limit - at) < 160 ? (size_t)(limit - at) : 160;
    const char *end = memchr(at, ')', n);
    const char *pid = end ? log_find(at, (size_t)(end - at), "pid=") : NULL;
    if (!pid)
        return NULL;
    int value;
    if (read_int(pid + 4, end, &value) && value > 0)
        line->key = (uint64_t)value << 32 | 1;
    const char *rank = log_find(at, (size_t)(end - at), "rank=");
    if (rank && read_int(rank + 5, end, &value))
        line->rank = value;
    return end + 1;
}

/* NCCL: "node:47604:53083 [0] " */
static const char *nccl_process(const char *at, const char *limit, log_line *line)
{
    const char *start = at;
    int pid, tid, gpu;
    while (at < limit && is_word(*at))
        at++;
    if (at == start || at >= limit || *at != ':')
        return NULL;
    const char *end = read_int(at + 1, limit, &pid);
    if (!end || end >= limit || *end != ':')
        return NULL;
    end = read_int(end + 1, limit, &tid);
    if (!end || !has_word(end, limit, " ["))
        return NULL;
    end = read_int(end + 2, limit, &gpu);
    if (!end || end >= limit || *end != ']')
        return NULL;
    line->gpu = gpu;
    return end + 1;
}

/* "[2025-11-20T14:55:23+08:00] ", "[INFO] ", "[Driver] ": brackets without a rank. */
static const char *bracket_tag(const char *at, const char *limit)
{
    if (at >= limit || *at != '[')
        return NULL;
    size_t n = (size_t)(limit - at) < 80 ? (size_t)(limit - at) : 80;
    const char *end = memchr(at, ']', n);
    if (!end || end + 1 >= limit || !strchr(" :[", end[1]))
        return NULL;
    return end[1] == ':' ? end + 2 : end + 1;
}

static bool is_any_of(char c, const char *among)
{
    return c != '\0' && strchr(among, c) != NULL;
}

/* Dates and clock times without brackets, "pretraining/0 " of nemo-run, "pod/name " of kubectl. */
static const char *time_or_replica(const char *at, const char *limit)
{
    const char *end = at;
    int n_digits = 0, n_marks = 0;
    for (; end < limit && (is_word(*end) || is_any_of(*end, ":+/,")); end++) {
        n_digits += is_digit(*end);
        n_marks += is_any_of(*end, ":/-");
    }
    /* "14446.4s" of collectors counts, "172.00" of a broken message does not. */
    bool is_seconds = end > at && end[-1] == 's' && end < limit && *end == '\t';
    bool is_time = n_digits >= 5 && (n_marks >= 2 || is_seconds);
    bool is_replica =
        end > at + 2 && is_digit(end[-1]) && log_find(at, (size_t)(end - at), "/");
    if (end >= limit || !is_any_of(*end, " \t|") || !(is_time || is_replica))
        return NULL;
    return end + 1;
}

static const char *strip_one(const char *at, const char *limit, log_line *line)
{
    const char *next = bracket_rank(at, limit, line);
    if (!next)
        next = mpi_rank(at, limit, line);
    if (!next)
        next = srun_rank(at, limit, line);
    if (!next)
        next = ray_process(at, limit, line);
    if (!next)
        next = nccl_process(at, limit, line);
    if (!next)
        next = bracket_tag(at, limit);
    if (!next)
        next = time_or_replica(at, limit);
    return next;
}

static void strip_prefixes(log_line *line)
{
    const char *at = line->text, *limit = line->text + line->n;
    for (int i = 0; i < 8; i++) {
        const char *blank = skip_blanks(at, limit);
        const char *next = strip_one(blank, limit, line);
        if (!next)
            break;
        at = next;
        /* Behind "[rank3]: " the indentation belongs to the traceback. */
        if (at < limit && *at == ' ')
            at++;
    }
    line->body = (size_t)(at - line->text);
    if (line->rank >= 0)
        line->key = (uint64_t)line->rank << 32 | 2;
    else if (line->local_rank >= 0 && line->key == 0)
        line->key = (uint64_t)line->local_rank << 32 | 3;
}

/* --- lines */

/* Copies without escape sequences; the keyword's place moves along. */
static size_t clean_colours(const char *raw, const char *raw_end, const char *hit, char *room,
                            size_t *hit_at)
{
    size_t n = 0;
    *hit_at = 0;
    for (const char *at = raw; at < raw_end && n < LOG_LINE_BYTES; at++) {
        if (at == hit)
            *hit_at = n;
        if (*at != 0x1b) {
            room[n++] = *at;
            continue;
        }
        if (at + 1 < raw_end && at[1] == '[') {
            const char *end = at + 2;
            while (end < raw_end && (is_digit(*end) || *end == ';' || *end == '?'))
                end++;
            at = end;
        }
    }
    return n;
}

void log_line_make(const char *raw, const char *raw_end, const char *hit, char *room,
                   log_line *line)
{
    *line = (log_line){.text = raw,
                       .n = (size_t)(raw_end - raw),
                       .hit = hit ? (size_t)(hit - raw) : 0,
                       .rank = RC_LOG_UNKNOWN,
                       .local_rank = RC_LOG_UNKNOWN,
                       .gpu = RC_LOG_UNKNOWN,
                       .raw_end = raw_end};
    if (memchr(raw, 0x1b, line->n)) {
        line->n = clean_colours(raw, raw_end, hit, room, &line->hit);
        line->text = room;
    }
    while (line->n > 0 && (line->text[line->n - 1] == '\r' || line->text[line->n - 1] == ' '))
        line->n--;
    if (line->hit > line->n)
        line->hit = line->n;
    strip_prefixes(line);
}

bool log_line_next(const rc_log_reader *reader, const log_line *line, char *room,
                   log_line *next)
{
    const char *end = reader->buffer + reader->n;
    const char *raw = line->raw_end;
    if (raw >= end)
        return false;
    if (*raw == '\n' || *raw == '\r')
        raw++;
    if (raw >= end)
        return false;
    size_t n = (size_t)(end - raw) < LOG_LINE_BYTES ? (size_t)(end - raw) : LOG_LINE_BYTES;
    const char *raw_end = memchr(raw, '\n', n);
    int64_t number = line->number + 1;
    log_line_make(raw, raw_end ? raw_end : raw + n, NULL, room, next);
    next->number = number;
    return true;
}
