/*
 * Purpose: a whole report in one write: the first line, and what is known besides.
 * The text needs more room than a handler's stack has. There are few rooms, each for one report at
 * a time. A report that finds none free has its first line only.
 * Place: called by report.c; calls os.
 * Concurrency: any thread, any instruction. A room is had by a compare-and-swap, and no call waits
 *  for one. A thread that never returns from a report (a jump out of a handler on top of it, a fork
 *  in another thread) keeps its room.
 */
#include <string.h>

#include "os/os.h"
#include "report/report_inside.h"

#define ROOMS      2                    /* a report, and one on top of it in a handler */
#define TEXT_BYTES 8192

struct room {
        uint32_t taken;                 /* atomic */
        char     text[TEXT_BYTES];
};
static struct room rooms[ROOMS] STOOK_MOSTLY_UNUSED;

static struct room *take_room(void)
{
        for (unsigned i = 0; i < ROOMS; i++) {
                uint32_t none = 0;

                if (__atomic_compare_exchange_n(&rooms[i].taken, &none, 1, false, __ATOMIC_ACQUIRE,
                                                __ATOMIC_RELAXED))
                        return &rooms[i];
        }
        return NULL;
}

static void give_room(struct room *room)
{
        __atomic_store_n(&room->taken, 0, __ATOMIC_RELEASE);
}

/* More than the first line says. */
static bool is_known(const struct stook_report_about *about)
{
        return about->object_bytes || about->dump_bytes || about->bad || about->allocated ||
               about->freed;
}

void stook_report_tell(const struct stook_report_about *about, const char *line, size_t bytes,
                       bool found)
{
        struct room *room = found && !is_known(about) ? NULL : take_room();
        struct stook_text text;

        if (!room) {
                stook_os_write(line, bytes);
                return;
        }
        text = (struct stook_text){ .buffer = room->text, .room = sizeof(room->text) - 1 };
        memcpy(room->text, line, bytes);
        text.bytes = bytes;
        stook_report_put_program(&text);
        stook_report_put_object(&text, about);
        stook_report_put_dump(&text, about);
        stook_os_write(room->text, text.bytes);
        give_room(room);
}
