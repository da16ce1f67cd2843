/*
 * Proves that the drop-in can come late. A running program with threads opens it by dlopen and uses
 * it in old and new threads, beside the allocator it has, then calls dlclose. The process lives on,
 * and so do its objects.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define THREADS 4

static void *(*late_malloc)(size_t);
static void  (*late_free)(void *);
static void *(*late_realloc)(void *, size_t);
static size_t (*late_usable)(void *);
static pthread_barrier_t opened;
static void *handle;

static void *work(void *argument)
{
        unsigned char *held[50] = {0};
        uintptr_t faults = 0, seed = (uintptr_t)argument;

        pthread_barrier_wait(&opened);                  /* threads made before, and after */
        for (unsigned step = 0; step < 100000; step++) {
                unsigned i = step * 7 % 50;
                size_t   size = (seed = seed * 1103515245 + 12345) % 3000 + 1;

                if (held[i] && held[i][0] != i)
                        faults++;
                late_free(held[i]);
                held[i] = late_malloc(size);
                memset(held[i], (int)i, size);
        }
        for (unsigned i = 0; i < 50; i++)
                late_free(held[i]);
        return (void *)faults;
}

static void test_dlopen_use_dlclose(void **state)
{
        char path[4096];
        pthread_t threads[2 * THREADS];

        (void)state;
        assert_non_null(getenv("STOOK_BUILD"));
        snprintf(path, sizeof(path), "%s/libstook-malloc.so", getenv("STOOK_BUILD"));
        pthread_barrier_init(&opened, NULL, 2 * THREADS);
        for (uintptr_t i = 0; i < THREADS; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)i), 0);

        handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
#ifndef __GLIBC__
        if (!handle)
                skip();         /* musl has no room for initial-exec TLS of what comes late */
#endif
        if (!handle)
                fail_msg("%s", dlerror());
        *(void **)&late_malloc = dlsym(handle, "malloc");
        *(void **)&late_free = dlsym(handle, "free");
        *(void **)&late_realloc = dlsym(handle, "realloc");
        *(void **)&late_usable = dlsym(handle, "malloc_usable_size");
        assert_ptr_not_equal(late_malloc, malloc);

        for (uintptr_t i = THREADS; i < 2 * THREADS; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)i), 0);

        /* Objects of the allocator that was there first are passed on to it. */
        for (size_t size = 1; size < 500000; size = size * 3 + 1) {
                char *object = malloc(size);

                memset(object, 3, size);
                assert_true(late_usable(object) >= size);
                object = late_realloc(object, size + 100);
                assert_int_equal(object[size - 1], 3);
                late_free(object);
        }
        for (int i = 0; i < 2 * THREADS; i++) {
                void *faults;

                assert_int_equal(pthread_join(threads[i], &faults), 0);
                assert_null(faults);
        }
        char *kept = late_malloc(100);

        strcpy(kept, "still here");
        assert_int_equal(dlclose(handle), 0);
        for (volatile int i = 0; i < 200000000; i++)    /* long enough to be preempted in it */
                ;
        assert_string_equal(kept, "still here");
        late_free(kept);                                /* nodelete: its code is still there, too */
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_dlopen_use_dlclose),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
