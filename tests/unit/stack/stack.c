/*
 * What this proves: equal stacks have one number, whichever thread comes first; a number leads back
 * to its frames; a stack of this thread leads to its callers; rules of tables find the frames that
 * libc's backtrace() finds, whatever a function does to its stack; before the start, and for what
 * is no number, there is none; memory that is not there is refused, not touched.
 */
#include <alloca.h>
#include <execinfo.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "os/os.h"
#include "pages/span.h"
#include "process/process.h"
#include "stack/stack.h"

#define THREADS 4
#define STACKS  3000                    /* several in a bucket, several blocks */

static void test_before_the_start(void **unused)
{
        uintptr_t frames[4] = { 1, 2, 3, 4 };

        (void)unused;
        assert_int_equal(stook_stack_here(0), 0);
        assert_int_equal(stook_stack_number(frames, 4), 0);
        assert_int_equal(stook_stack_frames(1, frames, 4), 0);
        assert_int_equal(stook_stack_bytes(), 0);
        assert_true(stook_pages_start());
        assert_true(stook_stack_start());
        assert_true(stook_stack_start());
}

static void make(uintptr_t *frames, unsigned *count, unsigned i)
{
        *count = 1 + i % STOOK_STACK_FRAMES_MOST;
        for (unsigned f = 0; f < *count; f++)
                frames[f] = 0x1000 * (uintptr_t)i + f + 1;
}

static void test_numbers(void **unused)
{
        uintptr_t frames[STOOK_STACK_FRAMES_MOST], seen[STOOK_STACK_FRAMES_MOST];
        static uint32_t numbers[STACKS];
        unsigned count;

        (void)unused;
        for (unsigned i = 0; i < STACKS; i++) {
                make(frames, &count, i);
                numbers[i] = stook_stack_number(frames, count);
                assert_int_not_equal(numbers[i], 0);
        }
        for (unsigned i = 0; i < STACKS; i++) {
                make(frames, &count, i);
                assert_int_equal(stook_stack_number(frames, count), numbers[i]);
                assert_int_equal(stook_stack_frames(numbers[i], seen, STOOK_STACK_FRAMES_MOST),
                                 count);
                assert_memory_equal(seen, frames, count * sizeof(*frames));
                assert_int_equal(stook_stack_frames(numbers[i], seen, 1), 1);
        }
        assert_int_equal(stook_stack_number(frames, 0), 0);
        assert_int_equal(stook_stack_number(frames, STOOK_STACK_FRAMES_MOST + 1), 0);
        assert_int_equal(stook_stack_frames(0, seen, 1), 0);
        assert_int_equal(stook_stack_frames(UINT32_MAX, seen, 1), 0);
        assert_true(stook_stack_bytes() > 0);
}

static uint32_t by_thread[THREADS][STACKS];

static void *number_all(void *row)
{
        uintptr_t frames[STOOK_STACK_FRAMES_MOST];
        uint32_t *numbers = row;
        unsigned count;

        for (unsigned i = 0; i < STACKS; i++) {
                make(frames, &count, i + 100 * STACKS);
                numbers[i] = stook_stack_number(frames, count);
        }
        return NULL;
}

static void test_threads(void **unused)
{
        uintptr_t frames[STOOK_STACK_FRAMES_MOST], seen[STOOK_STACK_FRAMES_MOST];
        pthread_t threads[THREADS];
        unsigned count;

        (void)unused;
        for (unsigned t = 0; t < THREADS; t++)
                assert_int_equal(pthread_create(&threads[t], NULL, number_all, by_thread[t]), 0);
        for (unsigned t = 0; t < THREADS; t++)
                pthread_join(threads[t], NULL);
        for (unsigned i = 0; i < STACKS; i++) {
                make(frames, &count, i + 100 * STACKS);
                for (unsigned t = 0; t < THREADS; t++) {
                        assert_int_equal(stook_stack_frames(by_thread[t][i], seen, count), count);
                        assert_memory_equal(seen, frames, count * sizeof(*frames));
                }
        }
}

static STOOK_NOINLINE uint32_t inner(unsigned skip)
{
        uint32_t number = stook_stack_here(skip);

        __asm__ volatile("" : "+r"(number));    /* no tail call */
        return number;
}

static STOOK_NOINLINE uint32_t outer(unsigned skip)
{
        uint32_t number = inner(skip);

        __asm__ volatile("" : "+r"(number));
        return number;
}

/* Between the begin of a function and the next 400 bytes: its code, whatever the compiler. */
static void assert_within(uintptr_t address, uintptr_t function)
{
        assert_in_range(address, function, function + 400);
}

static void test_this_thread(void **unused)
{
        uintptr_t frames[STOOK_STACK_FRAMES_MOST];
        uint32_t numbers[2];
        unsigned count, at;

        (void)unused;
        for (volatile unsigned i = 0; i < 2; i++)       /* one call site */
                numbers[i] = outer(0);
        if (!numbers[0])
                skip();                 /* no backtrace(), and no frame pointers */
        assert_int_equal(numbers[0], numbers[1]);
        count = stook_stack_frames(numbers[0], frames, STOOK_STACK_FRAMES_MOST);
        assert_true(count >= 4);
        /* A sanitizer stands between backtrace() and its caller, with a frame of its own. */
        at = frames[0] - (uintptr_t)inner <= 400 ? 0 : 1;
        assert_within(frames[at], (uintptr_t)inner);
        assert_within(frames[at + 1], (uintptr_t)outer);
        assert_true(stook_stack_frames(outer(1), frames, STOOK_STACK_FRAMES_MOST) >= 3);
        assert_within(frames[at], (uintptr_t)outer);
        assert_int_equal(stook_stack_here(1000), 0);
}

