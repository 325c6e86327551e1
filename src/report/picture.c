/* picture.c — charts as SVG.
 *
 * takes  an rc_table and the columns to draw
 * gives  one <svg> element that needs nothing else, also inside an HTML page
 */
#include <recompute/picture.h>

#include "report/axis.h"
#include "report/cell.h"

#include <math.h>
#include <string.h>

enum { DEFAULT_WIDTH = 960, DEFAULT_HEIGHT = 480, LEFT = 96, RIGHT = 32 };

static const char *const colours[] = {"#0072b2", "#e69f00", "#009e73", "#d55e00",
                                      "#cc79a7", "#56b4e9", "#b8a800", "#8c8c8c"};
enum { N_COLOURS = sizeof colours / sizeof *colours };

typedef struct frame {
    const rc_chart *chart;
    FILE *to;
    rc_axis x, y;
    double width, height, left, right, top, bottom; /* of the plot, in pixels */
} frame;

/* --- what the table holds */

static double cell_number(const rc_chart *chart, size_t row, int column)
{
    const rc_cell *cell = &rc_table_row(chart->table, row)[column];
    rc_unit unit = chart->table->columns[column].unit;
    if (cell->is_null)
        return NAN;
    bool is_real = unit == RC_UNIT_SECONDS || unit == RC_UNIT_REAL || unit == RC_UNIT_RATIO;
    return is_real ? cell->f : (double)cell->i;
}

static bool is_number_column(const rc_chart *chart, int column)
{
    return column >= 0 && (size_t)column < chart->table->n_columns &&
           rc_unit_is_number(chart->table->columns[column].unit);
}

static rc_code check_columns(const rc_chart *chart, rc_error *err)
{
    bool is_fine = chart->n_series >= 1 && chart->n_series <= RC_CHART_MAX_SERIES;
    for (int i = 0; is_fine && i < chart->n_series; i++)
        is_fine = is_number_column(chart, chart->series[i]);
    if (chart->kind == RC_CHART_BARS)
        is_fine = is_fine && chart->x >= 0 && (size_t)chart->x < chart->table->n_columns;
    else
        is_fine = is_fine && is_number_column(chart, chart->x);
    if (!is_fine)
        return RC_FAIL(err, RC_E_BUG, RC_NOWHERE,
                       "a chart of %s names a column without numbers", chart->table->name);
    return RC_OK;
}

/* Value that a series reaches in a row: alone, or on top of the ones below. NAN: not drawn. */
static double series_top(const rc_chart *chart, size_t row, int series)
{
    if (chart->kind != RC_CHART_STACKED)
        return cell_number(chart, row, chart->series[series]);
    double sum = 0;
    for (int i = 0; i <= series; i++) {
        double value = cell_number(chart, row, chart->series[i]);
        sum += isfinite(value) ? value : 0;
    }
    return sum;
}

static bool has_x(const rc_chart *chart, size_t row)
{
    return chart->kind == RC_CHART_BARS || isfinite(cell_number(chart, row, chart->x));
}

/* The extremes of x and y over all rows that can be drawn. */
static rc_code measure(frame *f, rc_error *err)
{
    const rc_chart *chart = f->chart;
    double x_low = INFINITY, x_high = -INFINITY, y_low = INFINITY, y_high = -INFINITY;
    for (size_t r = 0; r < chart->table->n_rows; r++) {
        double x = chart->kind == RC_CHART_BARS ? (double)r : cell_number(chart, r, chart->x);
        for (int s = 0; has_x(chart, r) && s < chart->n_series; s++) {
            double y = series_top(chart, r, s);
            if (!isfinite(y))
                continue;
            x_low = fmin(x_low, x);
            x_high = fmax(x_high, x);
            y_low = fmin(y_low, y);
            y_high = fmax(y_high, y);
        }
    }
    if (!(x_low <= x_high))
        return RC_FAIL(err, RC_E_RANGE, RC_NOWHERE, "the table %s has no row to draw",
                       chart->table->name);
    if (chart->kind != RC_CHART_LINES || y_low < y_high * 0.5)
        y_low = fmin(y_low, 0);
    if (chart->has_zero_x)
        x_low = fmin(x_low, 0);
    rc_unit y_unit = chart->table->columns[chart->series[0]].unit;
    f->y = rc_axis_make(y_low, y_high, y_unit, false, 6);
    if (chart->kind == RC_CHART_BARS) {
        f->x = (rc_axis){.low = -0.5, .high = x_high + 0.5, .step = 1};
    } else {
        rc_unit x_unit = chart->table->columns[chart->x].unit;
        f->x = rc_axis_make(x_low, x_high, x_unit, chart->is_x_integer, 8);
    }
    return RC_OK;
}

