/*
 * Purpose: each report as one line of JSON, added to the file that STOOK_REPORT_JSON names. The
 * file is opened for each line, so that no descriptor is kept from the program, and processes may
 * share it. What is not known is left out:
 *   format fault program pid thread text object cache heap slab offset object_bytes requested_bytes
 *   bad {address expected found}   dump {address hex}
 *   stack [...]   allocated, freed, allocated_before, freed_before {thread ms_ago stack [...]}
 * Addresses are strings ("0x..."), because JSON's numbers may be too short for them.
 * Concurrency: any thread, any instruction; each line is one write.
 */
#include <string.h>

#include "os/os.h"
#include "process/process.h"
#include "report/report_inside.h"

#define PATH_BYTES 512
#define BYTES_MOST 256                  /* of memory that is shown; arbitrary */

static char path[PATH_BYTES] STOOK_MOSTLY_UNUSED;       /* written at start */

/* What keeps lines from the file is said once in a process. @error: a positive errno. */
static void say_once(int error)
{
        static uint32_t told;
        char words[PATH_BYTES + 100];
        size_t n;

        if (__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED))
                return;
        n = stook_report_format(words, sizeof(words),
                                "stook: STOOK_REPORT_JSON: %s: no JSON report: %s\n", path,
                                stook_file_error_words(error));
        stook_os_write(words, n);
}

/* Reports try the file all the same: the program may make its folder. */
void stook_report_set_json(const char *to)
{
        int error;

        if (!to)
                return;
        if (strlen(to) >= sizeof(path)) {
                stook_os_env_refuse("STOOK_REPORT_JSON", to, "a path of at most 511 bytes");
                return;
        }
        strcpy(path, to);
        error = *path ? stook_file_may_append(path) : 0;
        if (error)
                say_once(-error);
}

bool stook_report_wants_json(void)
{
        return *path;
}

/* Text up to @end, or its 0. What is not ASCII stays as it is: names are mostly UTF-8. */
static void put_string(struct stook_text *text, const char *c, const char *end)
{
        stook_text_put(text, '"');
        for (; *c && c != end; c++) {
                if (*c == '"' || *c == '\\') {
                        stook_text_put(text, '\\');
                        stook_text_put(text, *c);
                } else if ((unsigned char)*c < ' ') {
                        stook_text_words(text, "\\u00");
                        stook_text_byte(text, (uint8_t)*c);
                } else {
                        stook_text_put(text, *c);
                }
        }
        stook_text_put(text, '"');
}

static void put_key(struct stook_text *text, const char *key)
{
        char last = text->bytes ? text->buffer[text->bytes - 1] : '{';

        if (last != '{' && last != '[')
                stook_text_put(text, ',');
        if (!key)
                return;
        put_string(text, key, NULL);
        stook_text_put(text, ':');
}

static void put_count(struct stook_text *text, const char *key, uint64_t n)
{
        put_key(text, key);
        stook_text_number(text, n, 10);
}

static void put_address(struct stook_text *text, const char *key, const void *address)
{
        if (!address)
                return;
        put_key(text, key);
        stook_text_put(text, '"');
        stook_text_pointer(text, address);
        stook_text_put(text, '"');
}

static void put_words(struct stook_text *text, const char *key, const char *words)
{
        if (!words)
                return;
        put_key(text, key);
        put_string(text, words, NULL);
}

static void put_stack(struct stook_text *text, const struct stook_report_stacks *stacks,
                      unsigned which)
{
        const char *line = stook_report_stack_lines(stacks, which);

        if (!*line || *line == '\n')
                return;
        put_key(text, "stack");
        stook_text_put(text, '[');
        for (; *line && *line != '\n'; line = stook_report_next_line(line)) {
                put_key(text, NULL);
                put_string(text, line, strchr(line, '\n'));
        }
        stook_text_put(text, ']');
}

static void put_track(struct stook_text *text, const char *key,
                      const struct stook_report_track *track,
                      const struct stook_report_stacks *stacks, unsigned which)
{
        if (!track || !track->thread)
                return;
        put_key(text, key);
        stook_text_put(text, '{');
        put_count(text, "thread", track->thread);
        put_count(text, "ms_ago", stook_os_clock_ms() - track->at_ms);
        put_stack(text, stacks, which);
        stook_text_put(text, '}');
}

static void put_bad(struct stook_text *text, const struct stook_report_about *about)
{
        if (!about->bad)
                return;
        put_key(text, "bad");
        stook_text_put(text, '{');
        put_address(text, "address", about->bad);
        put_count(text, "expected", about->expected);
        put_count(text, "found", about->found);
        stook_text_put(text, '}');
}

static void put_bytes(struct stook_text *text, const struct stook_report_about *about)
{
        size_t bytes = about->dump_bytes < BYTES_MOST ? about->dump_bytes : BYTES_MOST;
        const uint8_t *from = about->dump;
        uint8_t piece[16];

        if (!bytes)
                return;
        /* Not more than fit; the bad byte is among them. */
        if (about->bad >= from + bytes && about->bad < about->dump + about->dump_bytes)
                from = about->bad - bytes / 2;
        put_key(text, "dump");
        stook_text_put(text, '{');
        put_address(text, "address", from);
        put_key(text, "hex");
        stook_text_put(text, '"');
        for (size_t i = 0; i < bytes; i++) {
                size_t n = bytes - i < sizeof(piece) ? bytes - i : sizeof(piece);

                if (i % sizeof(piece) == 0 && !stook_process_read_memory(piece, from + i, n))
                        break;
                stook_text_byte(text, piece[i % sizeof(piece)]);
        }
        stook_text_words(text, "\"}");
}

static void append(const char *line, size_t bytes)
{
        int error = stook_file_append(path, line, bytes);

        if (error)
                say_once(-error);
}

void stook_report_tell_json(struct stook_text *text, const struct stook_report_about *about,
                            const char *line, size_t bytes,
                            const struct stook_report_stacks *stacks)
{
        stook_text_put(text, '{');
        put_count(text, "format", 1);
        put_words(text, "fault", stook_report_fault_words(about->fault));
        put_words(text, "program", stook_process_name());
        put_count(text, "pid", stook_report_pid());
        put_count(text, "thread", stook_report_thread());
        put_key(text, "text");
        put_string(text, line, line + bytes - 1);
        put_address(text, "object", about->object);
        put_words(text, "cache", about->cache_name);
        put_words(text, "heap", about->heap_name);
        put_address(text, "slab", about->slab);
        if (about->slab)
                put_count(text, "offset", about->offset);
        if (about->object_bytes)
                put_count(text, "object_bytes", about->object_bytes);
        if (about->requested_bytes)
                put_count(text, "requested_bytes", about->requested_bytes);
        put_bad(text, about);
        put_bytes(text, about);
        put_stack(text, stacks, STOOK_REPORT_HERE);
        put_track(text, "allocated", about->allocated, stacks, STOOK_REPORT_ALLOCATED);
        put_track(text, "freed", about->freed, stacks, STOOK_REPORT_FREED);
        put_track(text, "allocated_before", about->allocated_before, stacks,
                  STOOK_REPORT_ALLOCATED_BEFORE);
        put_track(text, "freed_before", about->freed_before, stacks, STOOK_REPORT_FREED_BEFORE);
        stook_text_words(text, "}\n");
        append(text->buffer, text->bytes);
}
