/*
 * Purpose: see chart.h.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "cli/replay/chart.h"
#include "cli/text/table.h"

/* Of a page, in its units. */
#define WIDTH     860.0
#define HEIGHT    270.0                 /* of one chart, with its titles */
#define LEFT      90.0
#define RIGHT     190.0                 /* room for the names of lines */
#define TOP       44.0
#define BOTTOM    50.0
#define NAME_STEP 15.0                  /* names are so far apart, or more */

/* Colours that readers without red or green tell apart: Okabe and Ito. */
static const char *const colours[CHART_LINES] = { "#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                  "#7f6a00" };

struct frame {
        double x0, y0, width, height;   /* of the lines' area on the page */
        double x_least, x_most, y_most;
        double decades;                 /* of a logarithmic scale below y_most; 0: a linear one */
};

void chart_text(FILE *out, double x, double y, const char *anchor, const char *colour,
                const char *words)
{
        fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" fill=\"%s\">", x, y, anchor,
                colour);
        for (; *words; words++) {
                if (*words == '<')
                        fputs("&lt;", out);
                else if (*words == '&')
                        fputs("&amp;", out);
                else
                        fputc((unsigned char)*words < ' ' ? '?' : *words, out);
        }
        fputs("</text>\n", out);
}

static double x_value(const struct chart *c, size_t point)
{
        return c->x ? c->x[point] : (double)point;
}

/* The distance of marks: 1, 2 or 5 times a power of ten; of bytes, a power of two. */
static double step_of(double most, enum chart_unit unit)
{
        double wanted = most / 5, power = pow(10, floor(log10(wanted)));

        if (unit == CHART_BYTES)
                return pow(2, ceil(log2(most / 8)));
        if (wanted <= power)
                return power;
        return wanted <= 2 * power ? 2 * power : wanted <= 5 * power ? 5 * power : 10 * power;
}

static void value_text(double value, enum chart_unit unit, char *buffer, size_t size)
{
        if (unit == CHART_SHARE)
                snprintf(buffer, size, "%g %%", value * 100);
        else if (unit == CHART_BYTES)
                bytes_text((uint64_t)value, buffer, size);
        else
                snprintf(buffer, size, "%.6g", value);
}

static struct frame frame_of(unsigned at, const struct chart *c)
{
        struct frame f = { LEFT, at * HEIGHT + TOP, WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM,
                           x_value(c, 0), x_value(c, c->points - 1), 0, 0 };

        for (unsigned i = 0; i < c->line_count; i++)
                for (size_t p = 0; p < c->points; p++)
                        f.y_most = fmax(f.y_most, c->lines[i].y[p]);
        if (c->unit == CHART_SHARE)
                f.decades = 4;
        if (f.y_most <= 0 || f.decades)
                f.y_most = 1;
        if (f.x_most <= f.x_least) {            /* one point stands in the middle */
                f.x_least -= 1;
                f.x_most += 1;
        }
        return f;
}

static double x_of(const struct frame *f, double x)
{
        return f->x0 + (x - f->x_least) / (f->x_most - f->x_least) * f->width;
}

static double y_of(const struct frame *f, double y)
{
        double height = y / f->y_most;

        if (f->decades)
                height = y > 0 ? fmax(0, 1 + log10(y / f->y_most) / f->decades) : 0;
        return f->y0 + f->height - height * f->height;
}

static void draw_y_mark(FILE *out, const struct frame *f, const struct chart *c, double value,
                        bool foot)
{
        double y = y_of(f, value);
        char label[32];

        fprintf(out, "<path d=\"M%.1f %.1fh%.1f\" stroke=\"%s\"/>\n", f->x0, y, f->width,
                foot ? "#444444" : "#dddddd");
        value_text(value, c->unit, label, sizeof label);
        chart_text(out, f->x0 - 8, y + 4, "end", "#444444", label);
}

