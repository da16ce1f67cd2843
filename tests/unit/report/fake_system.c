/* Purpose: what fake_system.h tells. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "fake_system.h"

char written[20000];
unsigned writes;
jmp_buf aborted;

void stook_os_write(const char *text, size_t bytes)
{
        assert_true(bytes < sizeof(written));
        memcpy(written, text, bytes);
        written[bytes] = '\0';
        writes++;
}

void stook_os_abort(void) { longjmp(aborted, 1); }
const char *stook_process_name(void) { return "a\tname"; }
uint32_t stook_process_id(void) { return 1234; }
uint32_t stook_process_thread_id(void) { return 1235; }

uintptr_t gone;

/* All of a stack may be read: also what AddressSanitizer keeps from the program. */
__attribute__((no_sanitize("address")))
bool stook_process_read_memory(void *to, const void *from, size_t bytes)
{
        const volatile char *there = from;

        if ((uintptr_t)from + bytes > gone)
                return false;
        for (size_t i = 0; i < bytes; i++)
                ((volatile char *)to)[i] = there[i];
        return true;
}

uint64_t now_ms = 1000000;
uint64_t stook_os_clock_ms(void) { return now_ms; }

size_t stook_os_page_bytes(void) { return 4096; }

/* Rooms for reports: how many are mapped, and what the system refuses. */
unsigned rooms;
bool     refuses_reserve, refuses_commit;

void *stook_os_reserve(size_t bytes, size_t align)
{
        void *room = refuses_reserve ? NULL : aligned_alloc(align, bytes);

        rooms += room != NULL;
        return room;
}

bool stook_os_commit(void *addr, size_t bytes)
{
        memset(addr, 0, bytes);
        return !refuses_commit;
}

void stook_os_unreserve(void *addr, size_t bytes)
{
        assert_true(bytes && rooms);
        rooms--;
        free(addr);
}

/* Which file may be executed: the command, where the library was configured to be installed. */
const char *command;
bool secure;
bool stook_process_is_executable(const char *path) { return command && !strcmp(path, command); }
bool stook_os_is_secure(void) { return secure; }

/* The helper: what it was asked, and its answer; NULL: there is none. */
char asked[STOOK_REPORT_STACK + 4096];
size_t asked_bytes;
char helper[STOOK_REPORT_PATH];
const char *answer;

size_t stook_process_ask_helper(struct stook_helper *unused, char *const *argv, const char *request,
                           size_t bytes, char *to, size_t room, unsigned wait_ms)
{
        (void)unused;
        strcpy(helper, argv[0]);
        assert_string_equal(argv[3], "1234");
        assert_true(wait_ms > 0 && bytes < sizeof(asked));
        memcpy(asked, request, bytes);
        asked[bytes] = '\0';
        asked_bytes = bytes;
        if (!answer)
                return 0;
        assert_true(strlen(answer) <= room);
        memcpy(to, answer, strlen(answer));
        return strlen(answer);
}

bool stook_file_each_line(const char *path, bool (*each)(const char *line, void *data), void *data)
{
        static const char *const lines[] = {
                "1000-2000 r--p 00000000 08:01 12                         /usr/bin/pro gram",
                "2000-4000 r-xp 00001000 08:01 12                         /usr/bin/pro gram",
                "4000-5000 rw-p 00000000 00:00 0 ",
                "8000-9000 r-xp 00000000 08:01 13                         /usr/lib/libx.so",
                "nonsense",
        };

        assert_string_equal(path, "/proc/self/maps");
        for (size_t i = 0; i < STOOK_ARRAY_SIZE(lines); i++)
                if (each(lines[i], data))
                        break;
        return true;
}

char json[20000];

int stook_file_append(const char *path, const char *text, size_t bytes)
{
        assert_string_equal(path, "/tmp/reports.json");
        assert_true(bytes < sizeof(json));
        memcpy(json, text, bytes);
        json[bytes] = '\0';
        return 0;
}

int json_error;

int stook_file_may_append(const char *path)
{
        assert_string_equal(path, "/tmp/reports.json");
        return json_error;
}

unsigned refused;
const char *refused_name;

void stook_os_env_refuse(const char *name, const char *value, const char *takes)
{
        assert_true(*value && *takes);
        refused_name = name;
        refused++;
}

unsigned marks;
const char *marked;

void stook_file_mark(const char *path, uint64_t magic, unsigned n)
{
        assert_int_equal(magic, STOOK_NOTES_MAGIC);
        assert_int_equal(n, STOOK_NOTE_FOUND);
        marked = path;
        marks++;
}

const char *stook_file_error_words(int error)
{
        (void)error;
        return "words";
}

int setup(void **unused)
{
        (void)unused;
        writes = 0;
        asked_bytes = 0;
        asked[0] = '\0';
        refused = 0;
        marks = 0;
        gone = UINTPTR_MAX;
        answer = NULL;
        now_ms += 1000000;
        stook_report_set_policy(STOOK_ON_FAULT_LOG);
        stook_on_report(NULL, NULL);
        return 0;
}
