/*
 * What this proves: the text of each report, by one write; the hook gets the first line and the
 * parts; what is not known is left out; bytes that are not there are not shown; so many reports and
 * no more; abort or not, as told; the formatter never writes beyond its buffer.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fake_system.h"

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
                { STOOK_FAULT_USE_AFTER_FREE, "use after free" },
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

/* `stook run` is told of what is found, also without a line; not of what was asked for. */
static void test_marks(void **unused)
{
        struct stook_report_about on_purpose = { .fault = STOOK_FAULT_INJECTED };

        (void)unused;
        stook_report_fault(STOOK_FAULT_FOREIGN, AT(1), NULL, NULL, 0, NULL);
        assert_int_equal(marks, 0);
        stook_report_set_notes("/f");
        stook_report_event(&on_purpose);
        assert_int_equal(marks, 0);
        stook_report_fault(STOOK_FAULT_FOREIGN, AT(1), NULL, NULL, 0, NULL);
        assert_int_equal(marks, 1);
        assert_string_equal(marked, "/f");
        for (int i = 0; i < 300; i++)
                stook_report_found(STOOK_FAULT_CORRUPT, AT(1), NULL, NULL, 0, NULL);
        assert_int_equal(marks, 301);
        stook_report_set_notes("");
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
                cmocka_unit_test_setup(test_limit, setup),
                cmocka_unit_test_setup(test_hook, setup),
                cmocka_unit_test_setup(test_policy, setup),
                cmocka_unit_test_setup(test_marks, setup),
                cmocka_unit_test_setup(test_format, setup),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
