/*
 * Purpose: line charts as SVG, one below the other on a page. Lines are named at their right ends.
 */
#ifndef STOOK_CLI_CHART_H
#define STOOK_CLI_CHART_H

#include <stddef.h>
#include <stdio.h>

#define CHART_LINES 5                   /* at most in one chart: colours to tell apart */

/* Shares of 1 are drawn on a logarithmic scale from 1/10000 up; smaller ones stand at its foot. */
enum chart_unit { CHART_NUMBER, CHART_SHARE, CHART_BYTES };

struct chart_line {
        const char   *name;
        const double *y;                /* one for each point */
};

struct chart {
        const char     *title;
        const char     *x_title;
        enum chart_unit unit;           /* of y, which begins at 0 unless it is a share */
        size_t          points;         /* 1 or more */
        const double   *x;              /* rising; NULL: the points are equally far apart */
        const char *const *labels;      /* of the points; NULL: x is a number */
        struct chart_line lines[CHART_LINES];
        unsigned        line_count;
};

void chart_page_begin(FILE *out, unsigned charts);
/* A page of that size for other drawings. */
void chart_page_begin_sized(FILE *out, double width, double height);
/* @anchor: as in SVG. */
void chart_text(FILE *out, double x, double y, const char *anchor, const char *colour,
                const char *words);
/* @at: 0 for the first of the page. */
void chart_draw(FILE *out, unsigned at, const struct chart *chart);
void chart_page_end(FILE *out);

#endif
