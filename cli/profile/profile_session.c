/* Purpose: see profile_session.h. */
#include "cli/profile/profile_session.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "cli/commands.h"
#include "cli/heap/request.h"
#include "cli/text/plain_text.h"

#define WAIT_S 10
#define SECONDS_MOST (365 * 86400.0)

bool profile_session_terms(const char *text, struct stook_sample_terms *terms)
{
        *terms = stook_sample_terms_usual();
        if (!text || (stook_sample_read_terms(text, terms) && !terms->off && !terms->signal &&
                      !terms->file))
                return true;
        say(stderr, "stook profile: --start takes " STOOK_SAMPLE_TERMS ", not '%s'\n", text);
        return false;
}

/* Return: the exit status; -1: *@answer is the process's. */
static int ask(const char *what, const char *library, struct stook_request *request, int *answer)
{
        struct library *l;
        struct target t;
        const struct target_request of = { .what = what, .library = library };
        int status = target_open(&t, "profile", &of), error;

        if (status)
                return status;
        l = request_library(&t, "profile", what);
        if (!l) {
                status = STATUS_CANNOT;
        } else if ((error = request_ask(&t.memory, l, request, WAIT_S, answer)) == -ETIMEDOUT) {
                say(stderr, "stook profile: process %u did not answer in %d s: one that seldom "
                    "allocates needs a maintenance thread, by STOOK_MAINTENANCE=1\n",
                    t.memory.pid, WAIT_S);
                status = STATUS_CANNOT;
        } else {
                status = request_failed("profile", t.memory.pid, error, *answer);
        }
        target_close(&t);
        return status;
}

int profile_session_start(const char *what, const char *library,
                          const struct stook_sample_terms *terms)
{
        struct stook_request request = {
                .action = STOOK_REQUEST_SAMPLE, .interval = terms->interval, .most = terms->most,
                .guard = terms->guard, .lifetimes = terms->lifetimes,
        };
        int answer = 0, status = ask(what, library, &request, &answer);

        if (status >= 0)
                return status;
        if (answer) {
                say(stderr, "stook profile: process %s refused: %s\n", what, strerror(-answer));
                return STATUS_CANNOT;
        }
        say(stderr, "stook profile: process %s: one sample in %" PRIu64 " bytes, at most %" PRIu64
            " a second\n", what, terms->interval, terms->most);
        return 0;
}

int profile_session_stop(const char *what, const char *library)
{
        struct stook_request request = { .action = STOOK_REQUEST_STOP };
        int answer = 0, status = ask(what, library, &request, &answer);

        if (status >= 0)
                return status;
        if (!answer)
                return 0;
        if (answer == -ENOTSUP)
                say(stderr, "stook profile: process %s has no samples to stop\n", what);
        else
                say(stderr, "stook profile: process %s refused: %s\n", what, strerror(-answer));
        return STATUS_CANNOT;
}

bool profile_session_seconds(const char *text, double *seconds)
{
        bool has_digits = *text >= '0' && *text <= '9';
        char *end;

        *seconds = strtod(text, &end);
        if (*end == 'm' || *end == 'h')
                *seconds *= *end == 'm' ? 60 : 3600;
        if (*end == 's' || *end == 'm' || *end == 'h')
                end++;
        if (has_digits && !*end && *seconds > 0 && *seconds <= SECONDS_MOST)
                return true;
        say(stderr, "stook profile: --for takes a time such as 30s, 5m or 1h, not '%s'\n", text);
        return false;
}

static void interrupted(int number)
{
        (void)number;
}

void profile_session_wait(double seconds)
{
        struct timespec time = { .tv_sec = (time_t)seconds };
        struct sigaction action = { .sa_handler = interrupted }, before;

        time.tv_nsec = (long)((seconds - (double)time.tv_sec) * 1e9);
        sigaction(SIGINT, &action, &before);
        nanosleep(&time, NULL);
        sigaction(SIGINT, &before, NULL);
}
