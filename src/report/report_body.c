/*
 * Purpose: the lines of a report that follow the first one: which program and thread, the sizes of
 * the object, and its bytes around the one that is not as expected.
 *
 *   program NAME (pid N), thread N
 *   the object has 112 bytes, 100 of them requested
 *   at 0x7f0012345064 (100 bytes from its start): expected bb, found 00
 *   0x7f0012345050:  6b 6b 6b 6b[00]bb bb ...  kkkk....
 *
 * Concurrency: any thread, any instruction. The bytes shown are copied by the kernel, so memory
 *  that is not there is left out.
 */
#include "process/process.h"
#include "report/report_inside.h"

#define ROW       16                    /* bytes in a line */
#define ROWS_MOST 8                     /* around the bad byte; arbitrary */

static uint32_t named_pid, named_thread;        /* of the process that this is a copy of; else 0 */

void stook_report_speak_for(uint32_t pid, uint32_t thread)
{
        named_pid = pid;
        named_thread = thread;
}

uint32_t stook_report_pid(void)
{
        return named_pid ? named_pid : stook_process_id();
}

uint32_t stook_report_thread(void)
{
        return named_pid ? named_thread : stook_process_thread_id();
}

void stook_report_put_program(struct stook_text *text)
{
        stook_text_words(text, "  program ");
        stook_text_plain(text, stook_process_name());
        stook_text_words(text, " (pid ");
        stook_text_number(text, stook_report_pid(), 10);
        stook_text_words(text, "), thread ");
        stook_text_number(text, stook_report_thread(), 10);
        stook_text_put(text, '\n');
}

static void put_sizes(struct stook_text *text, const struct stook_report_about *about)
{
        if (!about->object_bytes)
                return;
        stook_text_words(text, "  the object has ");
        stook_text_number(text, about->object_bytes, 10);
        stook_text_words(text, " bytes");
        if (about->requested_bytes && about->requested_bytes != about->object_bytes) {
                stook_text_words(text, ", ");
                stook_text_number(text, about->requested_bytes, 10);
                stook_text_words(text, " of them requested");
        }
        stook_text_put(text, '\n');
}

/* Where the bad byte lies, as seen from the object. */
static void put_distance(struct stook_text *text, const struct stook_report_about *about)
{
        uintptr_t bad = (uintptr_t)about->bad, object = (uintptr_t)about->object;

        if (!object)
                return;
        stook_text_words(text, " (");
        stook_text_number(text, bad < object ? object - bad : bad - object, 10);
        stook_text_words(text, bad < object ? " bytes before its start)"
                                            : " bytes from its start)");
}

static void put_bad(struct stook_text *text, const struct stook_report_about *about)
{
        if (!about->bad)
                return;
        stook_text_words(text, "  at ");
        stook_text_pointer(text, about->bad);
        put_distance(text, about);
        stook_text_words(text, ": expected ");
        stook_text_byte(text, about->expected);
        stook_text_words(text, ", found ");
        stook_text_byte(text, about->found);
        stook_text_put(text, '\n');
}

void stook_report_put_object(struct stook_text *text, const struct stook_report_about *about)
{
        put_sizes(text, about);
        put_bad(text, about);
}

/* A line of the bytes from @at on; those outside of [first, end) are blank. */
static void put_row(struct stook_text *text, const uint8_t *bytes, uintptr_t at, uintptr_t first,
                    uintptr_t end, uintptr_t bad)
{
        stook_text_words(text, "  ");
        stook_text_pointer(text, (const void *)at);
        stook_text_words(text, ": ");
        for (uintptr_t a = at; a < at + ROW; a++) {
                bool known = a >= first && a < end;

                stook_text_put(text, a == bad ? '[' : bad && a == bad + 1 && a != at ? ']' : ' ');
                if (known)
                        stook_text_byte(text, bytes[a - at]);
                else
                        stook_text_words(text, "  ");
        }
        stook_text_words(text, bad && bad == at + ROW - 1 ? "] " : "  ");
        for (uintptr_t a = at; a < at + ROW && a < end; a++) {
                char c = (char)bytes[a - at];

                stook_text_put(text, a < first ? ' ' : stook_text_is_plain(c) ? c : '.');
        }
        stook_text_put(text, '\n');
}

void stook_report_put_dump(struct stook_text *text, const struct stook_report_about *about)
{
        uintptr_t first = (uintptr_t)about->dump, end = first + about->dump_bytes;
        uintptr_t bad = (uintptr_t)about->bad, at = first & ~(uintptr_t)(ROW - 1);
        uint8_t bytes[ROW];

        if (!about->dump_bytes)
                return;
        /* The bad byte in the middle, where not everything fits. */
        if (bad >= first && bad < end && bad - at > ROWS_MOST / 2 * ROW)
                at = (bad & ~(uintptr_t)(ROW - 1)) - ROWS_MOST / 2 * ROW;
        for (unsigned row = 0; row < ROWS_MOST && at < end; row++, at += ROW) {
                uintptr_t from = at < first ? first : at;
                uintptr_t to = at + ROW < end ? at + ROW : end;

                if (stook_process_read_memory(bytes + (from - at), (const void *)from, to - from))
                        put_row(text, bytes, at, first, end, bad);
        }
}