/* --- the frame around the data */

static void put_text(const frame *f, double x, double y, const char *anchor, const char *text)
{
    fprintf(f->to, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    rc_html_escape(text, f->to);
    fputs("</text>\n", f->to);
}

static void put_head(const frame *f, const char *title)
{
    fprintf(f->to,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"rc\" viewBox=\"0 0 %.0f %.0f\" "
            "width=\"%.0f\" height=\"%.0f\" role=\"img\">\n<title>",
            f->width, f->height, f->width, f->height);
    rc_html_escape(title, f->to);
    fputs("</title>\n<style>\n"
          "svg.rc { font: 13px system-ui, sans-serif; background: #fff; max-width: 100%; "
          "height: auto; }\n"
          "svg.rc text { fill: #333; }\nsvg.rc .title { font-size: 16px; font-weight: 600; }\n"
          "svg.rc .grid { stroke: #ddd; }\nsvg.rc .axis { stroke: #888; }\n"
          "@media (prefers-color-scheme: dark) {\n"
          "svg.rc { background: #1b1b1b; }\nsvg.rc text { fill: #ddd; }\n"
          "svg.rc .grid { stroke: #3a3a3a; }\n}\n</style>\n",
          f->to);
    fprintf(f->to, "<text class=\"title\" x=\"%.1f\" y=\"26\">", f->left);
    rc_html_escape(title, f->to);
    fputs("</text>\n", f->to);
}

static void put_line(const frame *f, const char *class, double x1, double y1, double x2,
                     double y2)
{
    fprintf(f->to, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
            class, x1, y1, x2, y2);
}

static void put_y_axis(const frame *f)
{
    char label[48];
    for (int k = 0; k < rc_axis_count(&f->y); k++) {
        double y = rc_axis_at(&f->y, f->y.low + k * f->y.step);
        put_line(f, "grid", f->left, y, f->right, y);
        put_text(f, f->left - 8, y + 4, "end", rc_axis_label(&f->y, k, label));
    }
}

/* Names of bars lean when there is no room for them side by side. */
static rc_code put_bar_names(const frame *f, rc_error *err)
{
    const rc_chart *chart = f->chart;
    const rc_column *column = &chart->table->columns[chart->x];
    size_t longest = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t r = 0; r < chart->table->n_rows; r++) {
            const char *name;
            RC_TRY(rc_cell_format(&rc_table_row(chart->table, r)[chart->x], column->unit,
                                  chart->table->mem, &name, err));
            longest = strlen(name) > longest ? strlen(name) : longest;
            double x = rc_axis_at(&f->x, (double)r), y = f->bottom + 20;
            double room = (f->right - f->left) / (double)chart->table->n_rows;
            if (pass == 0)
                continue;
            if ((double)longest * 7 < room) {
                put_text(f, x, y, "middle", name);
                continue;
            }
            fprintf(f->to,
                    "<text transform=\"translate(%.1f %.1f) rotate(-30)\" "
                    "text-anchor=\"end\">",
                    x + 4, y - 4);
            rc_html_escape(name, f->to);
            fputs("</text>\n", f->to);
        }
    }
    return RC_OK;
}

static rc_code put_x_axis(const frame *f, rc_error *err)
{
    const rc_chart *chart = f->chart;
    char label[48];
    put_line(f, "axis", f->left, f->bottom, f->right, f->bottom);
    if (chart->kind == RC_CHART_BARS)
        return put_bar_names(f, err);
    for (int k = 0; k < rc_axis_count(&f->x); k++) {
        double x = rc_axis_at(&f->x, f->x.low + k * f->x.step);
        put_line(f, "axis", x, f->bottom, x, f->bottom + 5);
        put_text(f, x, f->bottom + 20, "middle", rc_axis_label(&f->x, k, label));
    }
    put_text(f, (f->left + f->right) / 2, f->bottom + 40, "middle",
             rc_column_title(&chart->table->columns[chart->x]));
    return RC_OK;
}

