/*
 * What this proves: the stacks of a report, as text and as a line of JSON: by what the helper
 * answers, else by the map of memory; which command names functions; what the helper is asked where
 * no mode has loaded the unwinder; a file or a path that cannot be used is said once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "fake_system.h"

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

static const char *closed_at_8000;              /* the file that was there; NULL: it is */

static const char *closed(uint32_t id, uintptr_t address, uintptr_t *start)
{
        assert_true(id >= 1 && id <= 3);
        if (address != 0x800f || !closed_at_8000)
                return NULL;
        *start = 0x7000;
        return closed_at_8000;
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
        answer = "use a.c:3\nmain a.c:9\n\n\n\n\n\n";
        stook_report_fault(STOOK_FAULT_FOREIGN, AT(0x10), NULL, NULL, 0, NULL);
        assert_string_equal(helper, STOOK_INSTALLED_COMMAND);
        assert_string_equal(written, "stook: foreign pointer: pointer 0x10\n" PROGRAM
                                     "  found here\n    #0 use a.c:3\n    #1 main a.c:9\n");
        assert_int_equal(sscanf(asked, "@%lx %lx %lx %lx %lx", &bytes, &from, &pc, &number, &value),
                         5);
        line = memchr(asked, '\n', asked_bytes);
        assert_int_equal(from + bytes, gone);
        assert_int_equal(line + 1 + bytes + 4 - asked, asked_bytes);
        assert_true((uintptr_t)mark - from < bytes);
        assert_memory_equal(line + 1 + ((uintptr_t)mark - from), mark, sizeof(mark));
}

static void test_which_symbolizer(void **unused)
{
        char path[STOOK_REPORT_PATH], longer[STOOK_REPORT_PATH + 1];

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

        memset(path, 'x', sizeof(path) - 1);
        path[sizeof(path) - 1] = '\0';
        stook_report_set_symbolizer(path);      /* the longest that is taken */
        assert_int_equal(refused, 0);
        stook_report_set_symbolizer("");
        stook_report_set_symbolizer(strcat(strcpy(longer, path), "x"));
        assert_int_equal(refused, 1);
        assert_string_equal(refused_name, "STOOK_SYMBOLIZER");
        assert_false(stook_report_symbolizer(path));
}

static void test_stacks(void **unused)
{
        static const struct stook_report_stack_source source = { here, frames_of, closed };
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
        assert_string_equal(asked, "2345 8010 \n1 \n\n\n\n");
        assert_non_null(strstr(written, "    #0 0x2345 in pro gram+0x1345\n"));
        closed_at_8000 = "/opt/plug.so";
        stook_report_about(&about);
        assert_string_equal(asked, "2345 /opt/plug.so+1010 \n1 \n\n\n\n");
        assert_non_null(strstr(written, "    #1 0x8010 in plug.so+0x1010\n"));
        closed_at_8000 = "/opt/plug in.so";     /* a name that the helper would not read */
        stook_report_about(&about);
        assert_string_equal(asked, "2345 8010 \n1 \n\n\n\n");
        closed_at_8000 = NULL;
        answer = "use a.c:3\nmain a.c:9\n\nmake b.c:1 (inlined)\n\n\n\n\n";
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
        answer = "use a.c:3\nmain a.c:9\n\nmake b.c:1\n\n\n\n\n";
        stook_report_about(&about);
        assert_string_equal(
                json,
                "{\"format\":1,\"fault\":\"double free\",\"program\":\"a\\u0009name\",\"pid\":1234,"
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
        assert_non_null(strstr(json, ",\"expected\":187,\"found\":65},\"dump\":{\"address\":"));
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
        assert_string_equal(refused_name, "STOOK_REPORT_JSON");
        assert_false(stook_report_wants_json());

        json_error = -2;
        stook_report_set_json("/tmp/reports.json");
        assert_string_equal(written, "stook: STOOK_REPORT_JSON: /tmp/reports.json: no JSON report: "
                                     "words\n");
        *written = '\0';
        stook_report_set_json("/tmp/reports.json");
        assert_string_equal(written, "");
        *json = '\0';
        stook_report_about(&about);
        assert_non_null(strstr(json, "foreign pointer"));
        stook_report_set_json("");
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(test_walk, setup),
                cmocka_unit_test_setup(test_which_symbolizer, setup),
                cmocka_unit_test_setup(test_stacks, setup),
                cmocka_unit_test_setup(test_json, setup),
                cmocka_unit_test_setup(test_json_to_no_folder, setup),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
