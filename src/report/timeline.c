/* timeline.c — memory over time as stacked areas, SVG and HTML.
 *
 * takes  columns that each hold the layers at their highest moment
 * gives  a picture with one step per pixel (the highest of the columns under it), or a page with all
 *        columns and a script that draws and zooms
 */
#include <recompute/timeline.h>

#include "report/axis.h"
#include "report/cell.h"
#include "report/timeline_page.h"

#include <inttypes.h>

enum {
    WIDTH = 1200,
    PANEL = 380,
    LEFT = 90,
    RIGHT = 20,
    TOP = 56,
    GAP = 44,
    PLOT = WIDTH - LEFT - RIGHT
};

/* 12 hues that stay apart for most colour vision, then the same lighter (after Okabe and Ito 2008). */
static const char *const colours[] = {
    "#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#b8a800",
    "#7b4ea3", "#8c564b", "#17becf", "#637939", "#e7298a", "#6baed6", "#fdbf6f",
    "#66c2a5", "#fc8d62", "#e5c494", "#9ecae1", "#d9d35a", "#b39ddb", "#c49c94",
    "#9edae5", "#b5cf6b", "#f4a6cd", "#969696", "#bdbdbd", "#737373", "#525252"};
enum { N_COLOURS = sizeof colours / sizeof *colours };

static int64_t total_at(const rc_timeline *t, const rc_timeline_run *run, size_t column)
{
    int64_t total = 0;
    for (size_t k = 0; k < t->n_layers; k++)
        total += run->bytes[k * run->n_columns + column];
    return total;
}

/* The highest column of those under each pixel; n_columns where there is none. */
static void choose_columns(const rc_timeline *t, const rc_timeline_run *run, double x_high,
                           size_t chosen[PLOT])
{
    for (size_t x = 0; x < PLOT; x++)
        chosen[x] = run->n_columns;
    for (size_t c = 0; c < run->n_columns; c++) {
        double from = (double)c * run->column_width / x_high * PLOT;
        double to = (double)(c + 1) * run->column_width / x_high * PLOT;
        for (size_t x = (size_t)from; x < PLOT && (double)x < to; x++)
            if (chosen[x] == run->n_columns ||
                total_at(t, run, c) > total_at(t, run, chosen[x]))
                chosen[x] = c;
    }
}

typedef struct panel {
    const rc_timeline *timeline;
    const rc_timeline_run *run;
    const size_t *chosen; /* [PLOT] */
    rc_axis y;
    FILE *to;
} panel;

/* Upper edge of a layer at a pixel: the layers up to and with it. */
static double edge_at(const panel *p, size_t x, size_t n_layers)
{
    int64_t bytes = 0;
    size_t column = p->chosen[x];
    for (size_t k = 0; k < n_layers && column < p->run->n_columns; k++)
        bytes += p->run->bytes[k * p->run->n_columns + column];
    return rc_axis_at(&p->y, (double)bytes);
}

/* One layer: along its upper edge, back along the lower; steps only where a value changes. */
static void put_layer(const panel *p, size_t layer)
{
    fprintf(p->to, "<path fill=\"%s\" d=\"M%d %.1f", colours[layer % N_COLOURS], LEFT,
            edge_at(p, 0, layer + 1));
    double last = edge_at(p, 0, layer + 1);
    for (size_t x = 1; x < PLOT; x++) {
        double y = edge_at(p, x, layer + 1);
        if (y < last - 0.05 || y > last + 0.05) {
            fprintf(p->to, "H%zuV%.1f", LEFT + x, y);
            last = y;
        }
    }
    double lower = edge_at(p, PLOT - 1, layer);
    fprintf(p->to, "H%dV%.1f", LEFT + PLOT, lower);
    for (size_t x = PLOT - 1; x-- > 0;) {
        double y = edge_at(p, x, layer);
        if (y < lower - 0.05 || y > lower + 0.05) {
            fprintf(p->to, "H%zuV%.1f", LEFT + x + 1, y);
            lower = y;
        }
    }
    fprintf(p->to, "H%dZ\"><title>", LEFT);
    rc_html_escape(p->timeline->layers[layer], p->to);
    fputs("</title></path>\n", p->to);
}

