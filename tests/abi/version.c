/*
 * Proves that the shared library is found by its own name, and that header and library tell the
 * same release.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stook/control.h>
#include <stook/version.h>

static void test_library_and_header_agree(void **state)
{
        (void)state;
        assert_string_equal(stook_version(), STOOK_VERSION);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_library_and_header_agree),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
