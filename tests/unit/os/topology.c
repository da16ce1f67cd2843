/*
 * What this proves: nodes are read from /sys as the kernel writes it (gaps in the numbers, nodes
 * without memory or without CPUs, distances), anything odd counts as one node; STOOK_TOPOLOGY makes
 * up what its page says, and nonsense in it is refused.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "child.h"
#include "base/inject.h"
#include "os/os.h"

static char folder[] = "/tmp/stook-topology-XXXXXX";

static void put(const char *name, const char *text)
{
        char path[256];
        FILE *f;

        snprintf(path, sizeof(path), "%s/%s", folder, name);
        if (strchr(name, '/')) {
                *strrchr(path, '/') = 0;
                mkdir(path, 0700);
                path[strlen(path)] = '/';
        }
        f = fopen(path, "w");
        CHECK(f && fputs(text, f) >= 0 && !fclose(f));
}

static void remove_folder(void)
{
        char command[300];

        snprintf(command, sizeof(command), "rm -rf %s", folder);
        CHECK(!system(command));
}

static void make_folder(void)
{
        CHECK(mkdtemp(folder));
        stook_inject.node_folder = folder;
        unsetenv("STOOK_TOPOLOGY");
}

static void is_flat(void)
{
        CHECK(stook_os_node_count() == 1);
        CHECK(stook_os_node_exists(0) && !stook_os_node_exists(1));
        CHECK(stook_os_node_has_memory(0) && stook_os_node_home(0) == 0);
        CHECK(stook_os_node_of_cpu(0) == 0 && stook_os_node_of_cpu(5000) == 0);
        CHECK(!stook_os_topology_is_fake());
}

/* Nodes 0, 2 and 3; 2 has no memory and lies near 3; CPUs alternate. */
static void machine(void)
{
        make_folder();
        put("online", "0,2-3\n");
        put("has_memory", "0,3\n");
        put("node0/cpulist", "0-1,8-9\n");
        put("node2/cpulist", "2-3\n");
        put("node3/cpulist", "\n");
        put("node2/distance", "31 10 20\n");
        errno = 7;
        stook_os_topology_detect();
        CHECK(errno == 7);
        remove_folder();
        CHECK(stook_os_node_count() == 4 && !stook_os_topology_is_fake());
        CHECK(stook_os_node_exists(0) && !stook_os_node_exists(1) && stook_os_node_exists(2) &&
              stook_os_node_exists(3));
        CHECK(!stook_os_node_exists(4) && !stook_os_node_exists(64) && !stook_os_node_exists(~0u));
        CHECK(stook_os_node_has_memory(0) && !stook_os_node_has_memory(2) &&
              stook_os_node_has_memory(3));
        CHECK(stook_os_node_home(0) == 0 && stook_os_node_home(2) == 3 &&
              stook_os_node_home(3) == 3);
        CHECK(stook_os_node_of_cpu(0) == 0 && stook_os_node_of_cpu(9) == 0 &&
              stook_os_node_of_cpu(3) == 2);
        CHECK(stook_os_node_of_cpu(4) == 0);    /* in no node */
        CHECK(stook_os_topology_slots() == 0);
}

static void one_node(void)
{
        make_folder();
        put("online", "0\n");
        put("has_memory", "0\n");
        put("node0/cpulist", "0-63\n");
        stook_os_topology_detect();
        remove_folder();
        is_flat();
}

static void no_folder(void)
{
        unsetenv("STOOK_TOPOLOGY");
        stook_inject.node_folder = "/nowhere";
        stook_os_topology_detect();
        is_flat();
}

static void high_numbers(void)
{
        make_folder();
        put("online", "0,252-255\n");
        put("has_memory", "0,252-255\n");
        stook_os_topology_detect();
        remove_folder();
        is_flat();
}

static void no_memory_anywhere(void)
{
        make_folder();
        put("online", "0-1\n");
        put("has_memory", "\n");
        stook_os_topology_detect();
        remove_folder();
        is_flat();
}

static void flat(void)
{
        make_folder();
        put("online", "0-1\n");
        put("has_memory", "0-1\n");
        setenv("STOOK_TOPOLOGY", "flat", 1);
        stook_os_topology_detect();
        remove_folder();
        is_flat();
}

