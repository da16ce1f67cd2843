/*
 * Purpose: lost objects by the stacks that allocated them, most bytes first.
 * The helper of reports (`stook symbolize --leaks`) names the frames, leaves out what is
 * suppressed, and writes the report. Where there is none, the addresses are written.
 * Place: called by leak.c, in the child that searched.
 */
#include "inspect/leak.h"
#include "os/os.h"
#include "pages/meta.h"
#include "process/process.h"
#include "report/report.h"
#include "stack/stack.h"

#define TEXT_BYTES ((size_t)1 << 20)
#define GROUP_MOST (STOOK_STACK_FRAMES_USUAL * 17 + 64)  /* bytes of text for a group */
#define WAIT_MS    120000               /* thousands of stacks; arbitrary */

bool stook_leaks_start(struct stook_leaks *leaks)
{
        *leaks = (struct stook_leaks){ 0 };
        leaks->groups = stook_meta_bump(STOOK_LEAK_GROUPS * sizeof(*leaks->groups), 0);
        return leaks->groups;
}

static void add(struct stook_leak_group *group, uint32_t stack, size_t bytes)
{
        group->stack = stack;
        group->used = 1;
        group->objects++;
        group->bytes += bytes;
}

void stook_leaks_add(struct stook_leaks *leaks, uint32_t stack, size_t bytes)
{
        leaks->objects++;
        leaks->bytes += bytes;
        for (uint32_t i = 0; i < STOOK_LEAK_GROUPS; i++) {
                uint32_t at = (stack * 2654435761u + i) % STOOK_LEAK_GROUPS;
                struct stook_leak_group *group = &leaks->groups[at];

                /* No group is free: the last one looked at loses its stack, and has this, too. */
                if (group->used && group->stack != stack && i + 1 < STOOK_LEAK_GROUPS)
                        continue;
                if (group->used && group->stack != stack)
                        stack = 0;
                leaks->count += !group->used;
                add(group, stack, bytes);
                return;
        }
}

/* Most bytes first (Shell's sort); free places are last. */
static void sort(struct stook_leak_group *groups)
{
        for (size_t gap = STOOK_LEAK_GROUPS / 2; gap; gap /= 2)
                for (size_t i = gap; i < STOOK_LEAK_GROUPS; i++) {
                        struct stook_leak_group group = groups[i];
                        size_t at = i;

                        for (; at >= gap && groups[at - gap].bytes < group.bytes; at -= gap)
                                groups[at] = groups[at - gap];
                        groups[at] = group;
                }
}

/* "OBJECTS BYTES FRAME..." for each group, in hexadecimal; the first line: "LIVE PID". */
static void put_groups(struct stook_text *text, const struct stook_leaks *leaks, uint32_t pid)
{
        uintptr_t frames[STOOK_STACK_FRAMES_USUAL];

        stook_text_number(text, leaks->live, 16);
        stook_text_put(text, ' ');
        stook_text_number(text, pid, 16);
        stook_text_put(text, '\n');
        for (size_t i = 0; i < leaks->count && text->bytes + GROUP_MOST < text->room; i++) {
                const struct stook_leak_group *group = &leaks->groups[i];
                unsigned n = stook_stack_frames(group->stack, frames, STOOK_STACK_FRAMES_USUAL);

                stook_text_number(text, group->objects, 16);
                stook_text_put(text, ' ');
                stook_text_number(text, group->bytes, 16);
                stook_text_put(text, ' ');
                for (unsigned f = 0; f < n; f++)
                        stook_report_put_frame(text, group->stack, frames[f]);
                stook_text_put(text, '\n');
        }
}

/* True: the helper has written the report; *@objects: those that were not suppressed. */
static bool ask_helper(const struct stook_text *text, uint32_t pid, uint64_t *objects)
{
        static struct stook_helper helper STOOK_MOSTLY_UNUSED;
        const char *suppress = stook_leak_suppressions();
        char number[16], answer[24], path[STOOK_REPORT_PATH];
        char *argv[] = { path, "symbolize", "--pid", number, "--leaks", "--program",
                         (char *)(uintptr_t)stook_process_name(),
                         suppress ? "--suppress" : NULL, (char *)(uintptr_t)suppress, NULL };
        size_t bytes;
        uintptr_t n;

        if (!stook_report_symbolizer(path))
                return false;
        stook_report_format(number, sizeof(number), "%u", (uint64_t)pid);
        bytes = stook_process_ask_helper(&helper, argv, text->buffer, text->bytes, answer,
                                    sizeof(answer) - 1, WAIT_MS);
        answer[bytes] = '\0';
        if (!bytes || *stook_text_read(answer, &n) != '\n')
                return false;
        *objects = n;
        return true;
}

static void put_summary(struct stook_text *text, const struct stook_leaks *leaks, uint32_t pid)
{
        if (leaks->objects)
                text->bytes = stook_report_format(
                        text->buffer, text->room,
                        "stook: leak: %u objects, %u bytes that nothing leads to, of %u live "
                        "objects (", leaks->objects, leaks->bytes, leaks->live);
        else
                text->bytes = stook_report_format(text->buffer, text->room,
                                                  "stook: no leak among %u live objects (",
                                                  leaks->live);
        stook_text_plain(text, stook_process_name());
        stook_text_words(text, ", pid ");
        stook_text_number(text, pid, 10);
        stook_text_words(text, ")\n");
}

static void put_group(struct stook_text *text, const struct stook_leak_group *group)
{
        uintptr_t frames[STOOK_STACK_FRAMES_USUAL];
        unsigned n = stook_stack_frames(group->stack, frames, STOOK_STACK_FRAMES_USUAL);

        text->bytes += stook_report_format(text->buffer + text->bytes, text->room - text->bytes,
                                           "  %u objects, %u bytes, allocated by\n",
                                           group->objects, group->bytes);
        if (!n)
                stook_text_words(text, "    unknown calls\n");
        stook_report_put_addresses(text, group->stack, frames, n);
}

static void tell_plainly(struct stook_text *text, const struct stook_leaks *leaks, uint32_t pid)
{
        put_summary(text, leaks, pid);
        for (size_t i = 0; i < leaks->count && text->bytes + GROUP_MOST * 8 < text->room; i++)
                put_group(text, &leaks->groups[i]);
        stook_os_write(text->buffer, text->bytes);
}

uint64_t stook_leaks_tell(struct stook_leaks *leaks, uint32_t pid)
{
        char *buffer = stook_meta_bump(TEXT_BYTES, 0);
        struct stook_text text = { .buffer = buffer, .room = TEXT_BYTES - 1 };
        uint64_t objects = leaks->objects;

        if (!buffer)
                return objects;
        sort(leaks->groups);
        put_groups(&text, leaks, pid);
        if (!ask_helper(&text, pid, &objects))
                tell_plainly(&text, leaks, pid);
        if (objects)
                stook_report_note(STOOK_NOTE_FOUND);
        return objects;
}
