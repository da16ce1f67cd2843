/*
 * Purpose: see leaks.h. Groups come with most bytes first. Two groups whose frames have the same
 * names are one: a function may call malloc at several places of a line.
 */
#include "cli/symbols/leaks.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "cli/symbols/frames.h"
#include "cli/text/plain_text.h"

struct group {
        unsigned long long objects, bytes;
        struct frames      frames;
};

struct report {
        struct group *groups;
        size_t        count, room;
        unsigned long long live, pid, objects, bytes, suppressed;
};

bool leaks_are_suppressed(const struct frames *frames, const char *patterns)
{
        char pattern[256], plain[4 * sizeof pattern];

        while (patterns && *patterns) {
                size_t n = strcspn(patterns, ",");

                if (n && n < sizeof pattern) {
                        memcpy(pattern, patterns, n);
                        pattern[n] = '\0';
                        if (frames_have_function(frames, plain_text(pattern, plain, sizeof plain)))
                                return true;
                }
                patterns += n + (patterns[n] == ',');
        }
        return false;
}

static struct group *find(struct report *report, const struct frames *frames)
{
        for (size_t i = 0; i < report->count; i++)
                if (!strcmp(report->groups[i].frames.lines, frames->lines))
                        return &report->groups[i];
        return NULL;
}

static struct group *add(struct report *report, struct frames *frames)
{
        struct group *group = find(report, frames);

        if (group) {
                frames_release(frames);
                return group;
        }
        if (report->count == report->room) {
                size_t room = report->room ? 2 * report->room : 64;
                struct group *more = reallocarray(report->groups, room, sizeof *more);

                if (!more)
                        return NULL;
                report->groups = more;
                report->room = room;
        }
        group = &report->groups[report->count++];
        *group = (struct group){ .frames = *frames };
        return group;
}

/* A line of the request. False: no memory. */
static bool read_group(const struct leaks_request *request, struct report *report, char *line)
{
        uint64_t addresses[FRAMES_MOST];
        unsigned long long objects = strtoull(line, &line, 16), bytes = strtoull(line, &line, 16);
        struct frames frames;
        struct group *group;

        if (frames_of(request->symbols, addresses,
                      frames_read(request->symbols, line, addresses), &frames))
                return false;
        if (leaks_are_suppressed(&frames, request->suppress)) {
                report->suppressed += objects;
                frames_release(&frames);
                return true;
        }
        group = add(report, &frames);
        if (!group)
                return false;
        group->objects += objects;
        group->bytes += bytes;
        report->objects += objects;
        report->bytes += bytes;
        return true;
}

static bool read_all(const struct leaks_request *request, struct report *report, FILE *in)
{
        char *line = NULL, *rest;
        size_t room = 0;
        bool good = getline(&line, &room, in) > 0;

        if (good) {
                report->live = strtoull(line, &rest, 16);
                report->pid = strtoull(rest, NULL, 16);
        }
        while (good && getline(&line, &room, in) > 0)
                good = read_group(request, report, line);
        free(line);
        return good;
}

static int by_bytes(const void *a, const void *b)
{
        const struct group *x = a, *y = b;

        if (x->bytes != y->bytes)
                return x->bytes < y->bytes ? 1 : -1;
        return strcmp(x->frames.lines, y->frames.lines);
}

static void print_group(const struct group *group, FILE *out)
{
        unsigned number = 0;

        say(out, "  %llu object%s, %llu byte%s, allocated by\n", group->objects,
            plural(group->objects), group->bytes, plural(group->bytes));
        for (const char *line = group->frames.lines; *line; line = strchr(line, '\n') + 1) {
                say(out, "    #%u ", number++);
                fwrite(line, 1, strcspn(line, "\n") + 1, out);
        }
        if (!number)
                fputs("    unknown calls\n", out);
}

static void print_all(const struct leaks_request *request, struct report *report, FILE *out)
{
        if (report->objects)
                say(out,
                    "stook: leak: %llu object%s, %llu byte%s that nothing leads to, of %llu "
                    "live object%s (%s, pid %llu)\n",
                    report->objects, plural(report->objects), report->bytes,
                    plural(report->bytes), report->live, plural(report->live),
                    request->program, report->pid);
        else
                say(out, "stook: no leak among %llu live object%s (%s, pid %llu)\n",
                    report->live, plural(report->live), request->program, report->pid);
        if (report->count)
                qsort(report->groups, report->count, sizeof *report->groups, by_bytes);
        for (size_t i = 0; i < report->count; i++)
                print_group(&report->groups[i], out);
        if (report->suppressed)
                say(out, "  suppressed: %llu object%s\n", report->suppressed,
                    plural(report->suppressed));
}

long long leaks_print(const struct leaks_request *request, FILE *in, FILE *out)
{
        struct report report = { 0 };
        bool good = read_all(request, &report, in);

        if (good)
                print_all(request, &report, out);
        for (size_t i = 0; i < report.count; i++)
                frames_release(&report.groups[i].frames);
        free(report.groups);
        return good ? (long long)report.objects : -1;
}
