/* export.c — a snapshot as CSV files or one SQLite database.
 *
 * takes  the file twice: which device a trace belongs to stands after its events
 * gives  tables of events, stacks, frames, segments, blocks and annotations, joined by numbers
 *
 * Texts of the file are made printable first; in CSV those that a spreadsheet would run as a formula
 * get an apostrophe in front.
 */
#include "snapshot/frames.h"

#include "base/file.h"
#include "base/num.h"
#include "base/text.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#define N(columns) (sizeof(columns) / sizeof *(columns))

/* ---- where rows go ---- */

typedef struct exporter exporter;
struct exporter {
    rc_code (*begin)(exporter *to, const char *table, const rc_column *columns, size_t n,
                     rc_error *err);
    rc_code (*row)(exporter *to, const rc_cell *cells, rc_error *err);
    rc_code (*end)(exporter *to, rc_error *err);
    const char *table;
    const rc_column *columns;
    size_t n_columns;
    int64_t n_rows;
    rc_arena *mem;
    rc_table *written; /* what was made, for the report */
    char *text;        /* [TEXT_ROOM] one printable text */
    /* CSV */
    const char *folder;
    rc_out_file file;
    /* SQLite */
    sqlite3 *db;
    sqlite3_stmt *insert;
};

enum { TEXT_ROOM = 20000 };

static const char *printable(exporter *to, const char *text)
{
    return rc_text_printable(text, strlen(text), to->text, TEXT_ROOM);
}

static rc_code note_written(exporter *to, rc_error *err)
{
    rc_cell *row;
    RC_TRY(rc_table_add_row(to->written, &row, err));
    row[0] = rc_cell_text(to->table);
    row[1] = rc_cell_int(to->n_rows);
    return RC_OK;
}

/* ---- CSV ---- */

static rc_code csv_begin(exporter *to, const char *table, const rc_column *columns, size_t n,
                         rc_error *err)
{
    const char *path;
    RC_TRY(rc_arena_printf(to->mem, &path, err, "%s/%s.csv", to->folder, table));
    RC_TRY(rc_out_file_open(path, &to->file, err));
    for (size_t i = 0; i < n; i++)
        fprintf(to->file.to, "%s%s", i ? "," : "", columns[i].name);
    fputs("\r\n", to->file.to);
    return RC_OK;
}

static void csv_text(exporter *to, const char *raw)
{
    const char *text = printable(to, raw);
    fputc('"', to->file.to);
    if (*text && strchr("=+-@", *text))
        fputc('\'', to->file.to);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', to->file.to);
        fputc(*text, to->file.to);
    }
    fputc('"', to->file.to);
}

static rc_code csv_row(exporter *to, const rc_cell *cells, rc_error *err)
{
    (void)err; /* a failing stream shows at the commit */
    for (size_t i = 0; i < to->n_columns; i++) {
        if (i)
            fputc(',', to->file.to);
        if (cells[i].is_null)
            continue;
        if (to->columns[i].unit == RC_UNIT_TEXT)
            csv_text(to, cells[i].text);
        else
            fprintf(to->file.to, "%" PRId64, cells[i].i);
    }
    fputs("\r\n", to->file.to);
    return RC_OK;
}

static rc_code csv_end(exporter *to, rc_error *err)
{
    RC_TRY(rc_out_file_commit(&to->file, err));
    return note_written(to, err);
}

/* ---- SQLite ---- */

static rc_code sql_failed(const exporter *to, rc_error *err)
{
    return RC_FAIL(err, RC_E_IO, (rc_where){.file = to->file.path}, "sqlite: %s",
                   sqlite3_errmsg(to->db));
}

static rc_code sql_run(exporter *to, const char *statement, rc_error *err)
{
    return sqlite3_exec(to->db, statement, NULL, NULL, NULL) == SQLITE_OK ? RC_OK
                                                                          : sql_failed(to, err);
}

