/*
 * Purpose: how much memory there may be, and what the system asks of programs that reserve it.
 * Place: called at start, but for stook_os_memory_bytes, which reads files: a missing /proc or /sys
 * means no limit.
 */
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>

#include "base/compiler.h"
#include "os/os.h"
#include "os/system_call.h"

/* Deeper cgroups than this are not looked up from; each is three system calls. */
#define CGROUP_LEVELS 16
#define NAME_BYTES    320                /* of a path below the mount; longer ones are rare */

/*
 * A smaller RLIMIT_MEMLOCK is no limit on what is reserved. It counts only in a program that locks
 * all of its memory (mlockall), and such a program is beyond so small a limit before it comes here.
 */
#define MEMLOCK_BINDS ((uint64_t)64 << 20)

size_t stook_os_page_bytes(void)
{
        static size_t bytes;            /* atomic, relaxed; all write the same */
        size_t b = __atomic_load_n(&bytes, __ATOMIC_RELAXED);

        if (STOOK_UNLIKELY(!b)) {
                b = getauxval(AT_PAGESZ);
                __atomic_store_n(&bytes, b, __ATOMIC_RELAXED);
        }
        return b;
}

static uint64_t limit_of(int resource)
{
        struct rlimit limit;

        bool none = stook_call(SYS_prlimit64, 0, resource, NULL, &limit) ||
                    limit.rlim_cur == RLIM_INFINITY;

        return none ? UINT64_MAX : limit.rlim_cur;
}

uint64_t stook_os_space_limit(void)
{
        return limit_of(RLIMIT_AS);
}

uint64_t stook_os_address_limit(void)
{
        uint64_t address = stook_os_space_limit(), locked = limit_of(RLIMIT_MEMLOCK);

        if (locked < MEMLOCK_BINDS || (locked != UINT64_MAX && !stook_call(SYS_geteuid)))
                locked = UINT64_MAX;
        return address < locked ? address : locked;
}

/* The kernel puts the first stack, where these bytes lie, at its upper end. */
uint64_t stook_os_address_space(void)
{
        return UINT64_C(2) << (63 - __builtin_clzll(getauxval(AT_RANDOM) | 1));
}

uint64_t stook_os_address_limit_at_start(void)
{
        static uint64_t first;          /* atomic, relaxed; 0: not asked yet */
        uint64_t limit = __atomic_load_n(&first, __ATOMIC_RELAXED);

        if (!limit) {
                limit = stook_os_address_limit();
                if (!limit)
                        limit = 1;
                __atomic_store_n(&first, limit, __ATOMIC_RELAXED);
        }
        return limit;
}

/* One read, ended by 0. Bytes read; 0: no such file, or nothing there. */
static size_t read_at(const char *path, char *text, size_t size)
{
        int fd = stook_call_open(path);
        long n = -1;

        if (fd >= 0) {
                n = stook_call(SYS_read, fd, text, size - 1);
                stook_call_close(fd);
        }
        text[n > 0 ? n : 0] = 0;
        return n > 0 ? (size_t)n : 0;
}

/* The number in a file of a cgroup; UINT64_MAX: "max", or no such file. */
static uint64_t number_in(const char *path)
{
        char text[24];
        uint64_t n = 0;

        if (!read_at(path, text, sizeof(text)) || text[0] < '0' || text[0] > '9')
                return UINT64_MAX;
        for (const char *c = text; *c >= '0' && *c <= '9'; c++)
                if (__builtin_mul_overflow(n, 10, &n) ||
                    __builtin_add_overflow(n, (uint64_t)(*c - '0'), &n))
                        return UINT64_MAX;
        return n;
}

uint64_t stook_os_mapped_bytes(void)
{
        uint64_t pages = number_in("/proc/self/statm");

        return pages == UINT64_MAX ? 0 : pages * stook_os_page_bytes();
}

/*
 * The smallest limit on the way from the process's cgroup up to the mount. The path may be the
 * host's, seen from a container whose mount starts further down: then the mount's root is the
 * container's own cgroup.
 */
static uint64_t cgroup_limit(const char *mount, const char *path, const char *file)
{
        char name[NAME_BYTES];
        size_t root = strlen(mount), end = root + strlen(path);
        uint64_t limit, least = UINT64_MAX;

        if (end + 1 + strlen(file) >= sizeof(name))
                end = root;     /* too long to follow: the mount is all there is */
        memcpy(name, mount, root);
        memcpy(name + root, path, end - root);
        while (end > root && name[end - 1] == '/')
                end--;
        for (unsigned levels = 0; levels < CGROUP_LEVELS; levels++) {
                name[end] = '/';
                memcpy(name + end + 1, file, strlen(file) + 1);
                limit = number_in(name);
                if (limit < least)
                        least = limit;
                if (end == root)
                        break;
                while (end > root && name[--end] != '/')
                        ;
        }
        return least;
}

/* One line of /proc/self/cgroup: "0::/path" is version 2, "n:controllers:/path" version 1. */
static uint64_t cgroup_line_limit(char *line)
{
        char *controllers = strchr(line, ':'), *path;

        if (!controllers || !(path = strchr(++controllers, ':')))
                return UINT64_MAX;
        *path++ = 0;
        if (!*controllers)
                return cgroup_limit("/sys/fs/cgroup", path, "memory.max");
        for (char *word = controllers; word; word = strchr(word, ',')) {
                word += *word == ',';
                if (!strncmp(word, "memory", 6) && (!word[6] || word[6] == ','))
                        return cgroup_limit("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes");
        }
        return UINT64_MAX;
}

uint64_t stook_os_memory_bytes(void)
{
        char lines[512];
        struct sysinfo info;
        uint64_t limit, least = stook_call(SYS_sysinfo, &info)
                                        ? UINT64_MAX
                                        : (uint64_t)info.totalram * info.mem_unit;
        long offset = 0, got;
        int file = stook_call_open("/proc/self/cgroup");

        /*
         * As many whole lines as fit at once: the file may be longer than the stack allows. A
         * longer line ends it.
         */
        while (file >= 0 &&
               (got = stook_call(SYS_pread64, file, lines, sizeof(lines) - 1, offset)) > 0) {
                char *line = lines, *end;

                lines[got] = 0;
                for (; (end = strchr(line, '\n')) != NULL; line = end + 1) {
                        *end = 0;
                        limit = cgroup_line_limit(line);
                        if (limit < least)
                                least = limit;
                }
                if (line == lines)
                        break;
                offset += line - lines;
        }
        if (file >= 0)
                stook_call_close(file);
        return least;
}

/*
 * Asked of a mapping, not of /proc (VmLck, which may be missing and counts only what was locked
 * already): a page is locked exactly if MADV_DONTNEED refuses it, also under MCL_ONFAULT.
 */
bool stook_os_is_locked(void *fresh)
{
        return stook_call(SYS_madvise, fresh, stook_os_page_bytes(), MADV_DONTNEED) != 0;
}
