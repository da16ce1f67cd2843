/*
 * Purpose: what may be set and swept of a replay, and the grid of all combinations of several
 * sweeps.
 */
#ifndef STOOK_CLI_REPLAY_SWEEP_H
#define STOOK_CLI_REPLAY_SWEEP_H

#include <stdbool.h>
#include <stddef.h>
#include "cli/replay/replay_run.h"

#define SWEEP_VALUES 32                 /* of one parameter; arbitrary */
#define SWEEPS_MAX   4
#define GRID_MAX     1024               /* replays; arbitrary */

struct replay_parameter {
        const char *name;
        long        least, most;
        /* Ints or unsigneds in struct replay_settings; `barn` sets both of its limits. */
        size_t      at, also;
        bool        is_swept, is_chosen;        /* chosen: a setting, not the machine */
};

/* All of them, in the order of the options; the last one's name is NULL. */
extern const struct replay_parameter replay_parameters[];

struct replay_sweep {
        const struct replay_parameter *of;
        const char *values[SWEEP_VALUES];
        size_t      count;
        char       *text;               /* values point into it */
};

/* The first sweep changes slowest from cell to cell. */
struct replay_grid {
        struct replay_sweep sweep[SWEEPS_MAX];
        unsigned            count;
};

/* False, and said: @text is no such number. */
bool replay_set(struct replay_settings *settings, const struct replay_parameter *parameter,
                const char *text);
/* "capacity=0,16,32", one sweep more. All values are tried. False, and said: why not. */
bool replay_grid_add(struct replay_grid *grid, const char *text);
/* 1 without sweeps. */
size_t replay_grid_cells(const struct replay_grid *grid);
/* Which value of a sweep a cell has. */
size_t replay_grid_index(const struct replay_grid *grid, unsigned sweep, size_t cell);
void replay_grid_set(const struct replay_grid *grid, size_t cell,
                     struct replay_settings *settings);
void replay_grid_release(struct replay_grid *grid);

#endif
