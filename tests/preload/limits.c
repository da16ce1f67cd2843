/*
 * Proves: where the system refuses memory, address space or mappings, realloc returns NULL and the
 * object is as it was; nothing else happens to it, or to what other threads map. So it is under
 * RLIMIT_DATA, under RLIMIT_AS and with vm.max_map_count used up, in one thread and in several, and
 * with limits that were there before the start. When a limit is lifted there is memory again.
 * A limit of address space that comes after the start binds, whether it lies above all that is
 * mapped or below: what was reserved ahead of use gives no memory past it, and leaves room for the
 * stacks of threads. The limit of a child of vfork is none of its parent.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <stdio.h>
#include <unistd.h>
#include <cmocka.h>
#include "unit/os/child.h"

#define MIB     ((size_t)1 << 20)
#define PAGE    4096
#define OBJECTS 8
#define STEPS   150
#define THREADS 4
#define LIMIT   (96 * MIB)
#define CRUMBS  1200000                 /* more mappings than a process may have */

static unsigned granted, refused;       /* atomic */

/* One byte of each page tells whose it is. */
static void mark(unsigned char *object, size_t bytes, unsigned char value)
{
        for (size_t at = 0; at < bytes; at += PAGE)
                object[at] = value;
}

static void check(const unsigned char *object, size_t bytes, unsigned char value)
{
        for (size_t at = 0; at < bytes; at += PAGE)
                CHECK(object[at] == value);
}

/* A mapping that comes and goes: it may land where a refused call left a hole. */
static void map_and_unmap(size_t bytes)
{
        unsigned char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (at == MAP_FAILED)
                return;
        CHECK(!at[0] && !at[bytes - 1]);
        at[0] = at[bytes - 1] = 0x77;
        CHECK(!munmap(at, bytes));
}

/*
 * gcc warns of the object that a refused realloc leaves, if it knows the call. clang leaves out an
 * object that nothing is done with, and takes it for granted.
 */
static void *(*volatile resize)(void *, size_t) = realloc;

/* Objects of some MiB grow at random. */
static void grow(unsigned seed)
{
        unsigned char *object[OBJECTS] = { NULL }, value[OBJECTS] = { 0 };
        size_t bytes[OBJECTS] = { 0 };

        for (unsigned step = 0; step < STEPS; step++) {
                unsigned i = (unsigned)rand_r(&seed) % OBJECTS;
                size_t more = bytes[i] + 1 + (size_t)rand_r(&seed) % (3 * MIB);
                unsigned char *to = resize(object[i], more);

                __atomic_fetch_add(to ? &granted : &refused, 1, __ATOMIC_RELAXED);
                check(to ? to : object[i], bytes[i], value[i]);
                if (to) {
                        object[i] = to;
                        bytes[i] = more;
                        value[i] = (unsigned char)(step | 1);
                        mark(to, more, value[i]);
                } else {
                        free(object[i]);
                        object[i] = NULL;
                        bytes[i] = 0;
                }
                map_and_unmap(bytes[i] / 2 + PAGE);
        }
        for (unsigned i = 0; i < OBJECTS; i++) {
                check(object[i], bytes[i], value[i]);
                free(object[i]);
        }
}

static pthread_barrier_t go;

static void *grow_when_told(void *seed)
{
        pthread_barrier_wait(&go);
        grow((unsigned)(uintptr_t)seed);
        return NULL;
}

static void grow_in_threads(unsigned threads, void (*limit)(void))
{
        pthread_t thread[THREADS];

        pthread_barrier_init(&go, NULL, threads + 1);
        for (unsigned i = 0; i < threads; i++)
                CHECK(!pthread_create(&thread[i], NULL, grow_when_told, (void *)(i + 7ul)));
        limit();
        pthread_barrier_wait(&go);
        grow(3);
        for (unsigned i = 0; i < threads; i++)
                CHECK(!pthread_join(thread[i], NULL));
}

static void set(int resource, rlim_t soft)
{
        struct rlimit limit;

        CHECK(!getrlimit(resource, &limit));
        limit.rlim_cur = soft < limit.rlim_max ? soft : limit.rlim_max;
        CHECK(!setrlimit(resource, &limit));
}

static void limit_data(void)
{
        set(RLIMIT_DATA, LIMIT);
}

static void limit_space(void)
{
        set(RLIMIT_AS, LIMIT);
}

static void limit_nothing(void)
{
}

static unsigned char *crumbs;

