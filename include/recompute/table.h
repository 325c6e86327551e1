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
    const char *name;  /* JSON key, snake_case with unit: peak_bytes */
    const char *title; /* text header; NULL uses `name` */
    rc_unit unit;
} rc_column;

typedef struct rc_cell {
    bool is_null;
    const char *text; /* TEXT */
    int64_t i;        /* COUNT BYTES FLOPS BOOL */
    double f;         /* SECONDS REAL RATIO */
} rc_cell;

typedef struct rc_table {
    const char *name;  /* JSON key of the list of rows */
    const char *title; /* heading for people, may be NULL */
    const rc_column *columns;
    size_t n_columns;
    rc_cell *cells; /* [n_rows][n_columns] */
    size_t n_rows, n_room;
    rc_arena *mem;
} rc_table;

/* `columns` is borrowed and must outlive the table. */
RC_MUST_CHECK
RC_API rc_code rc_table_make(rc_arena *mem, const char *name, const char *title,
                             const rc_column *columns, size_t n_columns, rc_table **out,
                             rc_error *err);
/* A new row, all cells null; *cells is valid until the next row is added. */
RC_MUST_CHECK
RC_API rc_code rc_table_add_row(rc_table *table, rc_cell **cells, rc_error *err);

RC_API rc_cell rc_cell_text(const char *text); /* NULL gives a null cell; borrowed */
RC_API rc_cell rc_cell_int(int64_t value);
RC_API rc_cell rc_cell_real(double value);

/* A report: facts (one-row tables printed as "name: value") and tables, in order. */
typedef struct rc_report {
    rc_table *at[32];
    bool is_facts[32]; /* the table has one row and prints as a list of key: value */
    size_t n;
} rc_report;

RC_API void rc_report_add(rc_report *report, rc_table *table, bool is_facts);

typedef enum rc_format {
#define RC_FORMAT(name, NAME, help) RC_FORMAT_##NAME,
#include "defs/formats.def" /* installed beside this header */
#undef RC_FORMAT
    RC_FORMAT_COUNT
} rc_format;

RC_EXTERN_C_END

#endif
