/*
 * Purpose: names for the addresses of call stacks. A helper process reads the debug information
 * (`stook symbolize`), so that nothing of this heap is needed. Where it cannot be had, an address
 * is told by its file and the offset there, from /proc/self/maps.
 * The stacks come from the stack layer, which hands itself in (stook_report_set_stacks), because it
 * lies above this one. It does so where a mode wants stacks. In all other processes the unwinder is
 * not loaded, and a report is no place to load it. There the helper gets this call's registers and
 * a copy of its stack, and finds the callers itself.
 * Place: called by report_tell.c.
 * Concurrency: any thread, any instruction; the stacks are of the caller's room.
 * Protocol: for each stack a line of frames (stook_report_put_frame). Or, for one that the helper
 *  is to walk, a line "@BYTES FROM PC REGISTER VALUE ...", registers by DWARF's numbers, and behind
 *  the line so many bytes of memory from FROM on. The answer has for each stack a line for each
 *  frame, and an empty line.
 *
 * The command `stook` is where STOOK_SYMBOLIZER says, else beside the library's file, as in a build
 * folder, else where the library was configured to be installed. A program that has more rights
 * than its caller (AT_SECURE) has none: the folder of its library, and what the command reads, may
 * be the caller's choice.
 */
#include <string.h>

#include "os/os.h"
#include "process/process.h"
#include "process/registers.h"
#include "report/install_paths.h"
#include "report/report_inside.h"

/* ---- where the command is ---- */

static bool chosen;                     /* both written at start */
static char path[STOOK_REPORT_PATH] STOOK_MOSTLY_UNUSED;        /* empty, if chosen: none */

void stook_report_set_symbolizer(const char *or_null)
{
        chosen = or_null;
        if (or_null && strlen(or_null) < sizeof(path))
                strcpy(path, or_null);
        else if (or_null)
                stook_os_env_refuse("STOOK_SYMBOLIZER", or_null, "a path of at most 511 bytes");
}

/* The line of /proc/self/maps that this code is in. @data: room for its path. */
static bool find_library(const char *line, void *data)
{
        uintptr_t start, end, here = (uintptr_t)find_library;
        const char *c = stook_text_read(line, &start);
        char *to = data;

        if (*c != '-' || here < start)
                return false;
        stook_text_read(c + 1, &end);
        if (here >= end)
                return false;
        c = strchr(line, '/');
        if (c && strlen(c) < STOOK_REPORT_PATH)
                strcpy(to, c);
        return true;
}

/* In @to: the command beside the library. A program that the library is linked into has none. */
static bool is_beside_the_library(char *to)
{
        char *name;

        *to = '\0';
        stook_file_each_line("/proc/self/maps", find_library, to);
        name = strrchr(to, '/');
        if (!name || strncmp(name, "/libstook", 9))
                return false;
        strcpy(name, "/stook");         /* which is shorter */
        return stook_process_is_executable(to);
}

bool stook_report_symbolizer(char *to)
{
        if (chosen) {
                strcpy(to, path);
                return *to;
        }
        if (stook_os_is_secure())
                return false;
        if (is_beside_the_library(to))
                return true;
        if (sizeof(STOOK_INSTALLED_COMMAND) > STOOK_REPORT_PATH)
                return false;
        strcpy(to, STOOK_INSTALLED_COMMAND);
        return stook_process_is_executable(to);
}

/* ---- names of frames ---- */

#define WAIT_MS     10000               /* large programs have much debug information; arbitrary */
/* Reports whose frames are named: a helper takes 50 ms and more. Arbitrary. */
#define HELPED_MOST 30

static uint64_t asked;                  /* atomic */
static struct stook_report_stack_source source;

void stook_report_set_stacks(const struct stook_report_stack_source *of)
{
        source.frames = of->frames;
        source.closed = of->closed;
        __atomic_store_n(&source.here, of->here, __ATOMIC_RELEASE);
}

void stook_report_clear_stacks(struct stook_report_stacks *stacks)
{
        memset(stacks->count, 0, sizeof(stacks->count));
        stacks->lines[0] = '\0';
}