static void use_mappings_up(void)
{
        crumbs = mmap(NULL, (size_t)CRUMBS * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        NEEDS(crumbs != MAP_FAILED);
        for (size_t i = 0; i < CRUMBS; i += 2)
                if (mprotect(crumbs + i * PAGE, PAGE, PROT_READ))
                        return;
        NEEDS(!"a bound of mappings");
}

static void check_there_is_memory_again(void)
{
        unsigned char *object = resize(NULL, 64 * MIB);

        set(RLIMIT_DATA, RLIM_INFINITY);
        set(RLIMIT_AS, RLIM_INFINITY);
        if (crumbs)
                CHECK(!munmap(crumbs, (size_t)CRUMBS * PAGE));
        free(object);
        object = resize(NULL, 64 * MIB);
        CHECK(object);
        mark(object, 64 * MIB, 1);
        object = resize(object, 128 * MIB);
        CHECK(object);
        check(object, 64 * MIB, 1);
        free(object);
        refused = 0;
        grow(5);
        CHECK(!refused);
}

static void data(void)
{
        grow_in_threads(0, limit_data);
        CHECK(granted && refused);
        check_there_is_memory_again();
}

static void data_in_threads(void)
{
        grow_in_threads(THREADS, limit_data);
        CHECK(granted && refused);
        check_there_is_memory_again();
}

static void space(void)
{
        grow_in_threads(0, limit_space);
        CHECK(refused);
        check_there_is_memory_again();
}

static void space_in_threads(void)
{
        grow_in_threads(THREADS, limit_space);
        CHECK(refused);
        check_there_is_memory_again();
}

#ifdef __GLIBC__
static size_t mapped(void)
{
        FILE *file = fopen("/proc/self/statm", "r");
        size_t pages = 0;

        NEEDS(file && fscanf(file, "%zu", &pages) == 1);
        fclose(file);
        return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Bytes of objects of @size that are to be had, up to @most. They stay. */
static size_t take_all(size_t size, size_t most)
{
        size_t got = 0;
        unsigned char *object;

        while (got < most && (object = resize(NULL, size))) {
                mark(object, size, 1);
                got += size;
        }
        return got;
}

static void *do_nothing(void *result)
{
        return result;
}

static void start_a_thread(void)
{
        pthread_t thread;

        CHECK(!pthread_create(&thread, NULL, do_nothing, NULL));
        CHECK(!pthread_join(thread, NULL));
}

static void limit_above(size_t size)
{
        size_t got;

        set(RLIMIT_AS, mapped() + 64 * MIB);
        start_a_thread();
        got = take_all(size, 1024 * MIB);
        CHECK(got >= 24 * MIB && got <= 96 * MIB);
        check_there_is_memory_again();
}

static void space_above(void)
{
        limit_above(100000);
}

static void space_above_small(void)
{
        limit_above(64);
}

static void space_above_large(void)
{
        limit_above(3 * MIB);
}

static void limit_below(size_t size)
{
        size_t limit = 768 * MIB, got;

        set(RLIMIT_AS, limit);
        if (mapped() >= limit / 2)
                NEEDS(!"one node, and few CPUs");
        start_a_thread();
        got = take_all(size, 4 * limit);
        CHECK(got >= limit / 4 && got <= limit);
        check_there_is_memory_again();
        set(RLIMIT_AS, limit / 2);
        grow(9);
        check_there_is_memory_again();
}

static void space_below(void)
{
        limit_below(100000);
}

static void space_below_small(void)
{
        limit_below(64);
}

static void space_below_large(void)
{
        limit_below(40 * MIB);
}

/* By the call that reads the old limit, too. */
static void space_by_prlimit(void)
{
        struct rlimit before, limit;

        CHECK(!getrlimit(RLIMIT_AS, &before));
        limit = before;
        limit.rlim_cur = mapped() + 64 * MIB;
        CHECK(!prlimit(getpid(), RLIMIT_AS, &limit, &limit));
        CHECK(limit.rlim_cur == before.rlim_cur && limit.rlim_max == before.rlim_max);
        CHECK(take_all(100000, 1024 * MIB) <= 96 * MIB);
        CHECK(setrlimit(RLIMIT_AS, &(struct rlimit){ 2, 1 }) == -1);
        check_there_is_memory_again();
}

/* Limits come and go while threads grow objects. */
static void limit_now_and_then(void)
{
        pthread_t thread[THREADS];
        unsigned started = 0;

        pthread_barrier_init(&go, NULL, THREADS + 1);
        for (; started < THREADS; started++)
                CHECK(!pthread_create(&thread[started], NULL, grow_when_told,
                                      (void *)(started + 7ul)));
        pthread_barrier_wait(&go);
        for (unsigned i = 0; i < 200; i++) {
                set(RLIMIT_AS, i % 2 ? RLIM_INFINITY : i % 4 ? mapped() + 8 * MIB : LIMIT);
                usleep(100);
        }
        for (unsigned i = 0; i < THREADS; i++)
                CHECK(!pthread_join(thread[i], NULL));
        check_there_is_memory_again();
}

static void limit_of_a_vfork_child(void)
{
        pid_t child = vfork();
        int status;

        if (!child) {
                setrlimit(RLIMIT_AS, &(struct rlimit){ LIMIT, LIMIT });
                _exit(0);
        }
        CHECK(child > 0 && waitpid(child, &status, 0) == child && !status);
        CHECK(take_all(100000, 256 * MIB) >= 256 * MIB);
}
#endif

static void mappings(void)
{
        grow_in_threads(0, use_mappings_up);
        check_there_is_memory_again();
}

static void mappings_in_threads(void)
{
        grow_in_threads(THREADS, use_mappings_up);
        check_there_is_memory_again();
}

/* The limit is there before the process starts: another image of it, which grows. */
static void start_again(void (*limit)(void), const char *threads)
{
        limit();
        execl("/proc/self/exe", "limits", threads, NULL);
        CHECK(!"another image");
}

static void start_with_little_data(void)
{
        start_again(limit_data, "4");
}

static void start_with_little_space(void)
{
        start_again(limit_space, "0");
}

/*
 * More than the machine has. What is mapped from here on, in as much address space as was asked
 * for, is the program's, and nothing that malloc has is there.
 */
static void far_too_much(void)
{
        static unsigned char *at[4096];
        size_t bytes = 64 * MIB, n;
        void *object;

        while ((object = resize(NULL, bytes))) {
                free(object);
                bytes *= 2;
        }
        n = bytes / (64 * MIB);
        NEEDS(n <= sizeof(at) / sizeof(*at));
        for (size_t i = 0; i < n; i++) {
                at[i] = mmap(NULL, 64 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                             -1, 0);
                CHECK(at[i] != MAP_FAILED);
                at[i][0] = at[i][64 * MIB - 1] = 0x77;
        }
        for (size_t i = 0; i < n; i++)
                CHECK(resize(NULL, 64 * MIB));
        for (size_t i = 0; i < n; i++)
                CHECK(at[i][0] == 0x77 && at[i][64 * MIB - 1] == 0x77);
}

#define TEST(step) \
        static void test_##step(void **state) \
        { \
                (void)state; \
                assert_child_fine(step); \
        }

TEST(data)
TEST(data_in_threads)
TEST(space)
TEST(space_in_threads)
#ifdef __GLIBC__
TEST(space_above)
TEST(space_above_small)
TEST(space_above_large)
TEST(space_below)
TEST(space_below_small)
TEST(space_below_large)
TEST(space_by_prlimit)
TEST(limit_now_and_then)
TEST(limit_of_a_vfork_child)
#endif
TEST(mappings)
TEST(mappings_in_threads)
TEST(start_with_little_data)
TEST(start_with_little_space)
TEST(far_too_much)

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_data),
                cmocka_unit_test(test_data_in_threads),
                cmocka_unit_test(test_space),
                cmocka_unit_test(test_space_in_threads),
#ifdef __GLIBC__
                cmocka_unit_test(test_space_above),
                cmocka_unit_test(test_space_above_small),
                cmocka_unit_test(test_space_above_large),
                cmocka_unit_test(test_space_below),
                cmocka_unit_test(test_space_below_small),
                cmocka_unit_test(test_space_below_large),
                cmocka_unit_test(test_space_by_prlimit),
                cmocka_unit_test(test_limit_now_and_then),
                cmocka_unit_test(test_limit_of_a_vfork_child),
#endif
                cmocka_unit_test(test_mappings),
                cmocka_unit_test(test_mappings_in_threads),
                cmocka_unit_test(test_start_with_little_data),
                cmocka_unit_test(test_start_with_little_space),
                cmocka_unit_test(test_far_too_much),
        };

        if (argc > 1) {
                grow_in_threads((unsigned)atoi(argv[1]), limit_nothing);
                return !granted || !refused;
        }
        return cmocka_run_group_tests(tests, NULL, NULL);
}
