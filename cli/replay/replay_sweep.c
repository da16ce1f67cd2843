/*
 * Purpose: see replay_sweep.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "cli/replay/replay_sweep.h"
#include "cli/text/plain_text.h"

#define NODES_MAX 64
#define TIMED_MAX 1000
#define BARN_MAX  4096                  /* stook_cache_tune() */

#define AT(field)         offsetof(struct replay_settings, field)
#define ONE(field)        AT(field), AT(field)

const struct replay_parameter replay_parameters[] = {
        { "capacity", 0, 65534, ONE(capacity), true, true },
        { "barn", 0, BARN_MAX, AT(barn_full), AT(barn_empty), true, true },
        { "barn-full", 0, BARN_MAX, ONE(barn_full), true, true },
        { "barn-empty", 0, BARN_MAX, ONE(barn_empty), true, true },
        { "slots", 1, REPLAY_CPUS, ONE(slots), true, false },
        { "nodes", 1, NODES_MAX, ONE(nodes), true, false },
        { "repeat", 0, TIMED_MAX, ONE(timed), false, false },
        { 0 }
};

static bool set(struct replay_settings *settings, const struct replay_parameter *p,
                const char *text)
{
        char *end;
        long n;
        int value;

        errno = 0;
        n = strtol(text, &end, 10);
        if (errno || *end || text[0] < '0' || text[0] > '9' || n < p->least || n > p->most)
                return false;
        value = (int)n;
        memcpy((char *)settings + p->at, &value, sizeof value);
        memcpy((char *)settings + p->also, &value, sizeof value);
        return true;
}

bool replay_set(struct replay_settings *settings, const struct replay_parameter *p,
                const char *text)
{
        if (set(settings, p, text))
                return true;
        say(stderr, "stook replay: %s takes a number from %ld to %ld, not '%s'\n", p->name,
            p->least, p->most, text);
        return false;
}

static const struct replay_parameter *find(const char *name)
{
        for (const struct replay_parameter *p = replay_parameters; p->name; p++)
                if (p->is_swept && !strcmp(p->name, name))
                        return p;
        return NULL;
}

/* Both set the same. */
static bool meet(const struct replay_parameter *a, const struct replay_parameter *b)
{
        return a->at == b->at || a->also == b->also;
}

bool replay_grid_add(struct replay_grid *grid, const char *text)
{
        struct replay_sweep *sweep = &grid->sweep[grid->count];
        struct replay_settings scratch = { 0 };
        char *rest, *value;

        if (grid->count == SWEEPS_MAX) {
                say(stderr, "stook replay: at most %d sweeps\n", SWEEPS_MAX);
                return false;
        }
        grid->count++;
        sweep->text = rest = strdup(text);
        value = rest ? strsep(&rest, "=") : NULL;
        sweep->of = value ? find(value) : NULL;
        if (!sweep->of || !rest) {
                say(stderr, "stook replay: --sweep takes capacity, barn, barn-full, barn-empty, "
                    "slots or nodes, then =N,N..., not '%s'\n", text);
                return false;
        }
        for (unsigned i = 0; i + 1 < grid->count; i++)
                if (meet(grid->sweep[i].of, sweep->of)) {
                        say(stderr, "stook replay: %s and %s cannot be swept at once\n",
                            grid->sweep[i].of->name, sweep->of->name);
                        return false;
                }
        while ((value = strsep(&rest, ","))) {
                if (!replay_set(&scratch, sweep->of, value))
                        return false;
                if (sweep->count == SWEEP_VALUES) {
                        say(stderr, "stook replay: --sweep takes at most %d values\n",
                            SWEEP_VALUES);
                        return false;
                }
                sweep->values[sweep->count++] = value;
        }
        if (replay_grid_cells(grid) > GRID_MAX) {
                say(stderr, "stook replay: the sweeps are more than %d replays\n", GRID_MAX);
                return false;
        }
        return true;
}

size_t replay_grid_cells(const struct replay_grid *grid)
{
        size_t cells = 1;

        for (unsigned i = 0; i < grid->count; i++)
                cells *= grid->sweep[i].count;
        return cells;
}

size_t replay_grid_index(const struct replay_grid *grid, unsigned sweep, size_t cell)
{
        for (unsigned i = grid->count; --i > sweep;)
                cell /= grid->sweep[i].count;
        return cell % grid->sweep[sweep].count;
}

void replay_grid_set(const struct replay_grid *grid, size_t cell, struct replay_settings *settings)
{
        for (unsigned i = 0; i < grid->count; i++)
                set(settings, grid->sweep[i].of,
                    grid->sweep[i].values[replay_grid_index(grid, i, cell)]);
}

void replay_grid_release(struct replay_grid *grid)
{
        for (unsigned i = 0; i < grid->count; i++)
                free(grid->sweep[i].text);
}
