/*
 * What this proves: the text of each report, by one write; the hook gets the first line and the
 * parts; what is not known is left out; bytes that are not there are not shown; stacks by what the
 * helper answers, else by the map of memory; a line of JSON; so many reports and no more; abort or
 * not, as told; the formatter never writes beyond its buffer.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "os/os.h"
#include "report/install_paths.h"
#include "report/report_inside.h"

static char written[20000];
static unsigned writes;
static jmp_buf aborted;

void stook_os_write(const char *text, size_t bytes)
{
        assert_true(bytes < sizeof(written));
        memcpy(written, text, bytes);
        written[bytes] = '\0';
        writes++;
}

void stook_os_abort(void) { longjmp(aborted, 1); }
const char *stook_os_program(void) { return "a\tname"; }
uint32_t stook_os_pid(void) { return 1234; }
uint32_t stook_os_thread_number(void) { return 1235; }

static uintptr_t gone;                  /* from here on memory cannot be read */

/* All of a stack may be read: also what AddressSanitizer keeps from the program. */
__attribute__((no_sanitize("address")))
bool stook_os_read_memory(void *to, const void *from, size_t bytes)
{
        const volatile char *there = from;

        if ((uintptr_t)from + bytes > gone)
                return false;
        for (size_t i = 0; i < bytes; i++)
                ((volatile char *)to)[i] = there[i];
        return true;
}

static uint64_t now_ms = 1000000;
uint64_t stook_os_clock_ms(void) { return now_ms; }

size_t stook_os_page_bytes(void) { return 4096; }

/* Rooms for reports: how many are mapped, and what the system refuses. */
static unsigned rooms;
static bool     refuses_reserve, refuses_commit;

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
static const char *command;
static bool secure;
bool stook_os_is_executable(const char *path) { return command && !strcmp(path, command); }
bool stook_os_is_secure(void) { return secure; }

/* The helper: what it was asked, and its answer; NULL: there is none. */
static char asked[STOOK_REPORT_STACK + 4096];
static size_t asked_bytes;
static char helper[STOOK_REPORT_PATH];
static const char *answer;