static void draw_y_axis(FILE *out, const struct frame *f, const struct chart *c)
{
        double step = step_of(f->y_most, c->unit);

        if (f->decades)
                for (unsigned i = 0; i <= f->decades; i++)
                        draw_y_mark(out, f, c, f->y_most * pow(10, i - f->decades), !i);
        else
                for (unsigned i = 0; i * step <= f->y_most * 1.0001; i++)
                        draw_y_mark(out, f, c, i * step, !i);
}

static void draw_x_mark(FILE *out, const struct frame *f, double x, const char *label)
{
        fprintf(out, "<path d=\"M%.1f %.1fv5\" stroke=\"#444444\"/>\n", x, f->y0 + f->height);
        chart_text(out, x, f->y0 + f->height + 19, "middle", "#444444", label);
}

static void draw_x_axis(FILE *out, const struct frame *f, const struct chart *c)
{
        double step = step_of(f->x_most - f->x_least, CHART_NUMBER);
        char label[32];

        if (c->labels) {
                for (size_t p = 0; p < c->points; p++)
                        draw_x_mark(out, f, x_of(f, x_value(c, p)), c->labels[p]);
        } else {
                for (double n = ceil(f->x_least / step); n * step <= f->x_most * 1.0001; n++) {
                        value_text(n * step, CHART_NUMBER, label, sizeof label);
                        draw_x_mark(out, f, x_of(f, n * step), label);
                }
        }
        chart_text(out, f->x0 + f->width / 2, f->y0 + f->height + 38, "middle", "#444444",
                   c->x_title);
}

static void draw_line(FILE *out, const struct frame *f, const struct chart *c, unsigned line)
{
        const double *y = c->lines[line].y;

        fprintf(out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.8\" points=\"",
                colours[line]);
        for (size_t p = 0; p < c->points; p++)
                fprintf(out, "%.1f,%.1f ", x_of(f, x_value(c, p)), y_of(f, y[p]));
        fputs("\"/>\n", out);
        for (size_t p = 0; c->labels && p < c->points; p++)
                fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n",
                        x_of(f, x_value(c, p)), y_of(f, y[p]), colours[line]);
}

/* At the lines' right ends, from the highest down, and pushed apart. */
static void draw_names(FILE *out, const struct frame *f, const struct chart *c)
{
        bool drawn[CHART_LINES] = { false };
        double below = -1e9, step = NAME_STEP;
        double room = f->y0 + f->height;

        for (unsigned n = 0; n < c->line_count; n++) {
                unsigned top = CHART_LINES;
                double y, last;

                for (unsigned i = 0; i < c->line_count; i++)
                        if (!drawn[i] && (top == CHART_LINES ||
                                          c->lines[i].y[c->points - 1] >
                                                  c->lines[top].y[c->points - 1]))
                                top = i;
                drawn[top] = true;
                last = room - (c->line_count - 1 - n) * step;
                y = fmin(y_of(f, c->lines[top].y[c->points - 1]) + 4, last);
                y = fmax(y, below + step);
                chart_text(out, f->x0 + f->width + 10, y, "start", colours[top],
                           c->lines[top].name);
                below = y;
        }
}

void chart_page_begin_sized(FILE *out, double width, double height)
{
        fprintf(out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
                "width=\"%.0f\" height=\"%.0f\" font-family=\"sans-serif\" font-size=\"13\">\n"
                "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
                width, height, width, height);
}

void chart_page_begin(FILE *out, unsigned charts)
{
        chart_page_begin_sized(out, WIDTH, charts * HEIGHT + 10);
}

void chart_draw(FILE *out, unsigned at, const struct chart *c)
{
        struct frame f = frame_of(at, c);

        fputs("<g font-weight=\"bold\">", out);
        chart_text(out, f.x0, f.y0 - 16, "start", "#000000", c->title);
        fputs("</g>\n", out);
        draw_y_axis(out, &f, c);
        draw_x_axis(out, &f, c);
        for (unsigned i = 0; i < c->line_count; i++)
                draw_line(out, &f, c, i);
        draw_names(out, &f, c);
}

void chart_page_end(FILE *out)
{
        fputs("</svg>\n", out);
}
