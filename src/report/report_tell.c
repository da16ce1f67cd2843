/*
 * Purpose: a whole report in one write: the first line, and what is known besides; and how many
 * reports are written where the program goes on.
 *
 *   stook: overrun: pointer 0x7f0012345000 (cache conn, slab 0x7f0012344000 offset 4096): ...
 *     program server (pid 71), thread 73
 *     sizes, the bad byte, bytes              (report_body.c)
 *     found here, allocated by, freed by      (report_stack.c), with a line for each frame
 *
 * The text needs more room than a handler's stack has. Each report maps a room, and unmaps it. A
 * report whose room is refused has its first line only.
 * 50,000 faults are not 50,000 reports: so many are written at once, then so many a second. The
 * next report that is written says how many were left out before it; a line at the end of the
 * process says it of the last ones.
 * Place: called by report.c; calls os.
 * Concurrency: any thread, any instruction: a room belongs to one call. A thread that never returns
 *  from a report (a jump out of a handler on top of it, a fork in another thread) leaves its room
 *  mapped. `earned` is a clock: the time up to which reports are paid for. One compare-and-swap
 *  pays for a report.
 */
#include <string.h>

#include "os/os.h"
#include "process/process.h"
#include "report/report_inside.h"

/* ---- how many ---- */

#define AT_ONCE 100                     /* both arbitrary: what a person may want to read */
#define EACH_MS 100

static uint64_t earned;                 /* atomic; ms of stook_os_clock_ms */
static uint64_t left_out;               /* atomic; reports since the last that was written */

bool stook_report_may_tell(uint64_t *left)
{
        uint64_t now = stook_os_clock_ms() + AT_ONCE * EACH_MS;
        uint64_t at = __atomic_load_n(&earned, __ATOMIC_RELAXED), from;

        do {
                from = at + AT_ONCE * EACH_MS < now ? now - AT_ONCE * EACH_MS : at;
                if (from + EACH_MS > now) {
                        __atomic_fetch_add(&left_out, 1, __ATOMIC_RELAXED);
                        return false;
                }
        } while (!__atomic_compare_exchange_n(&earned, &at, from + EACH_MS, true,
                                              __ATOMIC_RELAXED, __ATOMIC_RELAXED));
        *left = __atomic_exchange_n(&left_out, 0, __ATOMIC_RELAXED);
        return true;
}

size_t stook_report_put_left_out(char *line, size_t room, uint64_t left)
{
        return stook_report_format(line, room, "stook: %u reports were left out here\n", left);
}

__attribute__((destructor)) static void tell_left_out(void)
{
        uint64_t left = __atomic_exchange_n(&left_out, 0, __ATOMIC_RELAXED);
        char line[80];

        if (left)
                stook_os_write(line, stook_report_put_left_out(line, sizeof(line), left));
}

/* ---- one report ---- */

#define TEXT_BYTES 16384
#define ROOM_BYTES (128u << 10)         /* a multiple of every system's page size */

struct room {
        char text[TEXT_BYTES];
        struct stook_report_stacks stacks;
};
_Static_assert(sizeof(struct room) <= ROOM_BYTES, "a report fits its room");

static char notes_file[STOOK_REPORT_PATH] STOOK_MOSTLY_UNUSED;  /* const after start */

void stook_report_set_notes(const char *path)
{
        if (path && strlen(path) < sizeof(notes_file))
                strcpy(notes_file, path);
}

void stook_report_note(enum stook_note note)
{
        if (*notes_file)
                stook_file_mark(notes_file, STOOK_NOTES_MAGIC, note);
}

static struct room *map_room(void)
{
        void *room = stook_os_reserve(ROOM_BYTES, stook_os_page_bytes());

        if (room && !stook_os_commit(room, ROOM_BYTES)) {
                stook_os_unreserve(room, ROOM_BYTES);
                room = NULL;
        }
        return room;
}

