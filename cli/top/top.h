/*
 * Purpose: what `stook top` shows at one moment: a few lines and a table, made from looks at a heap
 * (top_views.c) and drawn on a screen (top_screen.c).
 */
#ifndef STOOK_CLI_TOP_H
#define STOOK_CLI_TOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "cli/heap/heap.h"
#include "cli/info/baseline.h"
#include "cli/memory/target.h"

enum top_view { TOP_CACHES, TOP_SLOTS, TOP_NODES, TOP_GROUPS, TOP_SHARES, TOP_VIEWS };

#define TOP_COLUMNS 14
#define TOP_CELL    48

struct top_row {
        char   cell[TOP_COLUMNS][TOP_CELL];
        double key[TOP_COLUMNS];        /* what is sorted by; a name's is not used */
};

struct top_table {
        const char *const *titles;      /* the first column is text, the others are numbers */
        unsigned        columns;
        struct top_row *rows;
        size_t          count;
};

/* What the user chose. */
struct top_choice {
        enum top_view view;
        unsigned sort[TOP_VIEWS];       /* column of each view */
        bool     up;                    /* the smallest first */
        bool     totals;                /* not rates */
        bool     all;                   /* caches that were never used, too */
        char     name[64];              /* part of a name, or a pattern; "": all */
};

/* What there is to show. */
struct top_state {
        struct target  *target;
        struct library *library;
        struct heap     now;            /* HEAP_COUNTS */
        struct heap     whole;          /* HEAP_OBJECTS, from time to time */
        bool            have_now, have_whole;
        uint64_t        whole_cost_ns;
        struct baseline before, zero;   /* counters of the look before; of the reset */
        double          seconds;        /* since the look before; 0: there was none */
};

/*
 * Looks once more. @whole: at all slabs, too, whatever it costs.
 * Return: 0, or -errno with state->now.error.
 */
int  top_look(struct top_state *state, bool whole);
/* Totals count from now on. */
void top_reset(struct top_state *state);
void top_free(struct top_state *state);

/* Columns of a view, without rows. */
const char *const *top_titles(enum top_view view, bool totals, unsigned *columns);
/* False: no memory. The rows are the caller's to free, sorted. */
bool top_make_table(const struct top_state *state, const struct top_choice *choice,
                    struct top_table *table);
/* The lines above the table. @line: 0 to 2. */
void top_make_line(const struct top_state *state, const struct top_choice *choice, unsigned line,
                   char *out, size_t size);

/*
 * Draws until the user leaves. Return: the exit status. Without a terminal, or without ncurses, it
 * says so.
 */
int  top_run(struct top_state *state, struct top_choice *choice, double every);
/* Serves a page at @listen, until SIGINT or SIGTERM. Return: the exit status. */
int  top_web(struct target *target, double every, const char *listen);

#endif
