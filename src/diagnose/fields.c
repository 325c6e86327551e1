/* fields.c — the rows of diag_fields.def: what a field is called, how it is told and counted.
 *
 * takes  diag, as facts.c fills it
 * gives  a field's words for a sentence (words.c), its number for the report (numbers.c)
 */
#include "diagnose/diag.h"

#include "base/num.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const diag_field fields[] = {
#define RC_DIAG_FIELD(name, kind, when, number)                                                \
    {#name, DIAG_##kind, DIAG_##when, number, offsetof(diag, name)},
#include "defs/diag_fields.def"
#undef RC_DIAG_FIELD
};
enum { N_FIELDS = sizeof fields / sizeof *fields };

const diag_field *diag_field_at(size_t i)
{
    return i < N_FIELDS ? &fields[i] : NULL;
}

const diag_field *diag_field_find(const char *name, size_t n)
{
    for (size_t i = 0; i < N_FIELDS; i++)
        if (strlen(fields[i].name) == n && memcmp(fields[i].name, name, n) == 0)
            return &fields[i];
    return NULL;
}

void diag_forget(diag *d)
{
    const int64_t unknown = RC_LOG_UNKNOWN, no_exit = RC_LOG_NO_EXIT;
    const double no_real = (double)NAN;
    const char *no_text = NULL;
    for (size_t i = 0; i < N_FIELDS; i++) {
        char *at = (char *)d + fields[i].offset;
        if (fields[i].kind == DIAG_TEXT)
            memcpy(at, &no_text, sizeof no_text);
        else if (fields[i].kind == DIAG_REAL)
            memcpy(at, &no_real, sizeof no_real);
        else
            memcpy(at, fields[i].kind == DIAG_EXIT ? &no_exit : &unknown, sizeof unknown);
    }
}

double diag_gib(int64_t bytes)
{
    return bytes >= 0 ? (double)bytes / RC_GIB : (double)NAN;
}

const char *diag_size(int64_t bytes, bool is_decimal, char buf[64])
{
    const double gib = RC_GIB, mib = RC_MIB;
    double n = (double)bytes;
    if (is_decimal)
        snprintf(buf, 64, "%.2f GB (%.2f GiB)", n / RC_GB, n / gib);
    else if (n >= gib / 10)
        snprintf(buf, 64, "%.2f GiB", n / gib);
    else if (n >= mib / 10)
        snprintf(buf, 64, "%.2f MiB", n / mib);
    else
        snprintf(buf, 64, "%" PRId64 " bytes", bytes);
    return buf;
}

static int64_t whole_of(const diag *d, const diag_field *field)
{
    int64_t value;
    memcpy(&value, (const char *)d + field->offset, sizeof value);
    return value;
}

static double real_of(const diag *d, const diag_field *field)
{
    double value;
    memcpy(&value, (const char *)d + field->offset, sizeof value);
    return value;
}

static bool is_known(const diag *d, const diag_field *field)
{
    if (field->kind == DIAG_REAL)
        return !isnan(real_of(d, field));
    int64_t value = whole_of(d, field);
    return field->kind == DIAG_EXIT ? value != RC_LOG_NO_EXIT : value >= 0;
}

const char *diag_show(const diag *d, const diag_field *field, char buf[64])
{
    const char *text;
    if (field->kind == DIAG_TEXT) {
        memcpy(&text, (const char *)d + field->offset, sizeof text);
        return text;
    }
    if (!is_known(d, field))
        return NULL;
    if (field->kind == DIAG_SIZE || field->kind == DIAG_REPORTED_SIZE)
        return diag_size(whole_of(d, field), d->is_decimal && field->kind == DIAG_REPORTED_SIZE,
                         buf);
    if (field->kind == DIAG_REAL)
        snprintf(buf, 64, "%.4g", real_of(d, field));
    else
        snprintf(buf, 64, "%" PRId64, whole_of(d, field));
    return buf;
}

double diag_number(const diag *d, const diag_field *field)
{
    if (field->kind == DIAG_TEXT || !is_known(d, field))
        return (double)NAN;
    if (field->kind == DIAG_REAL)
        return real_of(d, field);
    if (field->kind == DIAG_SIZE || field->kind == DIAG_REPORTED_SIZE)
        return diag_gib(whole_of(d, field));
    return (double)whole_of(d, field);
}
