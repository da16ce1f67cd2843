/*
 * Purpose: `stook top` of a build without ncurses; see top.h.
 */
#include <stdio.h>
#include "cli/commands.h"
#include "cli/text/plain_text.h"
#include "cli/top/top.h"

int top_run(struct top_state *state, struct top_choice *choice, double every)
{
        (void)choice;
        say(stderr, "stook top: this stook was built without ncurses; `stook info --every %g "
            "%u` shows the same\n", every, state->target->memory.pid);
        return STATUS_CANNOT;
}
