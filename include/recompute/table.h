/* table.h — rc_table: typed columns and rows, the one thing src/report/ can print.
 *
 * A command that answers with several tables makes a rc_report: titled tables plus key/value
 * facts, in order. Text, JSON, CSV, SVG and HTML all come from it.
 */
#ifndef RECOMPUTE_TABLE_H
#define RECOMPUTE_TABLE_H

#include <recompute/arena.h>
#include <recompute/error.h>

RC_EXTERN_C_BEGIN

typedef enum rc_unit {
    RC_UNIT_TEXT,
    RC_UNIT_COUNT,   /* int64, printed with digit groups */
    RC_UNIT_BYTES,   /* int64, text prints KiB/MiB/GiB, JSON the bytes */
    RC_UNIT_FLOPS,   /* int64 floating-point operations */
    RC_UNIT_SECONDS, /* double */
    RC_UNIT_REAL,    /* double */
    RC_UNIT_RATIO,   /* double, text prints percent */
    RC_UNIT_BOOL
} rc_unit;

typedef struct rc_column {
    /* JSON key, snake_case with unit: peak_bytes */
    const char *name;
    /* text header; NULL uses `name` */
    const char *title;
    rc_unit unit;
} rc_column;

typedef struct rc_cell {
    bool is_null;
    /* TEXT */
    const char *text;
    /* COUNT BYTES FLOPS BOOL */
    int64_t i;
    /* SECONDS REAL RATIO */
    double f;
} rc_cell;

typedef struct rc_table {
    /* JSON key of the list of rows */
    const char *name;
    /* heading for people, may be NULL */
    const char *title;
    const rc_column *columns;
    size_t n_columns;
    /* [n_rows][n_columns] */
    rc_cell *cells;
    size_t n_rows, n_room;
    rc_arena *mem;
} rc_table;

/* A table without rows.
 *
 * takes   name, title, columns  borrowed: they must outlive the table; title may be NULL
 * gives   *out                  the table; rows are taken from the same arena
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_table_make(rc_arena *mem, const char *name, const char *title,
                             const rc_column *columns, size_t n_columns, rc_table **out,
                             rc_error *err);

/* A further row, all cells null.
 *
 * gives   *cells  [n_columns], valid until the next row is added
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_table_add_row(rc_table *table, rc_cell **cells, rc_error *err);

/* Cells by what they hold. `text` is borrowed; NULL gives a null cell. */
RC_API rc_cell rc_cell_text(const char *text);
RC_API rc_cell rc_cell_int(int64_t value);
RC_API rc_cell rc_cell_real(double value);

enum { RC_REPORT_MAX_TABLES = 32 };

/* A report: facts (one-row tables printed as "name: value") and tables, in order. Empty is all zero. */
typedef struct rc_report {
    rc_table *at[RC_REPORT_MAX_TABLES];
    /* the table has one row and prints as a list of key: value */
    bool is_facts[RC_REPORT_MAX_TABLES];
    size_t n;
} rc_report;

/* Appends a table, which is borrowed; at most RC_REPORT_MAX_TABLES. A table of facts has one row. */
RC_API void rc_report_add(rc_report *report, rc_table *table, bool is_facts);

typedef enum rc_format {
#define RC_FORMAT(name, NAME, help) RC_FORMAT_##NAME,
#include "defs/formats.def" /* installed beside this header */
#undef RC_FORMAT
    RC_FORMAT_COUNT
} rc_format;

RC_EXTERN_C_END

#endif
