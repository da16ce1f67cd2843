/*
 * Purpose: columns and numbers as text; see table.h. Without memory, rows are left out.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "cli/text/table.h"
#include "cli/text/plain_text.h"

void table_init(struct table *t, unsigned columns)
{
        memset(t, 0, sizeof *t);
        t->columns = columns;
}

void table_row(struct table *t)
{
        if (t->rows == t->room) {
                unsigned room = t->room ? t->room * 2 : 16;
                void *grown = realloc(t->cells, (size_t)room * t->columns * TABLE_CELL_BYTES);

                t->filled = t->columns;
                if (!grown)
                        return;
                t->cells = grown;
                t->room = room;
        }
        memset(t->cells + (size_t)t->rows * t->columns, 0, (size_t)t->columns * TABLE_CELL_BYTES);
        t->rows++;
        t->filled = 0;
}

void table_cell(struct table *t, const char *format, ...)
{
        va_list args;

        if (t->filled >= t->columns)
                return;
        va_start(args, format);
        plain_print(t->cells[(size_t)(t->rows - 1) * t->columns + t->filled++], TABLE_CELL_BYTES,
                    format, args);
        va_end(args);
}

void table_bytes(struct table *t, uint64_t bytes)
{
        char text[32];

        table_cell(t, "%s", bytes_text(bytes, text, sizeof text));
}

void table_count(struct table *t, uint64_t count)
{
        table_cell(t, "%llu", (unsigned long long)count);
}

void table_percent(struct table *t, double share)
{
        table_cell(t, "%.1f%%", share * 100);
}

static void cell_short(struct table *t, double value, double step)
{
        static const char units[] = "KMGTPE";
        unsigned unit = 0;

        while (value >= step && units[unit + 1]) {
                value /= step;
                unit++;
        }
        table_cell(t, value < 9.95 ? "%.1f%c" : "%.0f%c", value, units[unit]);
}

void table_bytes_short(struct table *t, uint64_t bytes)
{
        if (bytes < 1024)
                table_count(t, bytes);
        else
                cell_short(t, (double)bytes / 1024, 1024);
}

void table_count_short(struct table *t, uint64_t count)
{
        if (count < 100000)
                table_count(t, count);
        else
                cell_short(t, (double)count / 1000, 1000);
}

/* Cells of a row up to the last one with text: what is behind it needs no blanks. */
static unsigned used_cells(const struct table *t, unsigned row)
{
        unsigned n = t->columns;

        while (n > 1 && !*t->cells[(size_t)row * t->columns + n - 1])
                n--;
        return n;
}

void table_print(struct table *t, FILE *out)
{
        size_t width[TABLE_COLUMNS_MAX] = { 0 };

        for (unsigned r = 0; r < t->rows; r++)
                for (unsigned c = 0; c < t->columns; c++) {
                        size_t n = strlen(t->cells[(size_t)r * t->columns + c]);

                        if (n > width[c])
                                width[c] = n;
                }
        for (unsigned r = 0; r < t->rows; r++) {
                for (unsigned c = 0, used = used_cells(t, r); c < used; c++) {
                        const char *cell = t->cells[(size_t)r * t->columns + c];

                        fprintf(out, c ? "  %*s" : "  %-*s", used > 1 ? (int)width[c] : 0, cell);
                }
                fputc('\n', out);
        }
        free(t->cells);
        memset(t, 0, sizeof *t);
}

const char *bytes_text(uint64_t bytes, char *buffer, size_t size)
{
        static const char units[] = "KMGTPE";
        double value = (double)bytes;
        int unit = -1;

        while (value >= 1023.95 && units[unit + 1]) {
                value /= 1024;
                unit++;
        }
        if (unit < 0)
                snprintf(buffer, size, "%llu", (unsigned long long)bytes);
        else
                snprintf(buffer, size, "%.1f %ciB", value, units[unit]);
        return buffer;
}

const char *seconds_text(double seconds, char *buffer, size_t size)
{
        if (seconds < 0.001)
                snprintf(buffer, size, "%.0f us", seconds * 1e6);
        else if (seconds < 1)
                snprintf(buffer, size, "%.1f ms", seconds * 1e3);
        else
                snprintf(buffer, size, "%.3f s", seconds);
        return buffer;
}
