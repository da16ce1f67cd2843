/*
 * Purpose: what replays saw: as text, as JSON, and as a picture.
 */
#ifndef STOOK_CLI_REPLAY_PRINT_H
#define STOOK_CLI_REPLAY_PRINT_H

#include <stdio.h>
#include "cli/replay/replay_run.h"
#include "cli/text/json.h"

/* What a sweep changed from one result to the next. */
struct replay_sweep {
        const char *parameter;          /* as in --sweep */
        const char *const *values;      /* one for each result */
        size_t count;
};

/* What was read, and what of it is not replayed. */
void replay_print_list(const struct replay_list *list, const char *path, FILE *out);
void replay_print(const struct replay_list *list, const struct replay_result *result, FILE *out);
void replay_print_sweep(const struct replay_result *results, const struct replay_sweep *sweep,
                        FILE *out);

/* Of one replay, or of the @count of a sweep. The keys are documented in stook-replay(1). */
void replay_json(const struct replay_list *list, const char *path,
                 const struct replay_result *results, size_t count, struct json *json);

/* Memory over time; or, of a sweep, what each value does. */
void replay_picture(const struct replay_result *result, FILE *out);
/* False: no memory. */
bool replay_sweep_picture(const struct replay_result *results, const struct replay_sweep *sweep,
                          FILE *out);

#endif
