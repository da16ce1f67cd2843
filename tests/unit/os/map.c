/*
 * What this proves: map I1 and I2: a reservation is aligned, unreadable; its parts become zero
 * pages and back without ever leaving a hole or splitting the mapping for good; purge and move say
 * truly whether they did it; the hook fails the commits it was told to; errno survives.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>

#include "child.h"
#include "base/inject.h"
#include "os/os.h"

#ifndef PR_SET_VMA
#define PR_SET_VMA           0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

#define PAGES 64

static size_t page;

static bool readable(const void *addr)
{
        int ends[2];
        bool can;

        if (pipe(ends))
                return false;
        can = write(ends[1], addr, 1) == 1;
        close(ends[0]);
        close(ends[1]);
        return can;
}

/* mincore refuses a range with a hole in it. */
static bool whole(void *addr, size_t bytes)
{
        static unsigned char vector[2 * PAGES];

        return mincore(addr, bytes, vector) == 0;
}

static bool zero(const char *addr, size_t bytes)
{
        for (size_t i = 0; i < bytes; i++)
                if (addr[i])
                        return false;
        return true;
}

/* Mappings that overlap the range and, of them, those out of core dumps ("dd" among the flags). */
static void mappings(const void *addr, size_t bytes, unsigned *count, unsigned *dontdump)
{
        FILE *smaps = fopen("/proc/self/smaps", "r");
        char line[1024];
        uintptr_t from, to, at = (uintptr_t)addr;
        bool ours = false;

        assert_non_null(smaps);
        *count = *dontdump = 0;
        while (fgets(line, sizeof(line), smaps)) {
                if (sscanf(line, "%lx-%lx ", &from, &to) == 2) {
                        ours = from < at + bytes && at < to;
                        *count += ours;
                } else if (ours && !strncmp(line, "VmFlags:", 8)) {
                        *dontdump += strstr(line, " dd") != NULL;
                }
        }
        fclose(smaps);
}

/* The process's address space, pages. */
static unsigned long address_space(void)
{
        char text[64] = "";
        int fd = open("/proc/self/statm", O_RDONLY);

        assert_true(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
        close(fd);
        return strtoul(text, NULL, 10);
}

static char *reserve(void)
{
        char *at = stook_os_reserve(PAGES * page, page);

        assert_non_null(at);
        return at;
}

static void reserve_aligns_and_trims(void **state)
{
        (void)state;
        for (size_t align = 1; align <= (size_t)1 << 30; align <<= 3) {
                unsigned long before = address_space();
                char *at = stook_os_reserve(3 * page, align);
                unsigned count, dontdump;

                assert_non_null(at);
                assert_int_equal((uintptr_t)at % (align > page ? align : page), 0);
                assert_true(whole(at, 3 * page));
                assert_false(readable(at));
                assert_false(readable(at + 3 * page - 1));
                assert_int_equal(address_space(), before + 3);
                mappings(at, 3 * page, &count, &dontdump);
                assert_int_equal(count, 1);
                stook_os_unreserve(at, 3 * page);
                assert_false(whole(at, 3 * page));
        }
}

/* A debugger writes all into a core file that is not excluded from it. */
static void only_what_may_be_written_is_dumped(void **state)
{
        char *at = reserve();
        unsigned count, dontdump;

        (void)state;
        mappings(at, PAGES * page, &count, &dontdump);
        assert_int_equal(dontdump, 1);
        assert_true(stook_os_enable(at, page));
        assert_true(stook_os_commit(at + 2 * page, page));
        mappings(at, page, &count, &dontdump);
        assert_int_equal(dontdump, 0);
        mappings(at + 2 * page, page, &count, &dontdump);
        assert_int_equal(dontdump, 0);
        assert_true(stook_os_decommit(at, 3 * page));
        mappings(at, PAGES * page, &count, &dontdump);
        assert_int_equal(count, 1);
        assert_int_equal(dontdump, 1);
        stook_os_unreserve(at, PAGES * page);
}

static bool has_name(const char *at)
{
        FILE *maps = fopen("/proc/self/maps", "re");
        char line[1024];
        uintptr_t from, to;
        bool found = false;

        CHECK(maps);
        while (fgets(line, sizeof(line), maps))
                if (sscanf(line, "%lx-%lx ", &from, &to) == 2 && from <= (uintptr_t)at &&
                    (uintptr_t)at < to)
                        found = strstr(line, "[anon:stook]") != NULL;
        fclose(maps);
        return found;
}

static void name_mappings(void)
{
        char *at = stook_os_reserve(PAGES * page, page);

        CHECK(at && stook_os_commit(at, page) && !has_name(at));
        NEEDS(!prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, at, page, "test"));
        stook_os_name_mappings();
        at = stook_os_reserve(PAGES * page, page);
        CHECK(at && has_name(at));
        CHECK(stook_os_commit(at, page) && has_name(at));
        CHECK(stook_os_enable(at + page, page) && has_name(at + page));
        CHECK(stook_os_decommit(at, page) && has_name(at));
}