static void put_line(const panel *p)
{
    double last = -1;
    size_t end = LEFT;
    fputs("<path fill=\"none\" stroke=\"currentColor\" stroke-dasharray=\"4 3\" d=\"", p->to);
    for (size_t x = 0; x < PLOT; x++) {
        if (p->chosen[x] >= p->run->n_columns)
            continue;
        double y = rc_axis_at(&p->y, (double)p->run->line_bytes[p->chosen[x]]);
        if (last < 0)
            fprintf(p->to, "M%zu %.1f", LEFT + x, y);
        else if (y < last - 0.05 || y > last + 0.05)
            fprintf(p->to, "H%zuV%.1f", LEFT + x, y);
        last = y;
        end = LEFT + x + 1;
    }
    fprintf(p->to, "H%zu\"/>\n", end);
}

static void put_axes(const panel *p, const rc_axis *x)
{
    char buf[48];
    for (int k = 0; k < rc_axis_count(&p->y); k++) {
        double y = rc_axis_at(&p->y, p->y.low + k * p->y.step);
        fprintf(
            p->to,
            "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"currentColor\" "
            "stroke-opacity=\".15\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
            LEFT, LEFT + PLOT, y, y, LEFT - 6, y + 4, rc_axis_label(&p->y, k, buf));
    }
    for (int k = 0; k < rc_axis_count(x); k++) {
        double at = x->low + k * x->step;
        if (rc_axis_at(x, at) > LEFT + PLOT + 1)
            break;
        fprintf(p->to, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n",
                rc_axis_at(x, at), p->y.from + 16, rc_axis_label(x, k, buf));
    }
}

static void put_legend(const rc_timeline *t, double y, FILE *to)
{
    enum { PER_ROW = 6 };
    for (size_t k = 0; k < t->n_layers; k++) {
        size_t column = k % PER_ROW, row = k / PER_ROW;
        double x = LEFT + (double)column * PLOT / PER_ROW, at = y + (double)row * 18;
        fprintf(to,
                "<rect x=\"%.0f\" y=\"%.0f\" width=\"11\" height=\"11\" fill=\"%s\"/>"
                "<text x=\"%.0f\" y=\"%.0f\">",
                x, at, colours[k % N_COLOURS], x + 16, at + 10);
        rc_html_escape(t->layers[k], to);
        fputs("</text>\n", to);
    }
    if (t->line_name) {
        double x = LEFT + (double)(t->n_layers % PER_ROW) * PLOT / PER_ROW;
        double at = y + (double)(t->n_layers / PER_ROW) * 18 + 6;
        fprintf(to,
                "<path stroke=\"currentColor\" stroke-dasharray=\"4 3\" d=\"M%.0f %.0fh13\"/>"
                "<text x=\"%.0f\" y=\"%.0f\">",
                x, at, x + 16, at + 4);
        rc_html_escape(t->line_name, to);
        fputs("</text>\n", to);
    }
}

static rc_code find_ranges(const rc_timeline *t, double *x_high, double *y_high, rc_error *err)
{
    *x_high = *y_high = 0;
    for (size_t r = 0; r < t->n_runs; r++) {
        const rc_timeline_run *run = &t->runs[r];
        double end = (double)run->n_columns * run->column_width;
        *x_high = end > *x_high ? end : *x_high;
        for (size_t c = 0; c < run->n_columns; c++) {
            double top = (double)total_at(t, run, c);
            *y_high = top > *y_high ? top : *y_high;
            if (run->line_bytes && (double)run->line_bytes[c] > *y_high)
                *y_high = (double)run->line_bytes[c];
        }
    }
    if (!(*x_high > 0) || !(*y_high > 0))
        return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE, "there are no events to draw");
    return RC_OK;
}

static void put_panel(const rc_timeline *t, size_t r, double x_high, double y_high, FILE *to)
{
    size_t chosen[PLOT];
    const rc_timeline_run *run = &t->runs[r];
    double top = TOP + (double)r * (PANEL + GAP);
    choose_columns(t, run, x_high, chosen);
    panel p = {t, run, chosen, rc_axis_make(0, y_high, RC_UNIT_BYTES, true, 6), to};
    p.y.from = top + PANEL;
    p.y.to = top;
    rc_axis x = rc_axis_make(0, x_high, t->is_time ? RC_UNIT_SECONDS : RC_UNIT_COUNT, false, 8);
    x.from = LEFT;
    x.to = LEFT + (x.high - x.low) / x_high * PLOT;
    fprintf(to, "<text x=\"%d\" y=\"%.0f\" font-weight=\"600\">", LEFT, top - 8);
    rc_html_escape(run->name, to);
    fputs("</text>\n", to);
    for (size_t k = 0; k < t->n_layers; k++)
        put_layer(&p, k);
    if (run->line_bytes)
        put_line(&p);
    put_axes(&p, &x);
}