static rc_code sql_begin(exporter *to, const char *table, const rc_column *columns, size_t n,
                         rc_error *err)
{
    rc_text create = {.mem = to->mem}, insert = {.mem = to->mem};
    RC_TRY(rc_text_printf(&create, err, "CREATE TABLE \"%s\" (", table));
    RC_TRY(rc_text_printf(&insert, err, "INSERT INTO \"%s\" VALUES (", table));
    for (size_t i = 0; i < n; i++) {
        RC_TRY(rc_text_printf(&create, err, "%s\"%s\" %s", i ? ", " : "", columns[i].name,
                              columns[i].unit == RC_UNIT_TEXT ? "TEXT" : "INTEGER"));
        RC_TRY(rc_text_printf(&insert, err, "%s?", i ? ", " : ""));
    }
    RC_TRY(rc_text_add(&create, ")", 1, err));
    RC_TRY(rc_text_add(&insert, ")", 1, err));
    RC_TRY(sql_run(to, create.at, err));
    return sqlite3_prepare_v2(to->db, insert.at, -1, &to->insert, NULL) == SQLITE_OK
               ? RC_OK
               : sql_failed(to, err);
}

static rc_code sql_row(exporter *to, const rc_cell *cells, rc_error *err)
{
    for (size_t i = 0; i < to->n_columns; i++) {
        int at = (int)i + 1, code = SQLITE_OK;
        if (cells[i].is_null)
            code = sqlite3_bind_null(to->insert, at);
        else if (to->columns[i].unit == RC_UNIT_TEXT)
            code = sqlite3_bind_text(to->insert, at, printable(to, cells[i].text), -1,
                                     SQLITE_TRANSIENT);
        else
            code = sqlite3_bind_int64(to->insert, at, cells[i].i);
        if (code != SQLITE_OK)
            return sql_failed(to, err);
    }
    if (sqlite3_step(to->insert) != SQLITE_DONE)
        return sql_failed(to, err);
    sqlite3_reset(to->insert);
    return RC_OK;
}

static rc_code sql_end(exporter *to, rc_error *err)
{
    sqlite3_finalize(to->insert);
    to->insert = NULL;
    return note_written(to, err);
}

/* ---- tables ---- */

static rc_code begin(exporter *to, const char *table, const rc_column *columns, size_t n,
                     rc_error *err)
{
    to->table = table;
    to->columns = columns;
    to->n_columns = n;
    to->n_rows = 0;
    return to->begin(to, table, columns, n, err);
}

static rc_code put(exporter *to, const rc_cell *cells, rc_error *err)
{
    to->n_rows++;
    return to->row(to, cells, err);
}

static rc_cell null_cell(void)
{
    return (rc_cell){.is_null = true};
}

static rc_cell string_cell(const rc_snapshot_names *names, uint32_t id)
{
    return id ? rc_cell_text(rc_snapshot_string_at(names, id).bytes) : null_cell();
}

typedef struct event_writer {
    exporter *to;
    const rc_snapshot_file *file; /* of the first reading */
    int64_t n_events[1024];       /* by device */
} event_writer;

static rc_code write_event(void *state, const rc_snapshot_names *names, uint32_t trace,
                           const rc_snapshot_event *event, rc_error *err)
{
    event_writer *w = state;
    int device = trace < w->file->n_traces ? w->file->traces[trace].device : -1;
    if (device < 0)
        return RC_OK;
    bool is_oom = event->action == RC_ACTION_OOM;
    char pool[48];
    snprintf(pool, sizeof pool, "%" PRId64 ":%" PRId64, event->pool_id[0], event->pool_id[1]);
    const rc_cell cells[] = {rc_cell_int(device),
                             rc_cell_int(w->n_events[device]++),
                             string_cell(names, event->action_name),
                             is_oom ? null_cell() : rc_cell_int((int64_t)event->addr),
                             rc_cell_int(event->size_bytes),
                             rc_cell_int(event->stream),
                             event->has_time ? rc_cell_int(event->time_us) : null_cell(),
                             is_oom ? rc_cell_int(event->device_free_bytes) : null_cell(),
                             event->has_pool ? rc_cell_text(pool) : null_cell(),
                             event->stack == RC_STACK_ABSENT ? null_cell()
                                                             : rc_cell_int(event->stack),
                             string_cell(names, event->compile_context),
                             string_cell(names, event->user_metadata)};
    return put(w->to, cells, err);
}

