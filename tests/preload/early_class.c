/*
 * Proves that debug modes hold for all of malloc, also where another library allocates before the
 * drop-in's constructor has run: its allocation starts the library. The program runs itself again
 * with that library (early_library.c) behind the drop-in.
 */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>
#include "early_library.h"

static void test_early_objects_are_debugged(void **state)
{
        (void)state;
        assert_int_equal(malloc_usable_size(early.plain), EARLY_BYTES);
        assert_int_equal(malloc_usable_size(early.aligned), EARLY_BYTES);
}

static void test_every_class_is_debugged(void **state)
{
        (void)state;
        for (size_t size = 0; size <= 128 << 10; size += size / 9 + 1) {
                void *object = malloc(size);

                assert_int_equal(malloc_usable_size(object), size);
                free(object);
        }
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_early_objects_are_debugged),
                cmocka_unit_test(test_every_class_is_debugged),
        };
        char preload[8192];

        if (argc > 1) {
                snprintf(preload, sizeof preload, "%s/libstook-malloc.so:%s", getenv("STOOK_BUILD"),
                         argv[1]);
                setenv("LD_PRELOAD", preload, 1);
                setenv("STOOK_DEBUG", "FZPU", 1);
                execl("/proc/self/exe", argv[0], (char *)NULL);
                return 1;
        }
        return cmocka_run_group_tests(tests, NULL, NULL);
}
