/*
 * Purpose: see heat_map.h. Colours are on a logarithmic scale, from white to dark: one share in ten
 * thousand and less is white. They go by brightness, so they can be told apart without colours.
 */
#include <math.h>
#include "cli/replay/heat_map.h"
#include "cli/text/table.h"

#define CELL_WIDTH  70.0
#define CELL_HEIGHT 24.0
#define LEFT        62.0                /* room for labels of rows */
#define RIGHT       26.0
#define TOP         26.0
#define BOTTOM      46.0
#define DECADES     4                   /* of shares */
#define DARK        0.68                /* from there on white letters are told best */

struct colour {
        double red, green, blue;
};

static const struct colour white = { 255, 255, 255 };
static const struct colour dark_share = { 8, 48, 107 }, dark_bytes = { 127, 59, 8 };

static double depth(const struct heat_map *m, double value, double least, double most)
{
        double at;

        if (value <= 0)
                return 0;
        if (m->unit == CHART_SHARE)
                at = 1 + log10(value) / DECADES;
        else
                at = most > least ? log(value / least) / log(most / least) : 0;
        return fmin(fmax(at, 0), 1);
}

static void cell_text(double value, enum chart_unit unit, char *buffer, size_t size)
{
        if (unit == CHART_SHARE)
                snprintf(buffer, size, value >= 0.0995 ? "%.0f %%" : "%.2g %%", value * 100);
        else
                bytes_text((uint64_t)value, buffer, size);
}

static void draw_cell(FILE *out, double x, double y, double value, double deep,
                      const struct heat_map *m)
{
        const struct colour *dark = m->unit == CHART_SHARE ? &dark_share : &dark_bytes;
        char text[32];

        fprintf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
                "fill=\"#%02x%02x%02x\" stroke=\"#dddddd\"/>\n", x, y, CELL_WIDTH, CELL_HEIGHT,
                (unsigned)(white.red + deep * (dark->red - white.red)),
                (unsigned)(white.green + deep * (dark->green - white.green)),
                (unsigned)(white.blue + deep * (dark->blue - white.blue)));
        cell_text(value, m->unit, text, sizeof text);
        chart_text(out, x + CELL_WIDTH / 2, y + CELL_HEIGHT / 2 + 4, "middle",
                   deep > DARK ? "#ffffff" : "#000000", text);
}

static void draw_mark(FILE *out, double x, double y)
{
        fprintf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
                "fill=\"none\" stroke=\"#d55e00\" stroke-width=\"3\"/>\n", x + 1, y + 1,
                CELL_WIDTH - 2, CELL_HEIGHT - 2);
}

double heat_map_width(size_t columns)
{
        return LEFT + (double)columns * CELL_WIDTH + RIGHT;
}

double heat_map_height(size_t rows)
{
        return TOP + (double)rows * CELL_HEIGHT + BOTTOM;
}

void heat_map_draw(FILE *out, double x, double y, const struct heat_map *m)
{
        size_t cells = m->columns * m->rows;
        double least = HUGE_VAL, most = 0;
        double x0 = x + LEFT, y0 = y + TOP;

        for (size_t i = 0; i < cells; i++) {
                most = fmax(most, m->values[i]);
                if (m->values[i] > 0)
                        least = fmin(least, m->values[i]);
        }
        chart_text(out, x0, y + TOP - 8, "start", "#000000", m->title);
        for (size_t i = 0; i < cells; i++)
                draw_cell(out, x0 + (double)(i % m->columns) * CELL_WIDTH,
                          y0 + (double)(i / m->columns) * CELL_HEIGHT, m->values[i],
                          depth(m, m->values[i], least, most), m);
        for (size_t i = 0; i < cells; i++)
                if (m->marked[i])
                        draw_mark(out, x0 + (double)(i % m->columns) * CELL_WIDTH,
                                  y0 + (double)(i / m->columns) * CELL_HEIGHT);
        for (size_t i = 0; i < m->columns; i++)
                chart_text(out, x0 + ((double)i + 0.5) * CELL_WIDTH,
                           y0 + (double)m->rows * CELL_HEIGHT + 16, "middle", "#444444",
                           m->x_labels[i]);
        for (size_t i = 0; i < m->rows && m->y_labels; i++)
                chart_text(out, x0 - 6, y0 + ((double)i + 0.5) * CELL_HEIGHT + 4, "end", "#444444",
                           m->y_labels[i]);
        chart_text(out, x0, y0 + (double)m->rows * CELL_HEIGHT + 34, "start", "#444444",
                   m->x_title);
        chart_text(out, x0 - 6, y + TOP - 8, "end", "#444444", m->y_title);
}