static rc_code write_events(exporter *to, const char *path, const rc_snapshot_file *first,
                            rc_snapshot_file **file, rc_error *err)
{
    static const rc_column columns[] = {{"device", NULL, RC_UNIT_COUNT},
                                        {"event", NULL, RC_UNIT_COUNT},
                                        {"action", NULL, RC_UNIT_TEXT},
                                        {"addr", NULL, RC_UNIT_COUNT},
                                        {"size_bytes", NULL, RC_UNIT_BYTES},
                                        {"stream", NULL, RC_UNIT_COUNT},
                                        {"time_us", NULL, RC_UNIT_COUNT},
                                        {"device_free_bytes", NULL, RC_UNIT_BYTES},
                                        {"pool", NULL, RC_UNIT_TEXT},
                                        {"stack", NULL, RC_UNIT_COUNT},
                                        {"compile_context", NULL, RC_UNIT_TEXT},
                                        {"user_metadata", NULL, RC_UNIT_TEXT}};
    event_writer *w;
    RC_TRY(RC_NEW(to->mem, &w, 1, err));
    w->to = to;
    w->file = first;
    rc_snapshot_sink sink = {w, write_event};
    RC_TRY(begin(to, "events", columns, N(columns), err));
    RC_TRY(rc_snapshot_read(path, &sink, to->mem, file, NULL, err));
    return to->end(to, err);
}

static rc_code write_stacks(exporter *to, const rc_snapshot_file *file, rc_error *err)
{
    static const rc_column columns[] = {{"stack", NULL, RC_UNIT_COUNT},
                                        {"label", NULL, RC_UNIT_TEXT},
                                        {"phase", NULL, RC_UNIT_TEXT},
                                        {"source", NULL, RC_UNIT_TEXT}};
    rc_frame_book book = {.mem = to->mem};
    size_t n = rc_snapshot_count_stacks(file->names);
    RC_TRY(rc_frame_book_reach(&book, file->names, (uint32_t)n - 1, err));
    RC_TRY(begin(to, "stacks", columns, N(columns), err));
    for (uint32_t id = RC_STACK_EMPTY; id < n; id++) {
        const char *source;
        rc_mark mark = rc_arena_mark(to->mem);
        RC_TRY(rc_stack_source(&book, file->names, id, to->mem, &source, err));
        const rc_cell cells[] = {
            rc_cell_int(id), rc_cell_text(rc_snapshot_label_name(book.stacks[id].label)),
            rc_cell_text(rc_snapshot_phase_name((rc_snapshot_phase)book.stacks[id].phase)),
            rc_cell_text(source)};
        RC_TRY(put(to, cells, err));
        rc_arena_rewind(to->mem, mark);
    }
    return to->end(to, err);
}

