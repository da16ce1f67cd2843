/*
 * Proves that the drop-in serves calls before any constructor has run. This program allocates in
 * its .preinit_array, the earliest code of a process, and uses those objects later. dlsym
 * allocates, too, and works from there.
 */
#include <dlfcn.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static char *early[100];
static void *early_symbol, *early_missing;

static void first_of_all(void)
{
        for (int i = 0; i < 100; i++) {
                early[i] = i % 3 ? malloc((size_t)i * 500) : calloc(1, (size_t)i * 2000);
                if (early[i])
                        memset(early[i], i, (size_t)i * 500);
        }
        free(early[1]);
        early[1] = NULL;
        early[2] = realloc(early[2], 100000);
        early_symbol = dlsym(RTLD_DEFAULT, "malloc");
        early_missing = dlsym(RTLD_DEFAULT, "no such name");    /* allocates a message */
}

__attribute__((section(".preinit_array"), used)) static void (*run_first)(void) = first_of_all;

static void test_early_objects_live(void **state)
{
        (void)state;
#ifndef __GLIBC__
        if (!early[0])
                skip();                                         /* musl runs no .preinit_array */
#endif
        for (int i = 0; i < 100; i++) {
                if (i == 1)
                        continue;
                assert_non_null(early[i]);
                for (size_t k = 0; k < (size_t)i * 500; k++)
                        assert_int_equal((unsigned char)early[i][k], i);
                free(early[i]);
        }
        assert_non_null(early_symbol);
        assert_null(early_missing);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_early_objects_live),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
