/*
 * What this proves: objects of malloc's classes with seals (harden/seal.h). Whatever was asked for
 * may be used, and no more; each byte behind it that is written, and each second free, is reported
 * once, and the object is not handed out again. What is freed is not handed out by the next call.
 * malloc(0) gives objects that nobody can touch. A late write to the first bytes is found, with
 * check-free to any. What waits for readers keeps its content.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <stook/stook.h>

#include "cache/cache_watch.h"
#include "harden/harden.h"
#include "harden/seal.h"
#include "malloc/malloc.h"
#include "off_by.h"
#include "os/os.h"

static unsigned reports;
static enum stook_fault last;

static void note(const struct stook_report *report, void *data)
{
        (void)data;
        __atomic_fetch_add(&reports, 1, __ATOMIC_RELAXED);
        last = report->fault;
}

static void expect(enum stook_fault fault)
{
        unsigned count = reports;

        reports = 0;
        assert_int_equal(count, 1);
        assert_int_equal(last, fault);
}

static void *(*volatile allocate)(size_t) = stook_malloc;
static void (*volatile release)(void *) = stook_free;

static void all_of_an_object_may_be_used(void **state)
{
        (void)state;
        for (size_t size = 1; size < 300000; size += size / 7 + 1) {
                unsigned char *object = allocate(size);

                assert_non_null(object);
                assert_int_equal(stook_usable_size(object), size);
                memset(object, 0xff, size);
                object = stook_realloc(object, size * 2);
                assert_int_equal(object[size - 1], 0xff);
                memset(object, 0xee, size * 2);
                object = stook_realloc(object, size);
                assert_int_equal(object[size - 1], 0xee);
                assert_int_equal(stook_usable_size(object), size);
                stook_free_sized(object, size);
                object = stook_calloc(1, size);
                for (size_t i = 0; i < size; i++)
                        assert_int_equal(object[i], 0);
                release(object);
                for (size_t align = 32; align <= 8192; align *= 2) {
                        object = stook_aligned_alloc(align, size);
                        assert_int_equal(off_by(object, align), 0);
                        assert_int_equal(stook_usable_size(object), size);
                        memset(object, 0xdd, size);
                        release(object);
                }
        }
        assert_int_equal(reports, 0);
}

static void a_byte_behind_is_found(void **state)
{
        (void)state;
        for (size_t size = 1; size < 250000; size += size / 5 + 1) {
                unsigned char *object = allocate(size), *other;

                if (size > STOOK_CLASS_MAX && size % stook_os_page_bytes() == 0)
                        continue;               /* the guard stops it */
                object[size] ^= 0x55;
                release(object);
                expect(STOOK_FAULT_OVERRUN);
                other = allocate(size);
                if (size < STOOK_CLASS_MAX - STOOK_SEAL_BYTES)
                        assert_ptr_not_equal(other, object);
                release(other);
        }
        assert_int_equal(reports, 0);
}

/* The seal of the object behind it, too, which is found when that one is freed. */
static void many_bytes_behind_are_found(void **state)
{
        char *object = allocate(100);

        (void)state;
        memset(object, 'A', 108);
        release(object);
        expect(STOOK_FAULT_OVERRUN);
}

/* Of another object, or with another size in it. */
static void a_forged_seal_is_found(void **state)
{
        char *object = allocate(104), *other = allocate(104);

        (void)state;
        memcpy(object + 104, other + 104, STOOK_SEAL_BYTES);
        release(object);
        expect(STOOK_FAULT_OVERRUN);
        other[104] ^= 0x08;
        release(other);
        expect(STOOK_FAULT_OVERRUN);
}

static void a_second_free_is_found(void **state)
{
        (void)state;
        for (size_t size = 1; size < 130000; size += size / 2 + 1) {
                void *object = allocate(size);

                release(object);
                for (int i = 0; i < 3; i++) {
                        release(object);
                        expect(STOOK_FAULT_DOUBLE_FREE);
                }
                assert_null(stook_realloc(object, size + 1));
                reports = 0;
        }
}

static void a_wrong_size_is_found(void **state)
{
        void *object = allocate(100);

        (void)state;
        stook_free_sized(object, 99);
        expect(STOOK_FAULT_WRONG_SIZE);
        stook_free_sized(object, 100);
        assert_int_equal(reports, 0);
}