/* One row for each frame of each stack, innermost first. */
static rc_code write_frames(exporter *to, const rc_snapshot_file *file, rc_error *err)
{
    static const rc_column columns[] = {{"stack", NULL, RC_UNIT_COUNT},
                                        {"depth", NULL, RC_UNIT_COUNT},
                                        {"name", NULL, RC_UNIT_TEXT},
                                        {"filename", NULL, RC_UNIT_TEXT},
                                        {"line", NULL, RC_UNIT_COUNT}};
    size_t n = rc_snapshot_count_stacks(file->names);
    RC_TRY(begin(to, "frames", columns, N(columns), err));
    for (uint32_t id = RC_STACK_EMPTY; id < n; id++) {
        rc_snapshot_stack stack = rc_snapshot_stack_at(file->names, id);
        for (size_t i = 0; i < stack.n_frames; i++) {
            rc_snapshot_frame frame = rc_snapshot_frame_at(file->names, stack.frame[i]);
            const rc_cell cells[] = {
                rc_cell_int(id), rc_cell_int((int64_t)i),
                rc_cell_text(rc_snapshot_string_at(file->names, frame.name).bytes),
                rc_cell_text(rc_snapshot_string_at(file->names, frame.filename).bytes),
                rc_cell_int(frame.line)};
            RC_TRY(put(to, cells, err));
        }
    }
    return to->end(to, err);
}

static rc_code write_segments(exporter *to, const rc_snapshot_file *file, rc_error *err)
{
    static const rc_column columns[] = {
        {"segment", NULL, RC_UNIT_COUNT}, {"device", NULL, RC_UNIT_COUNT},
        {"addr", NULL, RC_UNIT_COUNT},    {"total_bytes", NULL, RC_UNIT_BYTES},
        {"class", NULL, RC_UNIT_TEXT},    {"stream", NULL, RC_UNIT_COUNT},
        {"pool", NULL, RC_UNIT_TEXT},     {"is_expandable", NULL, RC_UNIT_BOOL},
        {"stack", NULL, RC_UNIT_COUNT}};
    RC_TRY(begin(to, "segments", columns, N(columns), err));
    for (size_t i = 0; i < file->n_segments; i++) {
        const rc_snapshot_segment *s = &file->segments[i];
        char pool[48];
        snprintf(pool, sizeof pool, "%" PRId64 ":%" PRId64, s->pool_id[0], s->pool_id[1]);
        const rc_cell cells[] = {rc_cell_int((int64_t)i),
                                 rc_cell_int(s->device),
                                 rc_cell_int((int64_t)s->addr),
                                 rc_cell_int(s->total_bytes),
                                 rc_cell_text(s->is_small ? "small" : "large"),
                                 rc_cell_int(s->stream),
                                 rc_cell_text(pool),
                                 rc_cell_int(s->is_expandable),
                                 s->stack == RC_STACK_ABSENT ? null_cell()
                                                             : rc_cell_int(s->stack)};
        RC_TRY(put(to, cells, err));
    }
    return to->end(to, err);
}

static rc_code write_blocks(exporter *to, const rc_snapshot_file *file, rc_error *err)
{
    static const rc_column columns[] = {
        {"segment", NULL, RC_UNIT_COUNT},    {"addr", NULL, RC_UNIT_COUNT},
        {"size_bytes", NULL, RC_UNIT_BYTES}, {"requested_bytes", NULL, RC_UNIT_BYTES},
        {"state", NULL, RC_UNIT_TEXT},       {"stack", NULL, RC_UNIT_COUNT}};
    static const char *const states[] = {"inactive", "active_allocated", "active_pending_free",
                                         "other"};
    RC_TRY(begin(to, "blocks", columns, N(columns), err));
    for (size_t i = 0; i < file->n_segments; i++)
        for (size_t k = 0; k < file->segments[i].n_blocks; k++) {
            const rc_snapshot_block *b = &file->blocks[file->segments[i].first_block + k];
            const rc_cell cells[] = {
                rc_cell_int((int64_t)i), rc_cell_int((int64_t)b->addr),
                rc_cell_int(b->size_bytes),
                /* stale in blocks that are free */
                b->state == RC_BLOCK_INACTIVE ? null_cell() : rc_cell_int(b->requested_bytes),
                rc_cell_text(states[b->state]),
                b->stack == RC_STACK_ABSENT ? null_cell() : rc_cell_int(b->stack)};
            RC_TRY(put(to, cells, err));
        }
    return to->end(to, err);
}