static void copy_frames(const struct stook_report_about *about, uint32_t (*here)(unsigned skip),
                        struct stook_report_stacks *stacks)
{
        const struct stook_report_track *tracks[] = {
                [STOOK_REPORT_ALLOCATED] = about->allocated, [STOOK_REPORT_FREED] = about->freed,
                [STOOK_REPORT_ALLOCATED_BEFORE] = about->allocated_before,
                [STOOK_REPORT_FREED_BEFORE] = about->freed_before,
        };

        for (unsigned i = 0; i < STOOK_REPORT_STACKS; i++) {
                uint32_t id = i == STOOK_REPORT_HERE ? here(0) : tracks[i] ? tracks[i]->stack : 0;

                stacks->id[i] = id;
                if (id)
                        stacks->count[i] = source.frames(id, stacks->frames[i],
                                                         STOOK_REPORT_FRAMES);
        }
}

/* ---- by the helper ---- */

static void put_hex(struct stook_text *text, uint64_t n)
{
        stook_text_number(text, n, 16);
        stook_text_put(text, ' ');
}

/* NULL: it is there still, or nothing is known of it. */
static const char *closed_file(uint32_t id, uintptr_t address, uintptr_t *start)
{
        return id && source.closed ? source.closed(id, address - 1, start) : NULL;
}

void stook_report_put_frame(struct stook_text *text, uint32_t id, uintptr_t address)
{
        uintptr_t start = 0;
        const char *file = closed_file(id, address, &start);

        if (file && !file[strcspn(file, " \t\r\n+")] &&
            text->room - text->bytes > STOOK_REPORT_FRAME_ROOM) {
                stook_text_words(text, file);
                stook_text_put(text, '+');
        } else {
                start = 0;
        }
        put_hex(text, address - start);
}

static void put_addresses(struct stook_text *text, const struct stook_report_stacks *stacks,
                          unsigned which)
{
        for (unsigned f = 0; f < stacks->count[which]; f++)
                stook_report_put_frame(text, stacks->id[which], stacks->frames[which][f]);
        stook_text_put(text, '\n');
}

/* Copies this stack from @from on, page by page, as far as it is there and as fits. */
static size_t copy_stack(char *to, size_t room, uintptr_t from)
{
        size_t bytes = 0, page = stook_os_page_bytes();

        while (bytes < room) {
                size_t n = page - (from + bytes) % page;

                n = n < room - bytes ? n : room - bytes;
                if (!stook_process_read_memory(to + bytes, (const void *)(from + bytes), n))
                        break;
                bytes += n;
        }
        return bytes;
}

/* This call's stack, for the helper to walk. */
static void put_walk(struct stook_text *text, const struct stook_registers *here,
                     struct stook_report_stacks *stacks)
{
        static const uint8_t kept[] = STOOK_REGISTERS_KEPT;
        uintptr_t from = here->value[STOOK_REGISTER_STACK];
        size_t bytes = copy_stack(stacks->stack, sizeof(stacks->stack), from);

        stook_text_put(text, '@');
        put_hex(text, bytes);
        put_hex(text, from);
        put_hex(text, here->value[STOOK_REGISTER_PC]);
        for (unsigned i = 0; i < sizeof(kept); i++) {
                put_hex(text, kept[i]);
                put_hex(text, here->value[kept[i]]);
        }
        stook_text_put(text, '\n');
        memcpy(text->buffer + text->bytes, stacks->stack, bytes);
        text->bytes += bytes;
}

/* @here: the helper is to walk this stack; NULL: its frames are known. */
static bool ask_helper(struct stook_report_stacks *stacks, const struct stook_registers *here)
{
        size_t bytes;
        char pid[16], path[STOOK_REPORT_PATH];
        char *argv[] = { path, "symbolize", "--pid", pid, NULL };
        struct stook_text text = { .buffer = stacks->request, .room = sizeof(stacks->request) };

        if (!stook_report_symbolizer(path) ||
            __atomic_fetch_add(&asked, 1, __ATOMIC_RELAXED) >= HELPED_MOST)
                return false;
        stook_report_format(pid, sizeof(pid), "%u", (uint64_t)stook_process_id());
        for (unsigned i = 0; i < STOOK_REPORT_STACKS; i++) {
                if (here && i == STOOK_REPORT_HERE)
                        put_walk(&text, here, stacks);
                else
                        put_addresses(&text, stacks, i);
        }
        bytes = stook_process_ask_helper(&stacks->helper, argv, text.buffer, text.bytes,
                                         stacks->lines, sizeof(stacks->lines) - 1, WAIT_MS);
        stacks->lines[bytes] = '\0';
        return bytes;
}