static void mappings_have_a_name_if_asked(void **state)
{
        (void)state;
        assert_child_fine(name_mappings);
}

static void reserve_refuses_the_impossible(void **state)
{
        (void)state;
        errno = 4711;
        assert_null(stook_os_reserve((size_t)1 << 62, page));
        assert_null(stook_os_reserve(SIZE_MAX - page + 1, (size_t)1 << 30));
        assert_null(stook_os_reserve(0, page));
        assert_int_equal(errno, 4711);
}

static void commit_and_decommit(void **state)
{
        char *at = reserve();
        unsigned count, dontdump;

        (void)state;
        for (unsigned round = 0; round < 3; round++) {
                assert_true(stook_os_commit(at + 8 * page, 4 * page));
                assert_true(stook_os_commit(at + 12 * page, 4 * page));
                assert_true(zero(at + 8 * page, 8 * page));
                memset(at + 8 * page, 0xa5, 8 * page);
                assert_false(readable(at + 8 * page - 1));
                assert_false(readable(at + 16 * page));
                mappings(at, PAGES * page, &count, &dontdump);
                assert_int_equal(count, 3);

                assert_true(stook_os_decommit(at + 8 * page, 8 * page));
                assert_false(readable(at + 8 * page));
                assert_true(whole(at, PAGES * page));
                mappings(at, PAGES * page, &count, &dontdump);
                assert_int_equal(count, 1);
        }
        stook_os_unreserve(at, PAGES * page);
}

static void purge_says_whether_the_pages_are_zero(void **state)
{
        char *at = reserve();

        (void)state;
        assert_true(stook_os_commit(at, 4 * page));
        memset(at, 0xa5, 4 * page);
        assert_true(stook_os_purge(at, 2 * page));
        assert_true(zero(at, 2 * page));
        assert_int_equal((unsigned char)at[2 * page], 0xa5);
        if (mlock(at + 2 * page, page) == 0) {
                errno = 4711;
                assert_false(stook_os_purge(at + 2 * page, page));
                assert_int_equal(errno, 4711);
                assert_int_equal((unsigned char)at[2 * page], 0xa5);
        }
        stook_os_unreserve(at, PAGES * page);
}

static void move_leaves_no_hole(void **state)
{
        char *at = reserve(), *to = at + 32 * page;

        (void)state;
        assert_true(stook_os_commit(at, 8 * page));
        assert_true(stook_os_commit(to, 8 * page));
        memset(at, 0xa5, 8 * page);
        at[0] = 1;
        assert_int_equal(stook_os_move(at, to, 8 * page), STOOK_OS_MOVED);
        assert_int_equal(to[0], 1);
        assert_int_equal((unsigned char)to[8 * page - 1], 0xa5);
        assert_true(zero(at, 8 * page));
        assert_true(whole(at, PAGES * page));
        stook_os_unreserve(at, PAGES * page);
}

