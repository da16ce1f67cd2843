/*
 * Purpose: what replays saw: as text, as JSON, and as a picture.
 */
#ifndef STOOK_CLI_REPLAY_PRINT_H
#define STOOK_CLI_REPLAY_PRINT_H

#include <stdio.h>
#include "cli/replay/replay_advice.h"
#include "cli/replay/replay_kernel.h"
#include "cli/replay/replay_sweep.h"
#include "cli/text/json.h"
#include "cli/text/table.h"

/* All that a command found out. */
struct replay_answer {
        const struct replay_list *list;
        const char *path;               /* of the trace */
        const struct replay_grid *grid;
        struct replay_result *results;  /* one for each cell of the grid */
        size_t count;
        struct replay_advice *advice;   /* NULL: no setting was swept */
        size_t advices, few;            /* few: caches that have none */
        const char *folder;             /* as /sys/kernel/slab; NULL: none */
        struct replay_kernel_cache *kernel;
        struct replay_result as_kernel; /* with the kernel's capacities */
};

/* What was read, and what of it is not replayed. */
void replay_print_list(const struct replay_list *list, const char *path, FILE *out);
void replay_print(const struct replay_answer *answer, FILE *out);
/* The shares of a result in the next three cells of a table. */
void replay_print_layers(struct table *table, const struct replay_layers *layers);
/* replay_print_sweep.c: a grid's cells, what is advised, and the kernel beside it. */
void replay_print_grid(const struct replay_answer *answer, FILE *out);
void replay_print_advice(const struct replay_answer *answer, FILE *out);
void replay_print_kernel(const struct replay_answer *answer, FILE *out);

/* The keys are documented in stook-replay(1). */
void replay_json(const struct replay_answer *answer, struct json *json);

/*
 * Replays a trace as the library would run it, and writes that as an object "replay". False:
 * @message, of @bytes, says why in a line.
 */
bool replay_json_usual(const char *path, struct json *json, char *message, size_t bytes);

/* Memory over time; or what each value of a sweep does; or heat maps. False: no memory. */
bool replay_picture(const struct replay_answer *answer, FILE *out);

#endif