static void made_up(void)
{
        setenv("STOOK_TOPOLOGY", "nodes=8:memory=0,5-6:slots=64", 1);
        stook_os_topology_detect();
        CHECK(stook_os_node_count() == 8 && stook_os_topology_is_fake());
        for (unsigned i = 0; i < 64; i++) {
                static const unsigned home[8] = { 0, 0, 0, 5, 5, 5, 6, 6 };

                CHECK(stook_os_node_of_cpu(i) == i % 8);
                CHECK(stook_os_node_exists(i) == (i < 8));
                CHECK(stook_os_node_has_memory(i) == (i == 0 || i == 5 || i == 6));
                if (i < 8)
                        CHECK(stook_os_node_home(i) == home[i]);
        }
        CHECK(stook_os_topology_slots() == 64 && stook_os_possible_cpus() >= 64);
}

static void as_many_as_there_can_be(void)
{
        setenv("STOOK_TOPOLOGY", "nodes=64", 1);
        stook_os_topology_detect();
        CHECK(stook_os_node_count() == 64 && stook_os_node_exists(63) && !stook_os_node_exists(64));
        CHECK(stook_os_node_has_memory(63) && stook_os_node_home(63) == 63);
}

static void nonsense(void)
{
        static const char *const values[] = {
                "",
                "x",
                "nodes",
                "nodes=",
                "nodes=0",
                "nodes=65",
                "nodes=2x",
                "nodes=2:",
                "nodes=2:x=1",
                "nodes=2:memory=",
                "nodes=2:memory=2",
                "nodes=2:memory=0-64",
                "nodes=2:memory=1-0",
                "nodes=2:memory=0-",
                "nodes=2:memory=0 1",
                "nodes=2:slots=0",
                "nodes=2:slots=5000",
                "nodes=2:slots=",
                "memory=0",
                "nodes=-1",
                "nodes=99999999999999999999",
        };

        stook_inject.node_folder = "/nowhere";
        fclose(stderr);
        for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
                setenv("STOOK_TOPOLOGY", values[i], 1);
                stook_os_topology_detect();
                if (stook_os_node_count() != 1 || stook_os_topology_is_fake())
                        _exit((int)i + 2);
        }
        is_flat();
}

struct told {
        uint32_t ranges[8][2];
        unsigned n;
};

static void tell(uint32_t first, uint32_t last, void *data)
{
        struct told *t = data;

        assert_in_range(t->n, 0, 7);
        t->ranges[t->n][0] = first;
        t->ranges[t->n++][1] = last;
}

/* However the text is cut into pieces, the same ranges come out. */
static void lists_in_pieces(void **state)
{
        static const char text[] = "0-3,8,100-4294967295\n";

        (void)state;
        for (size_t cut = 0; cut < sizeof(text); cut++) {
                struct stook_number_list list = { 0 };
                struct told t = { .n = 0 };

                stook_number_list_read(&list, text, cut, tell, &t);
                stook_number_list_read(&list, text + cut,
                                       strlen(text) - (cut < strlen(text) ? cut : strlen(text)),
                                       tell, &t);
                assert_true(stook_number_list_end(&list, tell, &t));
                assert_int_equal(t.n, 3);
                assert_int_equal(t.ranges[0][1], 3);
                assert_int_equal(t.ranges[1][0], 8);
                assert_int_equal(t.ranges[1][1], 8);
                assert_int_equal(t.ranges[2][0], 100);
                assert_int_equal(t.ranges[2][1], UINT32_MAX);
        }
        struct stook_number_list list = { 0 };
        struct told t = { .n = 0 };

        stook_number_list_read(&list, "4294967296", 10, tell, &t);
        assert_false(stook_number_list_end(&list, tell, &t));
}

#define IN_CHILD(step)                                  \
        static void test_##step(void **state)           \
        {                                               \
                (void)state;                            \
                assert_child_fine(step);                \
        }

IN_CHILD(machine)
IN_CHILD(one_node)
IN_CHILD(no_folder)
IN_CHILD(high_numbers)
IN_CHILD(no_memory_anywhere)
IN_CHILD(flat)
IN_CHILD(made_up)
IN_CHILD(as_many_as_there_can_be)
IN_CHILD(nonsense)

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(lists_in_pieces),
                cmocka_unit_test(test_machine),
                cmocka_unit_test(test_one_node),
                cmocka_unit_test(test_no_folder),
                cmocka_unit_test(test_high_numbers),
                cmocka_unit_test(test_no_memory_anywhere),
                cmocka_unit_test(test_flat),
                cmocka_unit_test(test_made_up),
                cmocka_unit_test(test_as_many_as_there_can_be),
                cmocka_unit_test(test_nonsense),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