/* A source of several mappings is moved, too: by a call for each. */
static void move_of_several_mappings(void **state)
{
        char *at = reserve(), *to = at + 32 * page;

        (void)state;
        assert_true(stook_os_commit(at, 8 * page));
        assert_true(stook_os_commit(to, 8 * page));
        memset(at, 0xa5, 8 * page);
        assert_int_equal(mprotect(at + 4 * page, 2 * page, PROT_READ), 0);
        errno = 4711;
        assert_int_equal(stook_os_move(at, to, 8 * page), STOOK_OS_MOVED);
        assert_int_equal(errno, 4711);
        for (size_t i = 0; i < 8 * page; i += page)
                assert_int_equal((unsigned char)to[i], 0xa5);
        assert_true(whole(at, PAGES * page));
        stook_os_unreserve(at, PAGES * page);
}

/* Moves between the two halves; what the move did must be true, and nothing may be missing. */
static enum stook_os_move check_move(char *at, char *to, size_t bytes)
{
        enum stook_os_move move;
        char *now;

        CHECK(stook_os_commit(at, bytes));
        memset(at, 0xa5, bytes);
        CHECK(stook_os_commit(to, bytes));
        errno = 4711;
        move = stook_os_move(at, to, bytes);
        now = move == STOOK_OS_MOVED ? to : at;
        CHECK(errno == 4711);
        CHECK((unsigned char)now[0] == 0xa5 && (unsigned char)now[bytes - 1] == 0xa5);
        CHECK(whole(at, bytes));
        CHECK(move == STOOK_OS_LOST || (whole(to, bytes) && readable(to) &&
                                        readable(to + bytes - 1)));
        return move;
}

/* Address space used up to the last page: what the target gave up, the move needs. */
static void move_without_address_space(void)
{
        char *at = stook_os_reserve(PAGES * page, page);
        struct rlimit limit = { .rlim_max = RLIM_INFINITY };

        CHECK(at);
        limit.rlim_cur = address_space() * page;
        NEEDS(!setrlimit(RLIMIT_AS, &limit));
        CHECK(check_move(at, at + 32 * page, 8 * page) == STOOK_OS_MOVED);
        CHECK(check_move(at + 1 * page, at + 32 * page, 8 * page) == STOOK_OS_MOVED);
}

static void move_at_the_limit(void **state)
{
        (void)state;
        assert_child_fine(move_without_address_space);
}

/*
 * As many mappings as a process may have, then one less each time. Of a source of several mappings
 * some may be moved before the next is refused.
 */
static void move_without_mappings(void)
{
        size_t pages = 400000, n = 0, bytes = 8 * page;
        char *at = stook_os_reserve(pages * page, page), *to = at + 32 * page,
             *crumbs = at + PAGES * page;
        enum stook_os_move move = STOOK_OS_MOVED;

        CHECK(at && stook_os_commit(to, bytes));
        check_move(at, to, bytes);
        CHECK(stook_os_advise(at + 2 * page, page, STOOK_OS_DONTDUMP));
        CHECK(stook_os_advise(at + 5 * page, page, STOOK_OS_DONTDUMP));
        while (2 * n + PAGES < pages && stook_os_commit(crumbs + 2 * n * page, page))
                n++;
        NEEDS(2 * n + PAGES < pages);   /* vm.max_map_count is larger here */
        for (unsigned freed = 0; freed < 40 && move != STOOK_OS_LOST; freed++) {
                for (size_t i = 0; i < 8; i++)
                        memset(at + i * page, (int)i + 1, page);
                if (stook_os_commit(to, bytes)) {
                        char *now;

                        errno = 4711;
                        move = stook_os_move(at, to, bytes);
                        now = move == STOOK_OS_MOVED ? to : at;
                        CHECK(errno == 4711);
                        CHECK(whole(at, bytes));
                        for (size_t i = 0; i < 8; i++)
                                CHECK(now[i * page] == (char)(i + 1) &&
                                      now[i * page + page - 1] == (char)(i + 1));
                }
                /*
                 * A hole of the test's own, for want of another way to have one mapping less at the
                 * limit.
                 */
                CHECK(!munmap(crumbs + 2 * --n * page, page));
        }
        CHECK(move == STOOK_OS_LOST);   /* the limit was met */
}

static void move_at_the_limit_of_mappings(void **state)
{
        (void)state;
        assert_child_fine(move_without_mappings);
}