static rc_code finish(FILE *to, rc_error *err)
{
    return fflush(to) == 0 && !ferror(to)
               ? RC_OK
               : RC_FAIL(err, RC_E_IO, RC_NOWHERE, "cannot write the timeline");
}

rc_code rc_timeline_write_svg(const rc_timeline *t, FILE *to, rc_error *err)
{
    double x_high, y_high;
    RC_TRY(find_ranges(t, &x_high, &y_high, err));
    double legend = TOP + (double)t->n_runs * (PANEL + GAP);
    double height = legend + (double)(t->n_layers / 6 + 1) * 18 + 12;
    fprintf(to,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" "
            "viewBox=\"0 0 %d %.0f\" font-family=\"sans-serif\" font-size=\"12\" "
            "fill=\"currentColor\">\n<title>",
            WIDTH, height, WIDTH, height);
    rc_html_escape(t->title, to);
    fprintf(to, "</title>\n<text x=\"%d\" y=\"22\" font-size=\"16\">", LEFT);
    rc_html_escape(t->title, to);
    fputs("</text>\n", to);
    for (size_t r = 0; r < t->n_runs; r++)
        put_panel(t, r, x_high, y_high, to);
    put_legend(t, legend, to);
    fputs("</svg>\n", to);
    return finish(to, err);
}

/* ---- the page ---- */

static void put_numbers(const int64_t *bytes, size_t n, FILE *to)
{
    fputc('[', to);
    for (size_t c = 0; c < n; c++) /* KiB, as differences: a tenth of the size */
        fprintf(to, c ? ",%" PRId64 : "%" PRId64,
                bytes[c] / 1024 - (c ? bytes[c - 1] / 1024 : 0));
    fputc(']', to);
}

static void put_data(const rc_timeline *t, FILE *to)
{
    fprintf(to, "<script>\n\"use strict\";\nconst data = {isTime: %s, colours: [",
            t->is_time ? "true" : "false");
    for (size_t k = 0; k < t->n_layers; k++)
        fprintf(to, "%s\"%s\"", k ? "," : "", colours[k % N_COLOURS]);
    fputs("], runs: [\n", to);
    for (size_t r = 0; r < t->n_runs; r++) {
        const rc_timeline_run *run = &t->runs[r];
        fprintf(to, "{width: %.17g, n: %zu, layers: [\n", run->column_width, run->n_columns);
        for (size_t k = 0; k < t->n_layers; k++) {
            put_numbers(run->bytes + k * run->n_columns, run->n_columns, to);
            fputs(",\n", to);
        }
        fputs("], line: ", to);
        if (run->line_bytes)
            put_numbers(run->line_bytes, run->n_columns, to);
        else
            fputs("null", to);
        fputs("},\n", to);
    }
    fputs("]};\n", to);
}

rc_code rc_timeline_write_html(const rc_timeline *t, FILE *to, rc_error *err)
{
    double x_high, y_high;
    RC_TRY(find_ranges(t, &x_high, &y_high, err));
    fputs(rc_timeline_page_head, to);
    rc_html_escape(t->title, to);
    fputs(rc_timeline_page_style, to);
    fputs("<h1>", to);
    rc_html_escape(t->title, to);
    fputs(
        "</h1>\n<p id=\"hint\">wheel: zoom; drag: move; double click: all; click a name: hide "
        "or show</p>\n<div id=\"legend\">",
        to);
    for (size_t k = 0; k < t->n_layers; k++) {
        fprintf(to, "<button type=\"button\"><i style=\"background:%s\"></i><span>",
                colours[k % N_COLOURS]);
        rc_html_escape(t->layers[k], to);
        fputs("</span></button>\n", to);
    }
    fputs("</div>\n<p id=\"line\">dashed: <span>", to);
    rc_html_escape(t->line_name ? t->line_name : "", to);
    fputs("</span></p>\n", to);
    for (size_t r = 0; r < t->n_runs; r++) {
        fputs("<h2>", to);
        rc_html_escape(t->runs[r].name, to);
        fputs("</h2>\n<canvas tabindex=\"0\"></canvas>\n", to);
    }
    fputs("<pre id=\"here\"></pre>\n", to);
    put_data(t, to);
    for (size_t i = 0; rc_timeline_page_script[i]; i++)
        fputs(rc_timeline_page_script[i], to);
    return finish(to, err);
}