static rc_code write_annotations(exporter *to, const rc_snapshot_file *file, rc_error *err)
{
    static const rc_column columns[] = {{"name", NULL, RC_UNIT_TEXT},
                                        {"stage", NULL, RC_UNIT_TEXT},
                                        {"device", NULL, RC_UNIT_COUNT},
                                        {"time_us", NULL, RC_UNIT_COUNT}};
    RC_TRY(begin(to, "annotations", columns, N(columns), err));
    for (size_t i = 0; i < file->n_annotations; i++) {
        const rc_snapshot_annotation *a = &file->annotations[i];
        const rc_cell cells[] = {
            rc_cell_text(rc_snapshot_string_at(file->names, a->name).bytes),
            rc_cell_text(a->is_start ? "START" : "END"), rc_cell_int(a->device),
            rc_cell_int(a->time_us)};
        RC_TRY(put(to, cells, err));
    }
    return to->end(to, err);
}

static rc_code write_all(exporter *to, const char *path, rc_report *report, rc_error *err)
{
    static const rc_column columns[] = {{"table", NULL, RC_UNIT_TEXT},
                                        {"rows", NULL, RC_UNIT_COUNT}};
    rc_snapshot_file *first, *file;
    if (strcmp(path, "-") == 0)
        return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE,
                       "an export reads the file twice; give its name, not -");
    RC_TRY(RC_NEW(to->mem, &to->text, TEXT_ROOM, err));
    RC_TRY(
        rc_table_make(to->mem, "written", "Written", columns, N(columns), &to->written, err));
    RC_TRY(rc_snapshot_read(path, NULL, to->mem, &first, NULL, err));
    RC_TRY(write_events(to, path, first, &file, err));
    RC_TRY(write_stacks(to, file, err));
    RC_TRY(write_frames(to, file, err));
    RC_TRY(write_segments(to, file, err));
    RC_TRY(write_blocks(to, file, err));
    RC_TRY(write_annotations(to, file, err));
    rc_report_add(report, to->written, false);
    return RC_OK;
}

rc_code rc_snapshot_export_csv(const char *path, const char *folder, rc_arena *mem,
                               rc_report *report, rc_error *err)
{
    exporter *to;
    RC_TRY(RC_NEW(mem, &to, 1, err));
    to->begin = csv_begin;
    to->row = csv_row;
    to->end = csv_end;
    to->mem = mem;
    to->folder = folder;
    RC_TRY(rc_path_make_directory(folder, err));
    rc_code code = write_all(to, path, report, err);
    if (code != RC_OK)
        rc_out_file_abort(&to->file);
    return code;
}

static rc_code fill_database(exporter *to, const char *path, rc_report *report, rc_error *err)
{
    if (sqlite3_open_v2(to->file.tmp_path, &to->db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
        return sql_failed(to, err);
    RC_TRY(sql_run(to, "PRAGMA journal_mode = OFF", err));
    RC_TRY(sql_run(to, "PRAGMA synchronous = OFF", err));
    RC_TRY(sql_run(to, "BEGIN", err));
    RC_TRY(write_all(to, path, report, err));
    return sql_run(to, "COMMIT", err);
}

rc_code rc_snapshot_export_sqlite(const char *path, const char *target, rc_arena *mem,
                                  rc_report *report, rc_error *err)
{
    exporter *to;
    RC_TRY(RC_NEW(mem, &to, 1, err));
    to->begin = sql_begin;
    to->row = sql_row;
    to->end = sql_end;
    to->mem = mem;
    RC_TRY(rc_out_file_open(target, &to->file, err));
    rc_code code = fill_database(to, path, report, err);
    sqlite3_finalize(to->insert);
    sqlite3_close(to->db);
    if (code == RC_OK)
        return rc_out_file_commit(&to->file, err);
    rc_out_file_abort(&to->file);
    return code;
}
