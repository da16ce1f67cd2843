/*
 * Purpose: a table of shares or bytes as coloured cells with their numbers in them, in SVG.
 */
#ifndef STOOK_CLI_HEAT_MAP_H
#define STOOK_CLI_HEAT_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include "cli/replay/chart.h"

struct heat_map {
        const char *title, *x_title, *y_title;
        const char *const *x_labels, *const *y_labels;
        size_t columns, rows;
        const double *values;           /* row by row, 0 or more */
        enum chart_unit unit;           /* CHART_SHARE: dark is 1. CHART_BYTES: dark is the most */
        const bool *marked;             /* of each cell: with a frame */
};

/* Of one map with its titles, on the page. */
double heat_map_width(size_t columns);
double heat_map_height(size_t rows);
void heat_map_draw(FILE *out, double x, double y, const struct heat_map *map);

#endif
