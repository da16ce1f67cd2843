/* Purpose: see request.h. */
#include "cli/heap/request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "cli/commands.h"
#include "cli/text/plain_text.h"
#include "gate/gate.h"

#define STEP_NS 20000000
#define STEPS_IN_SECOND 50

struct library *request_library(struct target *target, const char *command, const char *what)
{
        struct library *l = target_next(target, NULL);

        if (!target->memory.write)
                say(stderr, "stook %s: %s is a core; only a running process can change\n", command,
                    what);
        else if (target_next(target, l))
                say(stderr, "stook %s: process %u has several copies of the library: choose one by "
                    "--library\n", command, target->memory.pid);
        else
                return l;
        return NULL;
}

static uint64_t address_of(const struct library *l, size_t field)
{
        return l->address + offsetof(struct stook_root, request) + field;
}

static int write_state(struct memory *m, const struct library *l, uint32_t state)
{
        return m->write(m, address_of(l, offsetof(struct stook_request, state)), &state,
                        sizeof state);
}

/* Slow calls look at the gate's word anyway. Unless it is one of two, they look already. */
static int tell_slow_calls(struct memory *m, const struct library *l)
{
        uint32_t *word, now, asked = STOOK_HEAP_ASKED;
        int error = memory_read(m, (uint64_t)(uintptr_t)l->root.gate_heap, &word, sizeof word);

        if (!error)
                error = memory_read(m, (uint64_t)(uintptr_t)word, &now, sizeof now);
        if (!error && (now == STOOK_HEAP_WHOLE || now == STOOK_HEAP_ALONE))
                error = m->write(m, (uint64_t)(uintptr_t)word, &asked, sizeof asked);
        return error;
}

static int ask(struct memory *m, const struct library *l, struct stook_request *request)
{
        struct timespec now;
        int error;

        clock_gettime(CLOCK_MONOTONIC, &now);
        request->ticket = (uint64_t)getpid() << 40 ^ (uint64_t)now.tv_sec << 30 ^
                          (uint64_t)now.tv_nsec;
        request->process = m->pid;
        request->sum = stook_request_sum(request);
        error = m->write(m, address_of(l, 0), request, offsetof(struct stook_request, answered));
        if (!error)
                error = write_state(m, l, STOOK_REQUEST_ASKED);
        return error || request->action == STOOK_REQUEST_TUNE ? error : tell_slow_calls(m, l);
}

static int wait_for(struct memory *m, const struct library *l, const struct stook_request *asked,
                    unsigned wait_s, int *answer)
{
        const struct timespec step = { 0, STEP_NS };
        struct stook_request now;
        int error;

        for (unsigned i = 0; i < wait_s * STEPS_IN_SECOND; i++) {
                error = memory_read(m, address_of(l, 0), &now, sizeof now);
                if (error)
                        return error;
                if (now.state == STOOK_REQUEST_ANSWERED && now.answered == asked->ticket) {
                        *answer = now.answer;
                        return 0;
                }
                if (now.ticket != asked->ticket)
                        return -EBUSY;
                nanosleep(&step, NULL);
        }
        error = write_state(m, l, STOOK_REQUEST_NONE);
        return error ? error : -ETIMEDOUT;
}

int request_ask(struct memory *memory, const struct library *library,
                struct stook_request *request, unsigned wait_s, int *answer)
{
        struct stook_request now;
        int error = memory_read(memory, address_of(library, 0), &now, sizeof now);

        if (!error && now.process == memory->pid &&
            (now.state == STOOK_REQUEST_ASKED || now.state == STOOK_REQUEST_TAKEN))
                error = -EBUSY;
        if (!error)
                error = ask(memory, library, request);
        return error ? error : wait_for(memory, library, request, wait_s, answer);
}

int request_failed(const char *command, uint32_t pid, int error, int answer)
{
        if (error == -ETIMEDOUT)
                say(stderr, "stook %s: process %u did not answer; the request is taken back\n",
                    command, pid);
        else if (error == -EBUSY || (!error && answer == -EILSEQ))
                say(stderr, "stook %s: another stook tune or profile asked process %u at the same "
                    "time; try again\n", command, pid);
        else if (error == -ESRCH || error == -EFAULT)
                say(stderr, "stook %s: process %u is gone\n", command, pid);
        else if (error)
                say(stderr, "stook %s: process %u: %s\n", command, pid, strerror(-error));
        else
                return -1;
        return error == -ESRCH || error == -EFAULT ? 1 : STATUS_CANNOT;
}
