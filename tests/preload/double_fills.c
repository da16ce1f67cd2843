/*
 * Proves: a second free right after the first is reported however full the sheaves are: with no
 * object in them, with main or both exactly full, and one more or less. A process for each fill.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define FILLS 600

static void *volatile objects[FILLS + 1];

static void free_twice_at(size_t bytes, int fill)
{
        for (int i = 0; i <= fill; i++)
                objects[i] = malloc(bytes);
        for (int i = 0; i < fill; i++)
                free(objects[i]);
        free(objects[fill]);
        free(objects[fill]);
}

static void a_double_free_is_found_at_each_fill(void **state)
{
        static const size_t sizes[] = { 16, 200, 3000 };

        (void)state;
        for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
                for (int fill = 0; fill < FILLS; fill += 1 + (fill > 270)) {
                        int status;
                        pid_t child = fork();

                        if (!child) {
                                close(STDERR_FILENO);
                                free_twice_at(sizes[i], fill);
                                _exit(0);
                        }
                        assert_int_equal(waitpid(child, &status, 0), child);
                        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT)
                                fail_msg("%zu bytes, %d in the sheaves: status %d", sizes[i], fill,
                                         status);
                }
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(a_double_free_is_found_at_each_fill) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