static void put_legend(const frame *f)
{
    const rc_chart *chart = f->chart;
    double x = f->left;
    for (int s = 0; s < chart->n_series; s++) {
        const char *name = rc_column_title(&chart->table->columns[chart->series[s]]);
        fprintf(f->to, "<rect x=\"%.1f\" y=\"40\" width=\"12\" height=\"12\" fill=\"%s\"/>\n",
                x, colours[s % N_COLOURS]);
        put_text(f, x + 18, 51, "start", name);
        x += 36 + 7.2 * (double)strlen(name);
    }
}

/* --- the data */

static void draw_lines(const frame *f)
{
    const rc_chart *chart = f->chart;
    for (int s = 0; s < chart->n_series; s++) {
        bool is_open = false;
        fprintf(f->to, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"2\" d=\"",
                colours[s % N_COLOURS]);
        for (size_t r = 0; r < chart->table->n_rows; r++) {
            double y = series_top(chart, r, s);
            bool is_drawn = isfinite(y) && has_x(chart, r);
            if (is_drawn)
                fprintf(f->to, "%c%.1f %.1f", is_open ? 'L' : 'M',
                        rc_axis_at(&f->x, cell_number(chart, r, chart->x)),
                        rc_axis_at(&f->y, y));
            is_open = is_drawn;
        }
        fputs("\"/>\n", f->to);
    }
}

/* Each area runs forward along its top and back along the top of the one below. */
static void draw_stacked(const frame *f)
{
    const rc_chart *chart = f->chart;
    size_t n = chart->table->n_rows;
    for (int s = 0; s < chart->n_series; s++) {
        fprintf(f->to, "<path fill=\"%s\" d=\"", colours[s % N_COLOURS]);
        char command = 'M';
        for (size_t k = 0; k < 2 * n; k++) {
            size_t r = k < n ? k : 2 * n - 1 - k;
            if (!has_x(chart, r))
                continue;
            double y = k < n ? series_top(chart, r, s) : s ? series_top(chart, r, s - 1) : 0;
            fprintf(f->to, "%c%.1f %.1f", command,
                    rc_axis_at(&f->x, cell_number(chart, r, chart->x)), rc_axis_at(&f->y, y));
            command = 'L';
        }
        fputs("Z\"/>\n", f->to);
    }
}

static rc_code put_tip(const frame *f, size_t row, int column, rc_error *err)
{
    const char *text;
    const rc_table *table = f->chart->table;
    RC_TRY(rc_cell_format(&rc_table_row(table, row)[column], table->columns[column].unit,
                          table->mem, &text, err));
    fputs("<title>", f->to);
    rc_html_escape(text, f->to);
    fputs("</title>", f->to);
    return RC_OK;
}

static rc_code draw_bars(const frame *f, rc_error *err)
{
    const rc_chart *chart = f->chart;
    double group = (f->right - f->left) / (double)chart->table->n_rows * 0.8;
    double bar = group / chart->n_series, zero = rc_axis_at(&f->y, 0);
    for (size_t r = 0; r < chart->table->n_rows; r++) {
        for (int s = 0; s < chart->n_series; s++) {
            double value = series_top(chart, r, s);
            if (!isfinite(value))
                continue;
            double x = rc_axis_at(&f->x, (double)r) - group / 2 + s * bar;
            double y = rc_axis_at(&f->y, value);
            fprintf(f->to,
                    "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\">",
                    x, fmin(y, zero), bar * 0.92, fabs(zero - y), colours[s % N_COLOURS]);
            RC_TRY(put_tip(f, r, chart->series[s], err));
            fputs("</rect>\n", f->to);
        }
    }
    return RC_OK;
}

/* Where names of points stand already, so that no two overlap. */
typedef struct placed {
    double x[64], y[64], width[64];
    size_t n;
} placed;