static void what_is_freed_waits(void **state)
{
        (void)state;
        for (size_t size = 1; size < 100000; size += size / 2 + 1) {
                for (int i = 0; i < 100; i++) {
                        void *object = allocate(size), *next;

                        release(object);
                        next = allocate(size);
                        assert_ptr_not_equal(object, next);
                        release(next);
                }
        }
        assert_true(stook_trim(0) > 0);
        assert_int_equal(stook_validate_all(), 0);
}

static pthread_barrier_t go;
static void *shared;

static void *free_it(void *data)
{
        pthread_barrier_wait(&go);
        release(shared);
        pthread_barrier_wait(&go);
        return data;
}

static void of_two_frees_one_is_found(void **state)
{
        (void)state;
#ifdef __SANITIZE_THREAD__
        skip();                         /* it reports what the program does wrong here */
#endif
        pthread_barrier_init(&go, NULL, 2);
        for (int i = 0; i < 200; i++) {
                pthread_t thread;

                shared = allocate(200);
                assert_int_equal(pthread_create(&thread, NULL, free_it, NULL), 0);
                pthread_barrier_wait(&go);
                release(shared);
                pthread_barrier_wait(&go);
                pthread_join(thread, NULL);
                expect(STOOK_FAULT_DOUBLE_FREE);
        }
}

static bool dies(char *at)
{
        int status;
        pid_t pid = fork();

        if (!pid) {
                signal(SIGSEGV, SIG_DFL);       /* cmocka has a handler */
                *(volatile char *)at += 1;
                _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        return WIFSIGNALED(status);
}

static void nothing_has_no_bytes(void **state)
{
        char *one = allocate(0), *other = allocate(0);

        (void)state;
        assert_non_null(one);
        assert_ptr_not_equal(one, other);
        assert_int_equal(stook_usable_size(one), 0);
        assert_true(dies(one));
        assert_true(dies(one - 1));
        one = stook_realloc(one, 50);
        memset(one, 1, 50);
        one = stook_realloc(one, 1);
        release(one);
        release(other);
        assert_int_equal(reports, 0);
        release(other);
        expect(STOOK_FAULT_DOUBLE_FREE);
        other = stook_calloc(0, 8);
        release(other);
        for (int i = 0; i < 200000; i++)
                assert_non_null(allocate(0));
}

static void a_late_write_is_found(void **state)
{
        char *object = allocate(500);

        (void)state;
        bool zeroed = stook_is_hardened(STOOK_HARDEN_CHECK_FREE);

        memset(object, 7, 500);
        release(object);
        for (int i = 0; i < 500 && zeroed; i++)
                assert_int_equal(object[i], 0);
        object[zeroed ? 300 : 3] ^= 1;
        for (int i = 0; i < 1000000 && !reports; i++)
                release(allocate(500));
        expect(STOOK_FAULT_WRITE_AFTER_FREE);
}

static void readers_find_the_content(void **state)
{
        char *object = allocate(200);

        (void)state;
        assert_int_equal(stook_rcu_use(&stook_rcu_epoch), 0);
        memset(object, 7, 200);
        assert_int_equal(stook_free_rcu(object), 0);
        for (int i = 0; i < 200; i++)
                assert_int_equal(object[i], 7);
        release(object);
        expect(STOOK_FAULT_DOUBLE_FREE);
        stook_rcu_barrier();
        assert_int_equal(stook_validate_all(), 0);
        assert_int_equal(reports, 0);
        for (int i = 0; i < 3000; i++)
                release(allocate(200));
        assert_int_equal(reports, 0);
}

static void a_child_goes_on(void **state)
{
        void *objects[50];
        int status;
        pid_t pid;

        (void)state;
        for (int i = 0; i < 50; i++)
                objects[i] = allocate((size_t)i * 40);
        pid = fork();
        for (int i = 0; i < 50; i++)
                release(objects[i]);
        if (!pid)
                _exit(reports != 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        assert_int_equal(reports, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(all_of_an_object_may_be_used),
                cmocka_unit_test(a_byte_behind_is_found),
                cmocka_unit_test(many_bytes_behind_are_found),
                cmocka_unit_test(a_forged_seal_is_found),
                cmocka_unit_test(a_second_free_is_found),
                cmocka_unit_test(a_wrong_size_is_found),
                cmocka_unit_test(what_is_freed_waits),
                cmocka_unit_test(of_two_frees_one_is_found),
                cmocka_unit_test(nothing_has_no_bytes),
                cmocka_unit_test(a_late_write_is_found),
                cmocka_unit_test(readers_find_the_content),
                cmocka_unit_test(a_child_goes_on),
        };

        stook_on_report(note, NULL);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
