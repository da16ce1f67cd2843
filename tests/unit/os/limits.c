/*
 * What this proves: limits and CPU counts are read right, from files of all shapes and from none:
 * in a mount namespace of their own the tests write /proc and /sys themselves.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>
#include <cmocka.h>

#include "child.h"
#include "os/os.h"

#define MIB ((uint64_t)1 << 20)

static bool write_to(const char *path, const char *format, unsigned number)
{
        int fd = open(path, O_WRONLY);
        bool written = fd >= 0 && dprintf(fd, format, number) > 0;

        close(fd);
        return written;
}

/* An ordinary user is root in a new name space. Without a number there, no user makes files. */
static bool be_root_apart(void)
{
        unsigned user = geteuid(), group = getegid();

        return !unshare(CLONE_NEWUSER | CLONE_NEWNS) &&
               write_to("/proc/self/setgroups", "deny", 0) &&
               write_to("/proc/self/uid_map", "0 %u 1", user) &&
               write_to("/proc/self/gid_map", "0 %u 1", group);
}

/* From here on /proc and /sys are empty folders. */
static void empty_proc_and_sys(void)
{
        NEEDS(!unshare(CLONE_NEWNS) || be_root_apart());
        NEEDS(!mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
        NEEDS(!mount("none", "/sys", "tmpfs", 0, NULL));
        NEEDS(!mount("none", "/proc", "tmpfs", 0, NULL));
}

static void put(const char *path, const char *text)
{
        char folder[256];
        int fd;

        for (const char *c = path + 1; (c = strchr(c, '/')); c++) {
                memcpy(folder, path, (size_t)(c - path));
                folder[c - path] = 0;
                CHECK(!mkdir(folder, 0755) || errno == EEXIST);
        }
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
        CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
        close(fd);
}

static uint64_t ram(void)
{
        struct sysinfo info;

        sysinfo(&info);
        return (uint64_t)info.totalram * info.mem_unit;
}

static void without_proc_and_sys(void)
{
        cpu_set_t set;

        empty_proc_and_sys();
        errno = 4711;
        CHECK(stook_os_memory_bytes() == ram());
        CHECK(!sched_getaffinity(0, sizeof(set), &set));
        CHECK(stook_os_possible_cpus() >= (unsigned)CPU_COUNT(&set));
        CPU_ZERO(&set);
        CPU_SET(0, &set);
        CHECK(!sched_setaffinity(0, sizeof(set), &set));
        CHECK(stook_os_possible_cpus() == 1);
        CHECK(errno == 4711);
}

static void cgroup_2(void)
{
        empty_proc_and_sys();
        put("/proc/self/cgroup", "0::/a/b\n");
        put("/sys/fs/cgroup/a/b/memory.max", "max\n");
        CHECK(stook_os_memory_bytes() == ram());
        put("/sys/fs/cgroup/a/b/memory.max", "2097152\n");
        CHECK(stook_os_memory_bytes() == 2 * MIB);
        /* A folder above it binds as well. */
        put("/sys/fs/cgroup/a/memory.max", "1048576\n");
        CHECK(stook_os_memory_bytes() == MIB);
        put("/sys/fs/cgroup/a/memory.max", "3145728\n");
        CHECK(stook_os_memory_bytes() == 2 * MIB);
        put("/sys/fs/cgroup/memory.max", "524288\n");
        CHECK(stook_os_memory_bytes() == MIB / 2);
        /* Above the mount there is nothing of ours. */
        put("/sys/fs/memory.max", "4096\n");
        put("/sys/memory.max", "4096\n");
        CHECK(stook_os_memory_bytes() == MIB / 2);
        put("/proc/self/cgroup", "0::/\n");
        CHECK(stook_os_memory_bytes() == MIB / 2);
        /* A path of the host: only the mount is to be seen. */
        put("/proc/self/cgroup", "0::/of/the/host\n");
        CHECK(stook_os_memory_bytes() == MIB / 2);
}

static void cgroup_1(void)
{
        static char controllers[8192];
        size_t n = 0;

        empty_proc_and_sys();
        put("/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "2097152\n");
        put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
        put("/proc/self/cgroup", "9:cpu:/x\n4:cpuset,memory,pids:/x\n0::/\n");
        CHECK(stook_os_memory_bytes() == 2 * MIB);
        put("/proc/self/cgroup", "9:cpu:/x\n4:memory:/x\n0::/\n");
        CHECK(stook_os_memory_bytes() == 2 * MIB);
        put("/proc/self/cgroup", "9:cpu:/x\n4:memory_of_else:/x\n0::/\n");
        CHECK(stook_os_memory_bytes() == ram());
        /* The file may be far longer than one read. */
        for (unsigned i = 0; i < 40; i++)
                n += (size_t)sprintf(controllers + n, "%u:name%u:/%0*u\n", i, i, 100, i);
        strcpy(controllers + n, "41:memory:/x\n");
        put("/proc/self/cgroup", controllers);
        CHECK(stook_os_memory_bytes() == 2 * MIB);
        put("/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "99999999999999999999999\n");
        CHECK(stook_os_memory_bytes() == ram());
}

static void cpus(void)
{
        empty_proc_and_sys();
        put("/sys/devices/system/cpu/possible", "0\n");
        CHECK(stook_os_possible_cpus() == 1);
        put("/sys/devices/system/cpu/possible", "0-223\n");
        CHECK(stook_os_possible_cpus() == 224);
        put("/sys/devices/system/cpu/possible", "0-3,8-11\n");
        CHECK(stook_os_possible_cpus() == 12);
        put("/sys/devices/system/cpu/possible", "0-99999999\n");
        CHECK(stook_os_possible_cpus() <= 8192);
        put("/sys/devices/system/cpu/possible", "\n");
        CHECK(stook_os_possible_cpus() >= 1);
}

static void set_limit(int resource, rlim_t bytes)
{
        struct rlimit limit;

        CHECK(!getrlimit(resource, &limit));
        limit.rlim_cur = bytes;
        if (limit.rlim_max < bytes)
                limit.rlim_max = bytes;
        NEEDS(!setrlimit(resource, &limit));
}

static void address_limit(void)
{
        set_limit(RLIMIT_AS, RLIM_INFINITY);
        set_limit(RLIMIT_MEMLOCK, 1 << 20);
        CHECK(stook_os_address_limit() == UINT64_MAX);
        set_limit(RLIMIT_AS, (rlim_t)1 << 40);
        CHECK(stook_os_address_limit() == (uint64_t)1 << 40);
        /* A limit that every process passes binds none, root or not. */
        NEEDS(geteuid() || !seteuid(65534));
        CHECK(stook_os_address_limit() == (uint64_t)1 << 40);
}

static void memlock_limit(void)
{
        set_limit(RLIMIT_AS, (rlim_t)1 << 40);
        set_limit(RLIMIT_MEMLOCK, (rlim_t)1 << 30);
        if (geteuid() == 0) {
                CHECK(stook_os_address_limit() == (uint64_t)1 << 40);
                NEEDS(!seteuid(65534));
        }
        CHECK(stook_os_address_limit() == (uint64_t)1 << 30);
        set_limit(RLIMIT_AS, (rlim_t)1 << 29);
        CHECK(stook_os_address_limit() == (uint64_t)1 << 29);
}

static bool is_locked(void)
{
        void *fresh = stook_os_reserve(stook_os_page_bytes(), stook_os_page_bytes());

        CHECK(fresh);
        return stook_os_is_locked(fresh);
}

static void locked_future(void)
{
        CHECK(!is_locked());
        NEEDS(!mlockall(MCL_FUTURE));
        CHECK(is_locked());
        CHECK(!munlockall());
        CHECK(!is_locked());
        NEEDS(!mlockall(MCL_FUTURE | MCL_ONFAULT));
        CHECK(is_locked());
}

static void page(void)
{
        CHECK(stook_os_page_bytes() == (size_t)sysconf(_SC_PAGESIZE));
        CHECK(stook_os_page_bytes() == (size_t)sysconf(_SC_PAGESIZE));
        CHECK(stook_os_node_count() == 1);
        CHECK(stook_os_possible_cpus() >= (unsigned)sysconf(_SC_NPROCESSORS_CONF));
        CHECK(stook_os_memory_bytes() > 0 && stook_os_memory_bytes() <= ram());

        unsigned allowed = 0, bound = stook_os_cpus_bound(&allowed);

        CHECK(!bound || (bound >= stook_os_possible_cpus() && allowed > 0 && allowed <= bound &&
                         bound <= STOOK_CPUS_FEW));
}

#define IN_CHILD(step)                                  \
        static void test_##step(void **state)           \
        {                                               \
                (void)state;                            \
                assert_child_fine(step);                \
        }

IN_CHILD(without_proc_and_sys)
IN_CHILD(cgroup_2)
IN_CHILD(cgroup_1)
IN_CHILD(cpus)
IN_CHILD(address_limit)
IN_CHILD(memlock_limit)
IN_CHILD(locked_future)
IN_CHILD(page)

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_page),
                cmocka_unit_test(test_without_proc_and_sys),
                cmocka_unit_test(test_cgroup_2),
                cmocka_unit_test(test_cgroup_1),
                cmocka_unit_test(test_cpus),
                cmocka_unit_test(test_address_limit),
                cmocka_unit_test(test_memlock_limit),
                cmocka_unit_test(test_locked_future),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