static bool is_free(const placed *p, double x, double y, double width)
{
    for (size_t i = 0; i < p->n; i++)
        if (fabs(p->y[i] - y) < 14 && x < p->x[i] + p->width[i] && p->x[i] < x + width)
            return false;
    return true;
}

/* Beside the point, else a line or more below or above it. */
static void put_name(const frame *f, placed *p, double x, double y, const char *name)
{
    double width = 7.2 * (double)strlen(name), at_x = x + 9, at_y = y + 4;
    if (at_x + width > f->right)
        at_x = x - 9 - width;
    for (int k = 1; k < 12 && !is_free(p, at_x, at_y, width); k++)
        at_y = y + 4 + (k % 2 ? 14.0 : -14.0) * (double)((k + 1) / 2);
    if (p->n < 64) {
        p->x[p->n] = at_x;
        p->y[p->n] = at_y;
        p->width[p->n++] = width;
    }
    if (fabs(at_y - y) > 10)
        put_line(f, "grid", x, y, at_x < x ? x - 7 : x + 7, at_y - 4);
    put_text(f, at_x, at_y, "start", name);
}

static rc_code draw_points(const frame *f, rc_error *err)
{
    const rc_chart *chart = f->chart;
    const rc_table *table = chart->table;
    placed names = {.n = 0};
    for (size_t r = 0; r < table->n_rows; r++) {
        for (int s = 0; has_x(chart, r) && s < chart->n_series; s++) {
            double value = series_top(chart, r, s);
            const char *name;
            if (!isfinite(value))
                continue;
            double x = rc_axis_at(&f->x, cell_number(chart, r, chart->x));
            double y = rc_axis_at(&f->y, value);
            if (chart->label != RC_CHART_NO_COLUMN) {
                RC_TRY(rc_cell_format(&rc_table_row(table, r)[chart->label],
                                      table->columns[chart->label].unit, table->mem, &name,
                                      err));
                put_name(f, &names, x, y, name);
            }
            fprintf(f->to, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"5\" fill=\"%s\">", x, y,
                    colours[s % N_COLOURS]);
            RC_TRY(put_tip(f, r, chart->series[s], err));
            fputs("</circle>\n", f->to);
        }
    }
    return RC_OK;
}

static rc_code draw(frame *f, rc_error *err)
{
    const rc_chart *chart = f->chart;
    const char *title = chart->title          ? chart->title
                        : chart->table->title ? chart->table->title
                                              : chart->table->name;
    RC_TRY(measure(f, err));
    f->x.from = f->left;
    f->x.to = f->right;
    f->y.from = f->bottom;
    f->y.to = f->top;
    put_head(f, title);
    put_y_axis(f);
    put_legend(f);
    switch (chart->kind) {
    case RC_CHART_LINES:
        draw_lines(f);
        break;
    case RC_CHART_STACKED:
        draw_stacked(f);
        break;
    case RC_CHART_BARS:
        RC_TRY(draw_bars(f, err));
        break;
    case RC_CHART_POINTS:
        RC_TRY(draw_points(f, err));
        break;
    }
    RC_TRY(put_x_axis(f, err));
    fputs("</svg>\n", f->to);
    return RC_OK;
}

rc_code rc_chart_write(const rc_chart *chart, FILE *to, rc_error *err)
{
    RC_TRY(check_columns(chart, err));
    frame f = {.chart = chart, .to = to};
    f.width = chart->width > 0 ? chart->width : DEFAULT_WIDTH;
    f.height = chart->height > 0 ? chart->height : DEFAULT_HEIGHT;
    f.left = LEFT;
    f.right = f.width - RIGHT;
    f.top = 68; /* below the title and the legend */
    f.bottom = f.height - (chart->kind == RC_CHART_BARS ? 84 : 56);
    rc_mark mark = rc_arena_mark(chart->table->mem);
    rc_code code = draw(&f, err);
    rc_arena_rewind(chart->table->mem, mark);
    if (code == RC_OK && ferror(to))
        return RC_FAIL(err, RC_E_IO, RC_NOWHERE, "the picture could not be written");
    return code;
}
