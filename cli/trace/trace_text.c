/*
 * Purpose: see trace_text.h. Lines for awk: one blank between fields, and each line says all of its
 * event. A line that begins with # is about the trace.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include "cli/commands.h"
#include "cli/text/plain_text.h"
#include "cli/trace/trace_read.h"
#include "cli/trace/trace_text.h"

static const char *const kinds[] = {
        [TRACE_ALLOC] = "alloc", [TRACE_FREE] = "free", [TRACE_RESIZE] = "resize",
};

static void print_head(const struct trace *trace, FILE *out)
{
        for (size_t i = 0; i < trace_process_count(trace); i++) {
                const struct trace_process *p = trace_process(trace, (uint32_t)i);

                say(out, "# process %zu: pid %" PRIu32 ", parent %" PRIu32 ", %s%s\n", i,
                    p->pid, p->parent, p->program, p->forked ? " (forked)" : "");
        }
        fputs("# seconds process thread cpu event object bytes cache\n", out);
}

/* Without say, since there may be millions: the names of a trace are printable. */
static void print_event(const struct trace *trace, const struct trace_event *event, FILE *out)
{
        fprintf(out, "%" PRIu64 ".%09" PRIu64 " %" PRIu32 " %" PRIu32 " %" PRIu32 " %s ",
                event->at_ns / 1000000000, event->at_ns % 1000000000, event->process,
                event->thread, event->cpu, kinds[event->kind]);
        if (event->object == TRACE_NO_OBJECT) {
                fputs("- - -", out);
        } else {
                fprintf(out, "%" PRIu64 " %" PRIu64 " %s", event->object, event->bytes,
                        trace_cache(trace, event->cache)->name);
        }
        fputs(event->by_rcu ? " rcu\n" : event->implied ? " implied\n" : "\n", out);
}

/* What the trace lacks. */
static void print_end(const struct trace *trace, FILE *out)
{
        uint64_t missed = 0;

        for (size_t i = 0; i < trace_process_count(trace); i++)
                missed += trace_process(trace, (uint32_t)i)->missed;
        if (missed)
                say(out, "# %" PRIu64 " events found no buffer and are not there\n", missed);
        if (trace_is_cut(trace))
                say(out, "# the last block ends early: %" PRIu64 " bytes were left out\n",
                    trace_is_cut(trace));
}

/* Return: the exit status. */
static int say_damage(const char *path, const struct trace_damage *damage, const char *command)
{
        if (!damage->bytes)
                return 0;
        say(stderr, "%s: %s: damaged at byte %" PRIu64 ": %s; in all, %" PRIu64
            " bytes were left out\n", command, path, damage->at, damage->what, damage->bytes);
        return 1;
}

int trace_print(const char *path, FILE *out, const char *command)
{
        char message[PATH_MAX + 200];
        struct trace *trace = trace_open(path, message, sizeof message);
        struct trace_event event;
        int got, status = STATUS_CANNOT;

        if (!trace) {
                say(stderr, "%s: %s\n", command, message);
                return STATUS_CANNOT;
        }
        print_head(trace, out);
        while ((got = trace_next(trace, &event)) > 0 && !ferror(out))
                print_event(trace, &event, out);
        if (got < 0)
                say(stderr, "%s: %s\n", command, trace_message(trace));
        else
                print_end(trace, out);
        if (got >= 0 && (fflush(out) || ferror(out)))
                say(stderr, "%s: output: %s\n", command, strerror(errno));
        else if (got >= 0)
                status = say_damage(path, trace_damage(trace), command);
        trace_close(trace);
        return status;
}