/* More than the first line says. */
static bool is_known(const struct stook_report_about *about)
{
        return about->object_bytes || about->dump_bytes || about->bad || about->allocated ||
               about->freed;
}

static void put_frames(struct stook_text *text, const struct stook_report_stacks *stacks,
                       unsigned which)
{
        const char *line = stook_report_stack_lines(stacks, which), *end;

        for (unsigned i = 0; *line && *line != '\n'; i++, line = end) {
                end = stook_report_next_line(line);
                stook_text_words(text, "    #");
                stook_text_number(text, i, 10);
                stook_text_put(text, ' ');
                for (const char *c = line; c < end; c++)
                        stook_text_put(text, *c);
        }
}

static void put_track(struct stook_text *text, const char *what,
                      const struct stook_report_track *track,
                      const struct stook_report_stacks *stacks, unsigned which)
{
        uint64_t ago_ms;

        if (!track || !track->thread)
                return;
        ago_ms = stook_os_clock_ms() - track->at_ms;
        stook_text_words(text, what);
        stook_text_number(text, track->thread, 10);
        stook_text_words(text, ", ");
        stook_text_number(text, ago_ms / 1000, 10);
        stook_text_put(text, '.');
        stook_text_put(text, (char)('0' + ago_ms / 100 % 10));
        stook_text_words(text, " s ago\n");
        put_frames(text, stacks, which);
}

static void put_all(struct stook_text *text, const struct stook_report_about *about,
                    const struct stook_report_stacks *stacks)
{
        const char *here = stook_report_stack_lines(stacks, STOOK_REPORT_HERE);

        stook_report_put_program(text);
        stook_report_put_object(text, about);
        stook_report_put_dump(text, about);
        if (*here && *here != '\n')
                stook_text_words(text, "  found here\n");
        put_frames(text, stacks, STOOK_REPORT_HERE);
        put_track(text, "  allocated by thread ", about->allocated, stacks,
                  STOOK_REPORT_ALLOCATED);
        put_track(text, "  freed by thread ", about->freed, stacks, STOOK_REPORT_FREED);
        put_track(text, "  before that, allocated by thread ", about->allocated_before, stacks,
                  STOOK_REPORT_ALLOCATED_BEFORE);
        put_track(text, "  before that, freed by thread ", about->freed_before, stacks,
                  STOOK_REPORT_FREED_BEFORE);
}

/* @whole: with what follows the first line. */
static void tell_in(struct room *room, const struct stook_report_about *about, const char *line,
                    size_t bytes, uint64_t left, bool whole)
{
        struct stook_text text = { .buffer = room->text, .room = sizeof(room->text) - 1 };

        if (left)
                text.bytes = stook_report_put_left_out(room->text, sizeof(room->text), left);
        memcpy(room->text + text.bytes, line, bytes);
        text.bytes += bytes;
        stook_report_clear_stacks(&room->stacks);
        if (whole) {
                stook_report_find_stacks(about, &room->stacks);
                put_all(&text, about, &room->stacks);
        }
        stook_os_write(room->text, text.bytes);
        text.bytes = 0;
        if (stook_report_wants_json())
                stook_report_tell_json(&text, about, line, bytes, &room->stacks);
}

void stook_report_tell(const struct stook_report_about *about, const char *line, size_t bytes,
                       bool found)
{
        bool whole = !found || is_known(about);
        struct room *room = NULL;
        uint64_t left = 0;

        if (about->fault != STOOK_FAULT_INJECTED)
                stook_report_note(STOOK_NOTE_FOUND);
        /* A report that ends the process is always written. */
        if ((found || stook_report_goes_on()) && !stook_report_may_tell(&left))
                return;
        if (whole || left || stook_report_wants_json())
                room = map_room();
        if (!room) {
                stook_os_write(line, bytes);
                return;
        }
        tell_in(room, about, line, bytes, left, whole);
        stook_os_unreserve(room, ROOM_BYTES);
}
