/*
 * Proves: where the system refuses memory, address space or mappings, realloc returns NULL and the
 * object is as it was; nothing else happens to it, or to what other threads map. So it is under
 * RLIMIT_DATA, under RLIMIT_AS and with vm.max_map_count used up, in one thread and in several, and
 * with limits that were there before the start. When a limit is lifted there is memory again.
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