/* ---- by /proc/self/maps ---- */

struct module {
        uintptr_t base;                 /* where the file's first byte is mapped */
        char      path[128];            /* cut */
};

struct search {
        uintptr_t     address;
        struct module module;           /* of the lines so far */
        bool          found;
};

/* A line of the file: "START-END PERMISSIONS OFFSET DEVICE INODE    PATH". */
static bool look(const char *line, void *data)
{
        struct search *search = data;
        uintptr_t start, end, offset;
        const char *c = stook_text_read(line, &start);
        size_t n;

        if (*c != '-')
                return false;
        c = stook_text_read(c + 1, &end);
        c = strchr(c + 1, ' ');         /* behind the permissions */
        if (!c)
                return false;
        stook_text_read(c + 1, &offset);
        c = strchr(c, '/');
        if (!c)
                return false;
        n = strnlen(c, sizeof(search->module.path) - 1);
        if (!offset || strncmp(search->module.path, c, n)) {
                search->module.base = start - offset;
                memcpy(search->module.path, c, n);
                search->module.path[n] = '\0';
        }
        search->found = search->address >= start && search->address < end;
        return search->found;
}

static void put_module(struct stook_text *text, uint32_t id, uintptr_t address)
{
        struct search search = { .address = address - 1 };
        const char *file = closed_file(id, address, &search.module.base);

        stook_text_pointer(text, (const void *)address);
        if (!file)
                stook_file_each_line("/proc/self/maps", look, &search);
        if (search.found)
                file = search.module.path;
        if (file) {
                stook_text_words(text, " in ");
                stook_text_plain(text, strrchr(file, '/') + 1);
                stook_text_put(text, '+');
                stook_text_pointer(text, (const void *)(address - search.module.base));
        }
        stook_text_put(text, '\n');
}

void stook_report_put_addresses(struct stook_text *text, uint32_t id, const uintptr_t *frames,
                                unsigned count)
{
        for (unsigned f = 0; f < count; f++) {
                stook_text_words(text, "    #");
                stook_text_number(text, f, 10);
                stook_text_put(text, ' ');
                put_module(text, id, frames[f]);
        }
}

static void name_modules(struct stook_report_stacks *stacks)
{
        struct stook_text text = { .buffer = stacks->lines, .room = sizeof(stacks->lines) - 1 };

        for (unsigned i = 0; i < STOOK_REPORT_STACKS; i++) {
                for (unsigned f = 0; f < stacks->count[i]; f++)
                        put_module(&text, stacks->id[i], stacks->frames[i][f]);
                stook_text_put(&text, '\n');
        }
        stacks->lines[text.bytes] = '\0';
}

void stook_report_find_stacks(const struct stook_report_about *about,
                              struct stook_report_stacks *stacks)
{
        uint32_t (*here)(unsigned skip) = __atomic_load_n(&source.here, __ATOMIC_ACQUIRE);
        struct stook_registers registers;
        unsigned frames = 0;

        if (!here) {
                stook_registers_here(&registers);
                ask_helper(stacks, &registers);
                return;
        }
        copy_frames(about, here, stacks);
        for (unsigned i = 0; i < STOOK_REPORT_STACKS; i++)
                frames += stacks->count[i];
        if (frames && !ask_helper(stacks, NULL))
                name_modules(stacks);
}

const char *stook_report_next_line(const char *line)
{
        const char *end = strchr(line, '\n');

        return end ? end + 1 : line + strlen(line);
}

const char *stook_report_stack_lines(const struct stook_report_stacks *stacks, unsigned which)
{
        const char *line = stacks->lines;

        for (; which && *line; line = stook_report_next_line(line))
                which -= *line == '\n';
        return line;
}