#ifdef STOOK_STACK_HAS_RULES

#define DEPTH 12

static volatile int sink;
static unsigned compared;

/* Twice: rules that were made, and rules that were kept. */
static STOOK_NOINLINE void compare_with_backtrace(void)
{
        uintptr_t theirs[STOOK_STACK_FRAMES_MOST], ours[STOOK_STACK_FRAMES_MOST];
        unsigned there = (unsigned)backtrace((void **)theirs, STOOK_STACK_FRAMES_MOST) - 1;

        for (unsigned i = 0; i < 2; i++) {
                assert_int_equal(stook_stack_by_rules(__builtin_frame_address(0), ours,
                                                      STOOK_STACK_FRAMES_MOST), there);
                assert_memory_equal(ours, theirs + 1, there * sizeof(*ours));
        }
        assert_int_equal(stook_stack_by_rules(__builtin_frame_address(0), ours, 2), 2);
        compared++;
}

#define FUNCTION(name, stack) \
        static STOOK_NOINLINE void name(int depth) \
        { \
                stack; \
                sink = bytes[0] = (char)depth; \
                if (depth) \
                        name(depth - 1); \
                else \
                        compare_with_backtrace(); \
                sink = bytes[0]; \
        }
FUNCTION(with_an_array, volatile char bytes[40])
FUNCTION(with_large_frames, volatile char bytes[100000])
FUNCTION(with_alloca, volatile char *bytes = alloca((size_t)depth * 24 + 8))
FUNCTION(with_alignment, volatile char bytes[64] __attribute__((aligned(64))))
FUNCTION(with_both, volatile char *bytes = alloca((size_t)depth * 24 + 8);
         volatile char more[64] __attribute__((aligned(64))); sink = more[0] = 1)

static int compare_in_libc(const void *a, const void *b)
{
        compare_with_backtrace();
        return *(const char *)a - *(const char *)b;
}

static void compare_in_handler(int number)
{
        (void)number;
        compare_with_backtrace();
}

static void *compare_in_thread(void *unused)
{
        with_an_array(1);
        return unused;
}

static void test_rules(void **unused)
{
        char letters[] = "stook";
        pthread_t thread;

        (void)unused;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
        skip();                         /* backtrace() is the sanitizer's */
#endif
        with_an_array(DEPTH);
        with_large_frames(DEPTH);
        with_alloca(DEPTH);
        with_alignment(DEPTH);
        with_both(DEPTH);
        qsort(letters, sizeof letters - 1, 1, compare_in_libc);
        signal(SIGUSR1, compare_in_handler);
        raise(SIGUSR1);
        assert_int_equal(pthread_create(&thread, NULL, compare_in_thread, NULL), 0);
        pthread_join(thread, NULL);
        assert_true(compared > 10);
}

static unsigned in_handler;

static void walk_in_handler(int number)
{
        uintptr_t frames[STOOK_STACK_FRAMES_MOST];

        (void)number;
        in_handler = stook_stack_by_rules(__builtin_frame_address(0), frames,
                                          STOOK_STACK_FRAMES_MOST);
}

/* What the handler's own stack interrupted is left out. */
static void test_an_alternate_stack(void **unused)
{
        static char stack[1 << 16];
        stack_t on = { .ss_sp = stack, .ss_size = sizeof stack }, off = { .ss_flags = SS_DISABLE };
        struct sigaction action = { .sa_handler = walk_in_handler, .sa_flags = SA_ONSTACK };

        (void)unused;
        assert_int_equal(sigaltstack(&on, NULL), 0);
        assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
        raise(SIGUSR1);
        assert_in_range(in_handler, 1, 4);      /* a sanitizer's handler calls ours */
        assert_int_equal(sigaltstack(&off, NULL), 0);
}

#endif

static void test_memory_that_is_not_there(void **unused)
{
        size_t page = stook_os_page_bytes();
        char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                           0);
        char byte[2] = { 0 };

        (void)unused;
        assert_ptr_not_equal(pages, MAP_FAILED);
        munmap(pages + page, page);
        pages[page - 1] = 7;
        if (!stook_process_read_memory(byte, pages + page - 1, 1))
                skip();                 /* the system refuses */
        assert_int_equal(byte[0], 7);
        assert_false(stook_process_read_memory(byte, pages + page - 1, 2));
        assert_false(stook_process_read_memory(byte, NULL, 1));
        munmap(pages, page);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_before_the_start),
                cmocka_unit_test(test_numbers),
                cmocka_unit_test(test_threads),
                cmocka_unit_test(test_this_thread),
#ifdef STOOK_STACK_HAS_RULES
                cmocka_unit_test(test_rules),
                cmocka_unit_test(test_an_alternate_stack),
#endif
                cmocka_unit_test(test_memory_that_is_not_there),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
