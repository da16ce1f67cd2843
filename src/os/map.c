/*
 * Purpose: mappings: reserve address space, put pages into it, take them out.
 * Place: called by pages; sizes and addresses are multiples of the system's page.
 * Invariants:
 *  I1 a range once handed out by reserve is never unmapped: what leaves it has PROT_NONE mapped
 *     over it in the same call, or the next foreign mmap would land in the hole. The exception is
 *     the target of a move that the kernel refuses (STOOK_OS_LOST).
 *  I2 reserved and decommitted ranges are fresh PROT_NONE mappings, and excluded from core dumps.
 *     The kernel would leave them out by itself, because nothing was written there. Debuggers would
 *     not: gdb writes a core file of all of a reservation. Memory that may be written is in dumps.
 *  I3 what is mapped over a range of ours has no access. Linux before 6.12 unmaps what was there,
 *     and may then refuse what can be written, for lack of memory: that would leave a hole (I1).
 *     Access is given afterwards, by mprotect, whose refusal leaves the mapping.
 * Concurrency: any thread, any instruction, on ranges the caller owns.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "base/compiler.h"
#include "base/inject.h"
#include "os/os.h"
#include "os/system_call.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

#ifndef PR_SET_VMA
#define PR_SET_VMA           0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

/* Edges of a reservation smaller than this share of it stay reserved. */
#define EDGES_SHARE 1024

/* ---- as a sanitizer wants to see them, or raw ---- */

#ifdef STOOK_CALLS_BY_LIBC
static long called(long r)
{
        return r == -1 ? -errno : r;
}
#define KEEPING_ERRNO(call) \
        ({ int before_ = errno; long r_ = called((long)(call)); errno = before_; r_; })
#define CALL_mmap(addr, bytes, prot, flags) KEEPING_ERRNO(mmap(addr, bytes, prot, flags, -1, 0))
#define CALL_munmap(addr, bytes)            KEEPING_ERRNO(munmap(addr, bytes))
#define CALL_mprotect(addr, bytes, prot)    KEEPING_ERRNO(mprotect(addr, bytes, prot))
#define CALL_madvise(addr, bytes, advice)   KEEPING_ERRNO(madvise(addr, bytes, advice))
#define CALL_mremap(from, was, bytes, flags, to) KEEPING_ERRNO(mremap(from, was, bytes, flags, to))
#else
#define CALL_mmap(addr, bytes, prot, flags) stook_call(SYS_mmap, addr, bytes, prot, flags, -1, 0)
#define CALL_munmap(addr, bytes)            stook_call(SYS_munmap, addr, bytes)
#define CALL_mprotect(addr, bytes, prot)    stook_call(SYS_mprotect, addr, bytes, prot)
#define CALL_madvise(addr, bytes, advice)   stook_call(SYS_madvise, addr, bytes, advice)
#define CALL_mremap(from, was, bytes, flags, to) stook_call(SYS_mremap, from, was, bytes, flags, to)
#endif

/* I3. The system counts its bytes as memory once they can be written. NULL: refused. */
static void *map(void *addr, size_t bytes, int flags)
{
        long at = CALL_mmap(addr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | flags);

        return stook_call_failed(at) ? NULL : (void *)at;
}

static bool named;                      /* written at start, before the first mapping */

void stook_os_name_mappings(void)
{
        named = true;
}

/* Linux 5.17, if it is built with it. What refuses it leaves the mapping without a name. */
static void name(void *addr, size_t bytes)
{
        if (STOOK_UNLIKELY(named))
                stook_call(SYS_prctl, PR_SET_VMA, PR_SET_VMA_ANON_NAME, addr, bytes, "stook", 0);
}

/* I2. A refusal costs nothing but larger core files. */
static void *map_reserved(void *addr, size_t bytes, int flags)
{
        void *at = map(addr, bytes, flags);

        if (at) {
                CALL_madvise(at, bytes, MADV_DONTDUMP);
                name(at, bytes);
        }
        return at;
}

void stook_os_unreserve(void *addr, size_t bytes)
{
        CALL_munmap(addr, bytes);
}

void *stook_os_reserve(size_t bytes, size_t align)
{
        size_t page = stook_os_page_bytes(), more = align > page ? align - page : 0, head;
        char *at;

        if (!bytes || bytes + more < bytes)
                return NULL;
        at = map_reserved(NULL, bytes + more, 0);
        if (!at)
                return NULL;
        /*
         * No other thread knows the range yet, so its edges may go. Beside a huge range they are
         * not worth two calls.
         */
        head = more ? -(uintptr_t)at & (align - 1) : 0;
        if (more < bytes / EDGES_SHARE)
                return at + head;
        if (head)
                stook_os_unreserve(at, head);
        if (more > head)
                stook_os_unreserve(at + head + bytes, more - head);
        return at + head;
}