static void what_cannot_be_moved_stays(void)
{
        char *at = reserve(), *to = at + 32 * page;

        CHECK(stook_os_commit(at, 8 * page));
        CHECK(stook_os_commit(to, 8 * page));
        memset(at, 0xa5, 8 * page);
        memset(to, 0x5a, 8 * page);
        errno = 4711;
        CHECK(stook_os_move(at, at + 4 * page, 8 * page) == STOOK_OS_STAYED);   /* overlap */
        CHECK(errno == 4711);
        CHECK((unsigned char)at[0] == 0xa5 && (unsigned char)at[5 * page] == 0xa5);
        CHECK((unsigned char)to[0] == 0x5a);
        CHECK(whole(at, PAGES * page));
}

static void a_refused_move_changes_nothing(void **state)
{
        (void)state;
        assert_child_fine(what_cannot_be_moved_stays);
}

/* ---- moves that are refused when the target is gone ---- */

static unsigned moves_done;             /* before one is refused */
static bool landing;                    /* a mapping of another thread is in the hole at once */

static long refuse_move(void *from, void *to, size_t bytes)
{
        void *at;

        if (moves_done) {
                moves_done--;
                at = mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED | 4, to);
                CHECK(at == to);
                return (long)at;
        }
        CHECK(!munmap(to, bytes));
        if (landing) {
                CHECK(mmap(to, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == to);
                memset(to, 0x77, bytes);
        }
        return -ENOMEM;
}

/* Three mappings, and the last one is refused. */
static void refuse_the_last(void)
{
        char *at = reserve(), *to = at + 32 * page, *left = at + 6 * page, *hole = to + 6 * page;

        CHECK(stook_os_commit(at, 8 * page));
        CHECK(stook_os_commit(to, 8 * page));
        CHECK(stook_os_advise(at + 3 * page, 3 * page, STOOK_OS_DONTDUMP));
        for (size_t i = 0; i < 8; i++)
                memset(at + i * page, (int)i + 1, page);
        stook_inject.move = refuse_move;
        moves_done = 2;
        CHECK(stook_os_move(at, to, 8 * page) == STOOK_OS_LOST);
        for (size_t i = 0; i < 8; i++)
                CHECK(at[i * page] == (char)(i + 1) && at[i * page + page - 1] == (char)(i + 1));
        if (landing) {
                CHECK((unsigned char)hole[0] == 0x77 &&
                      (unsigned char)hole[2 * page - 1] == 0x77);
        } else {
                CHECK(whole(hole, 2 * page) && !readable(hole));
        }
        CHECK(zero(to, 6 * page));      /* the memory of what came back is given back */
        /* None is tried from here on. */
        CHECK(stook_os_move(left, at + 16 * page, 2 * page) == STOOK_OS_STAYED);
        CHECK(left[0] == 7);
}

static void what_was_moved_comes_back(void **state)
{
        (void)state;
        assert_child_fine(refuse_the_last);
}

static void a_foreign_mapping_is_left_alone(void **state)
{
        (void)state;
        landing = true;
        assert_child_fine(refuse_the_last);
        landing = false;
}

/* A limit that was lowered below what the process has: the system's own refusal. */
static void move_beyond_a_limit(void)
{
        char *at = reserve(), *to = at + 32 * page;
        struct rlimit limit = { 1, RLIM_INFINITY };

        CHECK(stook_os_commit(at, 8 * page));
        CHECK(stook_os_commit(to, 8 * page));
        memset(at, 0xa5, 8 * page);
        NEEDS(!setrlimit(RLIMIT_DATA, &limit));
        CHECK(stook_os_move(at, to, 8 * page) != STOOK_OS_MOVED);
        CHECK((unsigned char)at[0] == 0xa5 && (unsigned char)at[8 * page - 1] == 0xa5);
        CHECK(whole(at, PAGES * page));
}

static void a_move_beyond_a_limit_is_refused(void **state)
{
        (void)state;
        assert_child_fine(move_beyond_a_limit);
}

/* ---- commits that are refused ---- */

