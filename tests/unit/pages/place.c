/*
 * What this proves, by the system's own answer: on several nodes address space gets the policy of
 * its node. It gets none where the task has a policy, unless the layers above follow that
 * (STOOK_STRICT_NUMA).
 */
#include "pages_env.h"
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include "base/inject.h"
#include "pages/source.h"

/* <linux/mempolicy.h> */
enum { DEFAULT, PREFERRED, BIND };
#define F_ADDR 2l

static char folder[] = "/tmp/stook-place-XXXXXX";

static void put(const char *name, const char *text)
{
        char path[64];
        FILE *f;

        snprintf(path, sizeof(path), "%s/%s", folder, name);
        f = fopen(path, "w");
        assert_non_null(f);
        assert_true(fputs(text, f) >= 0 && !fclose(f));
}

/* Two nodes with memory, as the files of the system have them. */
static int start(void **state)
{
        char path[64];

        (void)state;
        assert_non_null(mkdtemp(folder));
        for (int node = 0; node < 2; node++) {
                snprintf(path, sizeof(path), "%s/node%d", folder, node);
                assert_int_equal(mkdir(path, 0700), 0);
        }
        put("online", "0-1\n");
        put("has_memory", "0-1\n");
        put("node0/cpulist", "0\n");
        put("node1/cpulist", "1\n");
        unsetenv("STOOK_TOPOLOGY");
        stook_inject.node_folder = folder;
        stook_os_topology_detect();
        assert_int_equal(stook_os_node_count(), 2);
        return 0;
}

static int stop(void **state)
{
        char command[64];

        (void)state;
        snprintf(command, sizeof(command), "rm -r %s", folder);
        return system(command);
}

static bool set_policy(long mode)
{
        unsigned long node_0 = 1;

        return !syscall(SYS_set_mempolicy, mode, mode == DEFAULT ? NULL : &node_0, 64l);
}

/* The policy of address space of node 0, if the library starts under @mode. DEFAULT: none. */
static int placed(long mode, bool over_policy)
{
        int found = -1;
        void *at = mmap(NULL, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        assert_true(at != MAP_FAILED);
        assert_true(set_policy(mode));
        stook_pages_place_over_policy(over_policy);
        stook_range_prefer_start();
        stook_range_prefer_node((uintptr_t)at, 1 << 20, 0);
        assert_int_equal(syscall(SYS_get_mempolicy, &found, NULL, 0l, at, F_ADDR), 0);
        assert_true(set_policy(DEFAULT));
        assert_int_equal(munmap(at, 1 << 20), 0);
        return found;
}

static void a_policy_of_the_task_stays(void **state)
{
        (void)state;
        assert_int_equal(placed(DEFAULT, false), PREFERRED);
        assert_int_equal(placed(BIND, false), DEFAULT);
}

static void it_does_not_where_it_is_followed(void **state)
{
        (void)state;
        assert_int_equal(placed(DEFAULT, true), PREFERRED);
        assert_int_equal(placed(BIND, true), PREFERRED);
        assert_int_equal(placed(BIND, false), DEFAULT);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_policy_of_the_task_stays),
                cmocka_unit_test(it_does_not_where_it_is_followed),
        };

        if (!set_policy(BIND) || !set_policy(DEFAULT)) {
                puts("the system has no memory policies");
                return 77;
        }
        return cmocka_run_group_tests(tests, start, stop);
}