bool stook_os_open(void *addr, size_t bytes)
{
        return !STOOK_INJECT_FROM(commit_fail_from) &&
               !CALL_mprotect(addr, bytes, PROT_READ | PROT_WRITE);
}

bool stook_os_enable(void *addr, size_t bytes)
{
        if (!stook_os_open(addr, bytes))
                return false;
        CALL_madvise(addr, bytes, MADV_DODUMP);
        return true;
}

bool stook_os_commit(void *addr, size_t bytes)
{
        if (STOOK_INJECT_FROM(commit_fail_from) ||
            !map(addr, bytes, MAP_FIXED))
                return false;
        if (CALL_mprotect(addr, bytes, PROT_READ | PROT_WRITE)) {
                CALL_madvise(addr, bytes, MADV_DONTDUMP);
                return false;
        }
        name(addr, bytes);
        return true;
}

void *stook_os_zeroed(size_t bytes)
{
        size_t whole = stook_os_whole_pages(bytes);
        void *at = stook_os_reserve(whole, stook_os_page_bytes());

        if (!at || stook_os_commit(at, whole))
                return at;
        stook_os_unreserve(at, whole);
        return NULL;
}

bool stook_os_close(void *addr, size_t bytes)
{
        return !STOOK_INJECT_FROM(close_fail_from) && !CALL_mprotect(addr, bytes, PROT_NONE);
}

bool stook_os_decommit(void *addr, size_t bytes)
{
        return map_reserved(addr, bytes, MAP_FIXED);
}

bool stook_os_show(void *addr, size_t bytes)
{
        return !CALL_mprotect(addr, bytes, PROT_READ);
}

bool stook_os_purge(void *addr, size_t bytes)
{
        return !CALL_madvise(addr, bytes, MADV_DONTNEED);
}

/*
 * Whether the bytes are in more than one mapping: to grow those is refused with EFAULT. To grow one
 * is refused with another error, because what lies behind it is mapped, too.
 */
static bool several(char *from, size_t bytes)
{
        return CALL_mremap(from, bytes, bytes + stook_os_page_bytes(), 0, NULL) == -EFAULT;
}

/* Of bytes in several mappings: those at the start that are in one. */
static size_t in_one(char *from, size_t bytes)
{
        size_t page = stook_os_page_bytes(), one = 1, more = bytes / page;     /* pages */

        while (more - one > 1) {
                size_t middle = one + (more - one) / 2;

                if (several(from, middle * page))
                        more = middle;
                else
                        one = middle;
        }
        return one * page;
}

static long move_one(void *from, void *to, size_t bytes)
{
        return CALL_mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP,
                           to);
}

static bool gave_up;                    /* atomic, relaxed: no pages are moved any more */

/*
 * Each mapping of the source is moved by a call of its own, which moves all of it or nothing.
 * (There are several after earlier moves, and where a program locked or advised a part.) So it is
 * known what has to come back if a later one is refused, and the source, which is still mapped,
 * takes it.
 */
enum stook_os_move stook_os_move(void *from, void *to, size_t bytes)
{
        long (*move)(void *, void *, size_t) = STOOK_INJECT_GET(move) ?: move_one;

        if (__atomic_load_n(&gave_up, __ATOMIC_RELAXED))
                return STOOK_OS_STAYED;
        for (size_t done = 0, part; done < bytes; done += part) {
                char *source = (char *)from + done, *target = (char *)to + done;
                long at;

                part = bytes - done;
                if (several(source, part))
                        part = in_one(source, part);
                at = move(source, target, part);
                if (at == (long)target)
                        continue;
                __atomic_store_n(&gave_up, true, __ATOMIC_RELAXED);
                /* With these errors of the first call the kernel has changed nothing. */
                if (!done && (at == -EINVAL || at == -ENOSYS))
                        return STOOK_OS_STAYED;
                memcpy(from, to, done);
                CALL_madvise(to, done, MADV_DONTNEED);
                map_reserved(target, part, MAP_FIXED_NOREPLACE);
                return STOOK_OS_LOST;
        }
        return STOOK_OS_MOVED;
}

bool stook_os_advise(void *addr, size_t bytes, enum stook_os_advice advice)
{
        static const int advices[] = {
                [STOOK_OS_HUGEPAGE] = MADV_HUGEPAGE,
                [STOOK_OS_NOHUGEPAGE] = MADV_NOHUGEPAGE,
                [STOOK_OS_DONTDUMP] = MADV_DONTDUMP,
                [STOOK_OS_WIPEONFORK] = MADV_WIPEONFORK,
                [STOOK_OS_POPULATE] = MADV_POPULATE_WRITE,
        };

        return !CALL_madvise(addr, bytes, advices[advice]);
}