static void data_beyond_the_limit(void)
{
        char *at = reserve();
        struct rlimit limit = { 1, RLIM_INFINITY };
        unsigned count, dontdump;

        NEEDS(!setrlimit(RLIMIT_DATA, &limit));
        errno = 4711;
        CHECK(!stook_os_commit(at + 8 * page, 4 * page));
        CHECK(errno == 4711);
        CHECK(whole(at, PAGES * page) && !readable(at + 8 * page));
        mappings(at, PAGES * page, &count, &dontdump);
        CHECK(count == 1 && dontdump == 1);
}

static void a_commit_keeps_to_the_limit_of_data(void **state)
{
        (void)state;
        assert_child_fine(data_beyond_the_limit);
}

/* More than a machine has: Linux before 6.12 would unmap what was there, and refuse it then. */
static void a_commit_that_is_refused_leaves_no_hole(void **state)
{
        size_t bytes = (size_t)1 << 45;
        char *at = stook_os_reserve(bytes, page);

        (void)state;
        if (!at || stook_os_commit(at, bytes))
                skip();                                         /* vm.overcommit_memory is 1 */
        for (size_t i = 0; i < 64; i++)
                assert_true(whole(at + i * (bytes / 64), page));
        assert_false(readable(at));
        stook_os_unreserve(at, bytes);
}

static void advice_is_passed_on(void **state)
{
        char *at = reserve();
        unsigned count, dontdump;

        (void)state;
        assert_true(stook_os_commit(at, PAGES * page));
        mappings(at, PAGES * page, &count, &dontdump);
        assert_int_equal(dontdump, 0);
        assert_true(stook_os_advise(at, PAGES * page, STOOK_OS_DONTDUMP));
        mappings(at, PAGES * page, &count, &dontdump);
        assert_int_equal(dontdump, 1);
        assert_true(stook_os_advise(at, page, STOOK_OS_WIPEONFORK));
        errno = 4711;
        assert_false(stook_os_advise(at + 1, page, STOOK_OS_DONTDUMP));
        assert_int_equal(errno, 4711);
        stook_os_unreserve(at, PAGES * page);
}

static void the_hook_fails_commits(void **state)
{
        char *at = reserve();

        (void)state;
        stook_inject.commit_fail_from = 3;
        assert_true(stook_os_commit(at, page));
        assert_true(stook_os_commit(at + page, page));
        assert_int_equal(stook_inject.commit_fail_from, 1);
        assert_false(stook_os_commit(at + 2 * page, page));
        assert_int_equal(stook_inject.commit_fail_from, 1);
        assert_false(stook_os_commit(at + 2 * page, page));
        assert_false(readable(at + 2 * page));
        assert_int_equal(stook_inject.commit_fail_from, 1);
        stook_inject.commit_fail_from = 0;
        assert_true(stook_os_commit(at + 2 * page, page));
        assert_int_equal(stook_inject.commit_fail_from, 0);
        stook_os_unreserve(at, PAGES * page);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(reserve_aligns_and_trims),
                cmocka_unit_test(only_what_may_be_written_is_dumped),
                cmocka_unit_test(mappings_have_a_name_if_asked),
                cmocka_unit_test(reserve_refuses_the_impossible),
                cmocka_unit_test(commit_and_decommit),
                cmocka_unit_test(purge_says_whether_the_pages_are_zero),
                cmocka_unit_test(move_leaves_no_hole),
                cmocka_unit_test(move_of_several_mappings),
                cmocka_unit_test(move_at_the_limit),
                cmocka_unit_test(move_at_the_limit_of_mappings),
                cmocka_unit_test(a_refused_move_changes_nothing),
                cmocka_unit_test(what_was_moved_comes_back),
                cmocka_unit_test(a_foreign_mapping_is_left_alone),
                cmocka_unit_test(a_move_beyond_a_limit_is_refused),
                cmocka_unit_test(a_commit_keeps_to_the_limit_of_data),
                cmocka_unit_test(a_commit_that_is_refused_leaves_no_hole),
                cmocka_unit_test(advice_is_passed_on),
                cmocka_unit_test(the_hook_fails_commits),
        };

        page = stook_os_page_bytes();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