size_t stook_os_ask_helper(struct stook_helper *unused, char *const *argv, const char *request,
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

bool stook_os_each_line(const char *path, bool (*each)(const char *line, void *data), void *data)
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

static char json[20000];

int stook_os_append(const char *path, const char *text, size_t bytes)
{
        assert_string_equal(path, "/tmp/reports.json");
        assert_true(bytes < sizeof(json));
        memcpy(json, text, bytes);
        json[bytes] = '\0';
        return 0;
}

static int json_error;                  /* what the start finds; 0: lines can be added */

int stook_os_may_append(const char *path)
{
        assert_string_equal(path, "/tmp/reports.json");
        return json_error;
}

static unsigned refused;

void stook_os_env_refuse(const char *name, const char *value, const char *takes)
{
        assert_string_equal(name, "STOOK_REPORT_JSON");
        assert_true(*value && *takes);
        refused++;
}

const char *stook_os_error_words(int error)
{
        (void)error;
        return "words";
}

#define PROGRAM "  program a?name (pid 1234), thread 1235\n"

#define CACHE "objects"
#define AT(n) ((void *)(uintptr_t)(n))

static int setup(void **unused)
{
        (void)unused;
        writes = 0;
        asked_bytes = 0;
        asked[0] = '\0';
        gone = UINTPTR_MAX;
        answer = NULL;
        now_ms += 1000000;
        stook_report_set_policy(STOOK_ON_FAULT_LOG);
        stook_on_report(NULL, NULL);
        return 0;
}

static void test_texts(void **unused)
{
        static const struct { enum stook_fault fault; const char *text; } table[] = {
                { STOOK_FAULT_FOREIGN, "foreign pointer" },
                { STOOK_FAULT_NOT_LIVE, "pointer to no live object" },
                { STOOK_FAULT_INTERIOR, "interior pointer" },
                { STOOK_FAULT_WRONG_CACHE, "wrong cache" },
                { STOOK_FAULT_DOUBLE_FREE, "double free" },
                { STOOK_FAULT_OBJECTS_LEFT, "objects left" },
                { STOOK_FAULT_CORRUPT, "corrupted" },
                { STOOK_FAULT_RCU, "endless wait" },
                { STOOK_FAULT_DEADLOCK, "deadlock" },
                { STOOK_FAULT_OVERRUN, "overrun" },
                { STOOK_FAULT_UNDERRUN, "underrun" },
                { STOOK_FAULT_WRITE_AFTER_FREE, "write after free" },
                { STOOK_FAULT_WRONG_SIZE, "wrong size" },
                { STOOK_FAULT_LEAK, "leak" },
        };
        uint64_t before = stook_report_count();
        char text[200];

        (void)unused;
        for (size_t i = 0; i < STOOK_ARRAY_SIZE(table); i++) {
                stook_report_fault(table[i].fault, AT(0x7f0012345678), CACHE, AT(0x7f0012345000),
                                   0x678, NULL);
                strcpy(text, "stook: ");
                strcat(text, table[i].text);
                strcat(text,
                       ": pointer 0x7f0012345678 (cache objects, slab 0x7f0012345000 "
                       "offset 1656)\n" PROGRAM);
                assert_string_equal(written, text);
        }
        assert_int_equal(writes, STOOK_ARRAY_SIZE(table));
        assert_int_equal(stook_report_count() - before, STOOK_ARRAY_SIZE(table));
}

static void test_parts_left_out(void **unused)
{
        (void)unused;
        stook_report_fault(STOOK_FAULT_FOREIGN, AT(0x10), NULL, NULL, 0, NULL);
        assert_string_equal(written, "stook: foreign pointer: pointer 0x10\n" PROGRAM);
        stook_report_fault(STOOK_FAULT_FOREIGN, AT(0x10), CACHE, NULL, 0, "why");
        assert_string_equal(written,
                            "stook: foreign pointer: pointer 0x10 (cache objects): why\n" PROGRAM);
        stook_report_fault(STOOK_FAULT_NOT_LIVE, AT(0x10), NULL, AT(0x8), 8, NULL);
        assert_string_equal(written,
                            "stook: pointer to no live object: pointer 0x10 (slab 0x8 offset 8)\n"
                            PROGRAM);
        stook_report_found(STOOK_FAULT_OBJECTS_LEFT, NULL, CACHE, NULL, 0, "3 still allocated");
        assert_string_equal(written, "stook: objects left (cache objects): 3 still allocated\n");
}

static void test_without_memory(void **unused)
{
        static bool *const refuses[] = { &refuses_reserve, &refuses_commit };

        (void)unused;
        for (size_t i = 0; i < STOOK_ARRAY_SIZE(refuses); i++) {
                *refuses[i] = true;
                stook_report_fault(STOOK_FAULT_FOREIGN, AT(0x10), CACHE, NULL, 0, NULL);
                *refuses[i] = false;
                assert_string_equal(written,
                                    "stook: foreign pointer: pointer 0x10 (cache objects)\n");
        }
        stook_report_fault(STOOK_FAULT_FOREIGN, AT(0x10), CACHE, NULL, 0, NULL);
        assert_string_equal(written,
                            "stook: foreign pointer: pointer 0x10 (cache objects)\n" PROGRAM);
        assert_int_equal(rooms, 0);
}

static void test_long_detail_is_cut(void **unused)
{
        char detail[800];

        (void)unused;
        memset(detail, 'x', sizeof(detail) - 1);
        detail[sizeof(detail) - 1] = '\0';
        stook_report_fault(STOOK_FAULT_CORRUPT, AT(1), CACHE, AT(1), 0, detail);
        assert_true(strchr(written, '\n') - written < 400 && strchr(written, '\n') - written > 300);
        assert_string_equal(strchr(written, '\n') + 1, PROGRAM);
}

#define AROUND(at) \
        .fault = STOOK_FAULT_OVERRUN, .object = (at), .cache_name = CACHE, \
        .object_bytes = 32, .requested_bytes = 20, .dump = (at), .dump_bytes = 34, \
        .bad = (at) + 20, .expected = 0xbb, .found = 0x41

/* Bytes in rows, the bad one in brackets; the last row ends where the dump does. */
static void test_bytes(void **unused)
{
        static uint8_t object[64] STOOK_ALIGNED(16);
        char expected[1000], *at = expected;

        (void)unused;
        memset(object, 0xbb, sizeof(object));
        memset(object, 'k', 20);
        object[20] = 'A';
        stook_report_about(&(struct stook_report_about){ AROUND(object) });
        at += sprintf(at,
                      "stook: overrun: pointer %p (cache objects)\n" PROGRAM
                      "  the object has 32 bytes, 20 of them requested\n"
                      "  at %p (20 bytes from its start): expected bb, found 41\n"
                      "  %p:  6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b  kkkkkkkkkkkkkkkk\n"
                      "  %p:  6b 6b 6b 6b[41]bb bb bb bb bb bb bb bb bb bb bb  kkkkA...........\n"
                      "  %p:  bb bb                                            ..\n",
                      (void *)object, (void *)(object + 20), (void *)object, (void *)(object + 16),
                      (void *)(object + 32));
        assert_string_equal(written, expected);
        assert_int_equal(writes, 1);
        /* The last rows are not there any more. */
        gone = (uintptr_t)object + 16;
        stook_report_about(&(struct stook_report_about){ AROUND(object) });
        assert_non_null(strstr(written, "kkkkkkkkkkkkkkkk\n"));
        assert_null(strstr(written, "[41]"));
}

/* A long dump is shown around the bad byte, also at the ends of a row, and before an object. */
static void test_bytes_around(void **unused)
{
        static uint8_t bytes[4096] STOOK_ALIGNED(16);
        struct stook_report_about about = { AROUND(bytes) };
        static const struct { unsigned at; const char *row; } table[] = {
                { 2015, " 00[07] ......" }, { 2016, ": [07]00 " }, { 1, ":  00[07]00" },
                { 4095, " 00[07] ......" },
        };

        (void)unused;
        about.dump_bytes = sizeof(bytes);
        for (size_t i = 0; i < STOOK_ARRAY_SIZE(table); i++) {
                memset(bytes, 0, sizeof(bytes));
                bytes[table[i].at] = 7;
                about.bad = bytes + table[i].at;
                stook_report_about(&about);
                assert_non_null(strstr(written, table[i].row));
        }
        about.object = bytes + 4096;
        stook_report_about(&about);
        assert_non_null(strstr(written, " (1 bytes before its start): expected bb, found 41\n"));
}

static uint32_t here(unsigned skip)
{
        (void)skip;
        return 1;
}

/* Stack 1: 0x2345 0x8010. Stack 2: 0x1. Stack 3: none. */
static unsigned frames_of(uint32_t id, uintptr_t *frames, unsigned most)
{
        assert_true(most >= 2);
        frames[0] = id == 1 ? 0x2345 : 1;
        frames[1] = 0x8010;
        return 3 - id;
}

static const struct stook_report_track by_11 = { 11, 2, 0 }, by_12 = { 12, 3, 0 };

static struct stook_report_about tracked(struct stook_report_track tracks[2])
{
        tracks[0] = by_11;
        tracks[1] = by_12;
        tracks[0].at_ms = now_ms - 61750;
        tracks[1].at_ms = now_ms - 49;
        return (struct stook_report_about){ .fault = STOOK_FAULT_DOUBLE_FREE, .object = AT(0x50),
                                            .cache_name = "\"quoted\"", .slab = AT(0x40),
                                            .offset = 16, .allocated = &tracks[0],
                                            .freed = &tracks[1] };
}

#define TRACKED_LINE "stook: double free: pointer 0x50 (cache \"quoted\", slab 0x40 offset 16)\n"

/* Where no mode has loaded the unwinder, the helper gets the registers and the stack. */
static void test_walk(void **unused)
{
        const char mark[] = "a word of this stack";
        unsigned long bytes, from, pc, number, value;
        char *line;

        (void)unused;
        stook_report_fault(STOOK_FAULT_FOREIGN, AT(0x10), NULL, NULL, 0, NULL);
        assert_int_equal(asked_bytes, 0);       /* the command is nowhere */
        assert_null(strstr(written, "found here"));
        command = STOOK_INSTALLED_COMMAND;
        gone = ((uintptr_t)(mark + sizeof(mark)) | 4095) + 1;   /* it is copied up to there */
        answer = "use a.c:3\nmain a.c:9\n\n\n\n";
        stook_report_fault(STOOK_FAULT_FOREIGN, AT(0x10), NULL, NULL, 0, NULL);
        assert_string_equal(helper, STOOK_INSTALLED_COMMAND);
        assert_string_equal(written, "stook: foreign pointer: pointer 0x10\n" PROGRAM
                                     "  found here\n    #0 use a.c:3\n    #1 main a.c:9\n");
        assert_int_equal(sscanf(asked, "@%lx %lx %lx %lx %lx", &bytes, &from, &pc, &number, &value),
                         5);
        line = memchr(asked, '\n', asked_bytes);
        assert_int_equal(from + bytes, gone);
        assert_int_equal(line + 1 + bytes + 2 - asked, asked_bytes);
        assert_true((uintptr_t)mark - from < bytes);
        assert_memory_equal(line + 1 + ((uintptr_t)mark - from), mark, sizeof(mark));
}

static void test_which_symbolizer(void **unused)
{
        char path[STOOK_REPORT_PATH];

        (void)unused;
        command = NULL;
        assert_false(stook_report_symbolizer(path));
        command = STOOK_INSTALLED_COMMAND;
        secure = true;
        assert_false(stook_report_symbolizer(path));
        secure = false;
        assert_true(stook_report_symbolizer(path));
        assert_string_equal(path, STOOK_INSTALLED_COMMAND);
        stook_report_set_symbolizer("");
        assert_false(stook_report_symbolizer(path));
        stook_report_set_symbolizer("/bin/stook");
        assert_true(stook_report_symbolizer(path));
        assert_string_equal(path, "/bin/stook");
        stook_report_set_symbolizer("");        /* for the tests that follow */
}

static void test_stacks(void **unused)
{
        static const struct stook_report_stack_source source = { here, frames_of };
        struct stook_report_track tracks[2];
        struct stook_report_about about = tracked(tracks);

        (void)unused;
        stook_report_about(&about);
        assert_string_equal(written, TRACKED_LINE PROGRAM "  allocated by thread 11, 61.7 s ago\n"
                                     "  freed by thread 12, 0.0 s ago\n");
        stook_report_set_stacks(&source);
        stook_report_about(&about);
        assert_string_equal(written, TRACKED_LINE PROGRAM "  found here\n"
                                     "    #0 0x2345 in pro gram+0x1345\n"
                                     "    #1 0x8010 in libx.so+0x10\n"
                                     "  allocated by thread 11, 61.7 s ago\n"
                                     "    #0 0x1\n"
                                     "  freed by thread 12, 0.0 s ago\n");
        assert_string_equal(asked, "");         /* no helper is known */
        stook_report_set_symbolizer("/bin/stook");
        stook_report_about(&about);
        assert_string_equal(asked, "2345 8010 \n1 \n\n");
        assert_non_null(strstr(written, "    #0 0x2345 in pro gram+0x1345\n"));
        answer = "use a.c:3\nmain a.c:9\n\nmake b.c:1 (inlined)\n\n\n";
        stook_report_about(&about);
        assert_string_equal(written, TRACKED_LINE PROGRAM "  found here\n"
                                     "    #0 use a.c:3\n"
                                     "    #1 main a.c:9\n"
                                     "  allocated by thread 11, 61.7 s ago\n"
                                     "    #0 make b.c:1 (inlined)\n"
                                     "  freed by thread 12, 0.0 s ago\n");
        answer = "cut";
        stook_report_about(&about);
        assert_non_null(strstr(written, "  found here\n    #0 cut"));
}

static void test_json(void **unused)
{
        struct stook_report_track tracks[2];
        struct stook_report_about about = tracked(tracks);
        static uint8_t object[64];

        (void)unused;
        stook_report_about(&about);
        assert_string_equal(json, "");          /* none is wanted */
        stook_report_set_json("/tmp/reports.json");
        answer = "use a.c:3\nmain a.c:9\n\nmake b.c:1\n\n\n";
        stook_report_about(&about);
        assert_string_equal(
                json,
                "{\"fault\":\"double free\",\"program\":\"a\\u0009name\",\"pid\":1234,"
                "\"thread\":1235,\"text\":\"stook: double free: pointer 0x50 (cache "
                "\\\"quoted\\\", slab 0x40 offset 16)\",\"object\":\"0x50\","
                "\"cache\":\"\\\"quoted\\\"\",\"slab\":\"0x40\",\"offset\":16,"
                "\"stack\":[\"use a.c:3\",\"main a.c:9\"],"
                "\"allocated\":{\"thread\":11,\"ms_ago\":61750,\"stack\":[\"make b.c:1\"]},"
                "\"freed\":{\"thread\":12,\"ms_ago\":49}}\n");
        memset(object, 'k', 20);
        object[20] = 'A';
        about = (struct stook_report_about){ AROUND(object) };
        stook_report_about_found(&about);
        assert_non_null(strstr(json, ",\"object_bytes\":32,\"requested_bytes\":20,\"bad\":{"));
        assert_non_null(strstr(json, ",\"expected\":187,\"found\":65},\"bytes\":{\"address\":"));
        assert_non_null(strstr(json, "\"hex\":\"6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b410000"));
        stook_report_set_json("");
}

/* Said at the start, and once; the reports try the file all the same. */
static void test_json_to_no_folder(void **unused)
{
        struct stook_report_about about = { .fault = STOOK_FAULT_FOREIGN };
        char long_path[600];

        (void)unused;
        memset(long_path, 'x', sizeof(long_path) - 1);
        long_path[sizeof(long_path) - 1] = '\0';
        stook_report_set_json(long_path);
        assert_int_equal(refused, 1);
        assert_false(stook_report_wants_json());

        json_error = -2;
        stook_report_set_json("/tmp/reports.json");
        assert_string_equal(written, "stook: /tmp/reports.json: no JSON report: words\n");
        *written = '\0';
        stook_report_set_json("/tmp/reports.json");
        assert_string_equal(written, "");
        *json = '\0';
        stook_report_about(&about);
        assert_non_null(strstr(json, "foreign pointer"));
        stook_report_set_json("");
}

/* A hundred at once, then ten a second; what was left out is said, and nothing is lost. */
static void test_limit(void **unused)
{
        unsigned before;

        (void)unused;
        for (unsigned i = 0; i < 50000; i++)
                stook_report_fault(STOOK_FAULT_FOREIGN, AT(0x10), NULL, NULL, 0, NULL);
        assert_int_equal(writes, 100);
        now_ms += 100;
        for (unsigned i = 0; i < 10; i++)
                stook_report_found(STOOK_FAULT_FOREIGN, AT(0x10), NULL, NULL, 0, NULL);
        assert_int_equal(writes, 101);
        assert_string_equal(written, "stook: 49900 reports were left out here\n"
                                     "stook: foreign pointer: pointer 0x10\n");
        now_ms += 60 * 60 * 1000;
        before = writes;
        for (unsigned i = 0; i < 200; i++)
                stook_report_found(STOOK_FAULT_FOREIGN, AT(0x10), NULL, NULL, 0, NULL);
        assert_int_equal(writes - before, 100);
        /* The last report of a process is written, whatever came before. */
        stook_report_set_policy(STOOK_ON_FAULT_ABORT);
        if (!setjmp(aborted))
                stook_report_fault(STOOK_FAULT_FOREIGN, AT(0x11), NULL, NULL, 0, NULL);
        assert_non_null(strstr(written, "pointer 0x11\n"));
}

static const void *hook_data;
static unsigned hooked;

static void hook(const struct stook_report *report, void *data)
{
        assert_int_equal(report->report_size, sizeof(*report));
        assert_int_equal(report->fault, STOOK_FAULT_DOUBLE_FREE);
        assert_string_equal(
                report->text,
                "stook: double free: pointer 0x50 (cache objects, slab 0x40 offset 16): twice");
        assert_ptr_equal(report->object, AT(0x50));
        assert_string_equal(report->cache_name, CACHE);
        assert_ptr_equal(report->slab, AT(0x40));
        assert_int_equal(report->offset, 16);
        hook_data = data;
        hooked++;
}

static void test_hook(void **unused)
{
        (void)unused;
        stook_on_report(hook, AT(77));
        stook_report_fault(STOOK_FAULT_DOUBLE_FREE, AT(0x50), CACHE, AT(0x40), 16, "twice");
        assert_ptr_equal(hook_data, AT(77));
        assert_int_equal(hooked, 1);
        stook_on_report(NULL, NULL);
        stook_report_fault(STOOK_FAULT_CORRUPT, AT(0x50), CACHE, AT(0x40), 16, NULL);
        assert_int_equal(hooked, 1);
}

static void test_policy(void **unused)
{
        volatile unsigned aborts = 0;

        (void)unused;
        stook_report_set_policy(STOOK_ON_FAULT_ABORT);
        stook_on_report(hook, AT(1));
        hooked = 0;
        if (setjmp(aborted))
                aborts++;
        else
                stook_report_fault(STOOK_FAULT_DOUBLE_FREE, AT(0x50), CACHE, AT(0x40), 16, "twice");
        assert_int_equal(aborts, 1);
        assert_int_equal(hooked, 1);                    /* before the end */
        stook_on_report(NULL, NULL);
        if (setjmp(aborted))
                aborts++;
        else
                stook_report_found(STOOK_FAULT_OBJECTS_LEFT, NULL, CACHE, NULL, 0, NULL);
        /* What was found is told, and that is all. */
        assert_int_equal(aborts, 1);
        stook_report_set_policy(STOOK_ON_FAULT_LOG);
        if (setjmp(aborted))
                aborts++;
        else
                stook_report_impossible("slab I2");
        assert_int_equal(aborts, 2);
        assert_string_equal(written, "stook: internal fault: slab I2 does not hold\n");
}

static void test_format(void **unused)
{
        char text[64];

        (void)unused;
        assert_int_equal(stook_report_format(text, sizeof(text), "%s|%u|%x|%p|%%", "word",
                                             UINT64_C(0), UINT64_MAX, AT(0xab)),
                         30);
        assert_string_equal(text, "word|0|ffffffffffffffff|0xab|%");
        stook_report_format(text, sizeof(text), "%u %s", UINT64_MAX, (char *)NULL);
        assert_string_equal(text, "18446744073709551615 (none)");
        memset(text, '#', sizeof(text));
        for (size_t room = 0; room < 20; room++) {
                assert_int_equal(stook_report_format(text, room, "%s", "0123456789"),
                                 room ? room - 1 < 10 ? room - 1 : 10 : 0);
                assert_true(!room || !text[room - 1 < 10 ? room - 1 : 10]);
                assert_int_equal(text[room > 11 ? room : 11], '#');
        }
        assert_int_equal(stook_report_format(text, sizeof(text), "end%"), 3);
        assert_string_equal(text, "end");
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(test_texts, setup),
                cmocka_unit_test_setup(test_parts_left_out, setup),
                cmocka_unit_test_setup(test_without_memory, setup),
                cmocka_unit_test_setup(test_long_detail_is_cut, setup),
                cmocka_unit_test_setup(test_bytes, setup),
                cmocka_unit_test_setup(test_bytes_around, setup),
                cmocka_unit_test_setup(test_walk, setup),
                cmocka_unit_test_setup(test_which_symbolizer, setup),
                cmocka_unit_test_setup(test_stacks, setup),
                cmocka_unit_test_setup(test_json, setup),
                cmocka_unit_test_setup(test_json_to_no_folder, setup),
                cmocka_unit_test_setup(test_limit, setup),
                cmocka_unit_test_setup(test_hook, setup),
                cmocka_unit_test_setup(test_policy, setup),
                cmocka_unit_test_setup(test_format, setup),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
