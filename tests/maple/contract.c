/*
 * What this proves: the promises of <stook/maple.h> one by one, on a cache that refuses when told
 * to: bad input is refused with the error that is documented and changes nothing; the ends of the
 * key space; where cursors are after each call; a write without the lock ends the process; what the
 * cache cannot take back at once is not lost; dumps.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <stook/maple.h>
#include "fake_cache.h"

#define MAX UINT64_MAX

static struct stook_maple tree;
static char a __attribute__((aligned(8))), b __attribute__((aligned(8))),
        c __attribute__((aligned(8)));
static void *const A = &a, *const B = &b, *const C = &c;

static int with_flags(unsigned flags)
{
        return stook_maple_init(&tree, flags);
}

static int end(void **state)
{
        (void)state;
        fake_fail_in = 0;
        fake_rcu_full = fake_no_rcu = false;
        stook_maple_destroy(&tree);
        fake_grace();
        return fake_live ? -1 : 0;
}

/* [10, 19] A, [20, 29] B, [100, 199] C */
static void three(unsigned flags)
{
        assert_int_equal(with_flags(flags), 0);
        assert_int_equal(stook_maple_store(&tree, 10, 19, A), 0);
        assert_int_equal(stook_maple_store(&tree, 20, 29, B), 0);
        assert_int_equal(stook_maple_store(&tree, 100, 199, C), 0);
}

static void assert_three(void)
{
        static const struct { uint64_t key; void *entry;
        } want[] = {
                { 0, NULL },  { 9, NULL },  { 10, &a },  { 19, &a },  { 20, &b },    { 29, &b },
                { 30, NULL }, { 99, NULL }, { 100, &c }, { 199, &c }, { 200, NULL }, { MAX, NULL },
        };

        assert_int_equal(stook_maple_validate(&tree), 0);
        for (unsigned i = 0; i < sizeof(want) / sizeof(*want); i++)
                assert_ptr_equal(stook_maple_load(&tree, want[i].key), want[i].entry);
}

static void assert_erases(uint64_t key, void *entry)
{
        void *old = NULL;

        assert_int_equal(stook_maple_erase(&tree, key, &old), 0);
        assert_ptr_equal(old, entry);
}

static void test_bad_input(void **state)
{
        STOOK_MAPLE_CURSOR(cursor, &tree, 5, 4);
        void *reserved = (void *)(uintptr_t)4094;
        uint64_t start = 7, next = 0;

        (void)state;
        assert_int_equal(stook_maple_init(&tree, 8), -EINVAL);
        three(STOOK_MAPLE_GAPS);
        assert_int_equal(stook_maple_store(&tree, 5, 4, A), -EINVAL);
        assert_int_equal(stook_maple_store(&tree, 4, 5, reserved), -EINVAL);
        assert_int_equal(stook_maple_store(&tree, 4, 5, (void *)(uintptr_t)6), -EINVAL);
        assert_int_equal(stook_maple_insert(&tree, 5, 4, A), -EINVAL);
        assert_int_equal(stook_maple_insert(&tree, 4, 5, NULL), -EINVAL);
        assert_int_equal(stook_maple_insert(&tree, 4, 5, reserved), -EINVAL);
        assert_int_equal(stook_maple_insert(&tree, 0, 10, A), -EEXIST);
        assert_int_equal(stook_maple_insert(&tree, 29, 40, A), -EEXIST);
        assert_int_equal(stook_maple_insert(&tree, 50, MAX, A), -EEXIST);
        assert_int_equal(stook_maple_alloc(&tree, A, 0, 0, MAX, &start), -EINVAL);
        assert_int_equal(stook_maple_alloc(&tree, A, 1, 6, 5, &start), -EINVAL);
        assert_int_equal(stook_maple_alloc(&tree, NULL, 1, 0, 5, &start), -EINVAL);
        assert_int_equal(stook_maple_alloc_top(&tree, reserved, 1, 0, 5, &start), -EINVAL);
        assert_int_equal(stook_maple_alloc(&tree, A, 71, 10, 100, &start), -EBUSY);
        assert_int_equal(stook_maple_alloc_top(&tree, A, 12, 5, 16, &start), -EBUSY);
        assert_int_equal(stook_maple_alloc(&tree, A, MAX, 0, MAX, &start), -EBUSY);
        assert_int_equal(stook_maple_alloc_cyclic(&tree, A, 100, 199, &next, &start), -EBUSY);
        assert_int_equal(start, 7);
        assert_int_equal(next, 0);
        stook_maple_lock(&tree);
        assert_int_equal(stook_maple_cursor_store(&cursor, A), -EINVAL);
        assert_int_equal(stook_maple_cursor_status(&cursor), STOOK_MAPLE_CURSOR_ERROR);
        assert_int_equal(stook_maple_cursor_preallocate(&cursor, A), -EINVAL);
        assert_int_equal(stook_maple_cursor_store_prealloc(&cursor, A), -EINVAL);
        stook_maple_cursor_set(&cursor, 12, 12);
        assert_int_equal(stook_maple_cursor_store(&cursor, reserved), -EINVAL);
        assert_int_equal(stook_maple_cursor_empty_area(&cursor, 0, 0, MAX), -EINVAL);
        assert_int_equal(stook_maple_cursor_empty_area_rev(&cursor, 1, 2, 1), -EINVAL);
        assert_int_equal(stook_maple_cursor_empty_area(&cursor, 1, 10, 29), -EBUSY);
        assert_true(cursor.first == 12 && cursor.last == 12);
        stook_maple_unlock(&tree);
        assert_int_equal(stook_maple_dump(&tree, stdout, (enum stook_maple_format)9), -EINVAL);
        assert_int_equal(stook_maple_dup(&tree, &tree), -EINVAL);
        assert_three();
}

static void test_no_gap_tracking(void **state)
{
        STOOK_MAPLE_CURSOR(cursor, &tree, 0, 0);
        uint64_t start = 7, next = 0;

        (void)state;
        three(0);
        assert_int_equal(stook_maple_alloc(&tree, A, 1, 0, MAX, &start), -EINVAL);
        assert_int_equal(stook_maple_alloc_top(&tree, A, 1, 0, MAX, &start), -EINVAL);
        assert_int_equal(stook_maple_alloc_cyclic(&tree, A, 0, MAX, &next, &start), -EINVAL);
        stook_maple_lock(&tree);
        assert_int_equal(stook_maple_cursor_empty_area(&cursor, 1, 0, MAX), -EINVAL);
        stook_maple_unlock(&tree);
        assert_int_equal(start, 7);
        assert_three();
}

/* More nodes are needed than were preallocated. */
static void test_prealloc_missing(void **state)
{
        STOOK_MAPLE_CURSOR(cursor, &tree, 12, 12);
        size_t live;

        (void)state;
        three(STOOK_MAPLE_RCU);
        fake_grace();
        live = fake_live;
        stook_maple_lock(&tree);
        assert_int_equal(stook_maple_cursor_store_prealloc(&cursor, C), -ENOMEM);
        assert_three();
        /* An exact fit needs none; what is held for it is not enough for another store. */
        stook_maple_cursor_set(&cursor, 10, 19);
        assert_int_equal(stook_maple_cursor_preallocate(&cursor, A), 0);
        assert_int_equal(stook_maple_cursor_preallocated(&cursor), 0);
        stook_maple_cursor_set(&cursor, 10, 18);
        assert_int_equal(stook_maple_cursor_store_prealloc(&cursor, B), -ENOMEM);
        assert_three();
        assert_int_equal(stook_maple_cursor_preallocate(&cursor, B), 0);
        assert_int_equal(stook_maple_cursor_preallocated(&cursor), 1);
        assert_int_equal(fake_live, live + 1);
        stook_maple_cursor_finish(&cursor);
        assert_int_equal(fake_live, live);
        assert_int_equal(stook_maple_cursor_preallocated(&cursor), 0);
        stook_maple_unlock(&tree);
        assert_three();
}

static void test_ends_of_the_keys(void **state)
{
        uint64_t key = MAX, start, next = MAX;

        (void)state;
        assert_int_equal(with_flags(STOOK_MAPLE_GAPS), 0);
        assert_int_equal(stook_maple_store(&tree, MAX, MAX, A), 0);
        assert_int_equal(stook_maple_store(&tree, 0, 0, B), 0);
        assert_ptr_equal(stook_maple_load(&tree, MAX), A);
        assert_ptr_equal(stook_maple_load(&tree, 0), B);
        assert_null(stook_maple_load(&tree, 1));
        assert_null(stook_maple_load(&tree, MAX - 1));
        assert_ptr_equal(stook_maple_find(&tree, &key, MAX), A);
        assert_int_equal(key, 0);
        assert_null(stook_maple_find_after(&tree, &key, MAX));
        assert_ptr_equal(stook_maple_find(&tree, &key, MAX), B);
        assert_int_equal(key, 1);
        assert_ptr_equal(stook_maple_next(&tree, 0, MAX), A);
        assert_null(stook_maple_next(&tree, MAX, MAX));
        assert_ptr_equal(stook_maple_prev(&tree, MAX, 0), B);
        assert_null(stook_maple_prev(&tree, 0, 0));
        assert_erases(MAX, A);
        assert_int_equal(stook_maple_alloc_cyclic(&tree, C, 0, MAX, &next, &start), 0);
        assert_true(start == MAX && next == 0);
        assert_int_equal(stook_maple_alloc_cyclic(&tree, C, 0, MAX, &next, &start), 1);
        assert_true(start == 1 && next == 2);
        assert_int_equal(stook_maple_alloc_cyclic(&tree, C, 0, MAX, &next, &start), 0);
        assert_true(start == 2);
        next = MAX;
        assert_int_equal(stook_maple_alloc_cyclic(&tree, C, 3, MAX, &next, &start), 1);
        assert_true(start == 3);
        assert_int_equal(stook_maple_validate(&tree), 0);
        assert_int_equal(stook_maple_store(&tree, 0, MAX, A), 0);
        assert_int_equal(stook_maple_height(&tree), 1);
        assert_erases(1234, A);
        assert_true(stook_maple_empty(&tree));
        assert_int_equal(stook_maple_height(&tree), 0);
}

static void check(const struct stook_maple_cursor *cursor, enum stook_maple_status status,
                  uint64_t first, uint64_t last)
{
        assert_int_equal(stook_maple_cursor_status(cursor), status);
        assert_int_equal(cursor->first, first);
        assert_int_equal(cursor->last, last);
}

static void test_statuses(void **state)
{
        STOOK_MAPLE_CURSOR(cursor, &tree, 15, 15);
        void *old;

        (void)state;
        three(STOOK_MAPLE_EXTERNAL_LOCK);
        check(&cursor, STOOK_MAPLE_CURSOR_START, 15, 15);
        assert_ptr_equal(stook_maple_cursor_walk(&cursor), A);
        check(&cursor, STOOK_MAPLE_CURSOR_ACTIVE, 10, 19);
        assert_ptr_equal(stook_maple_cursor_next(&cursor, MAX), B);
        check(&cursor, STOOK_MAPLE_CURSOR_ACTIVE, 20, 29);
        assert_null(stook_maple_cursor_next(&cursor, 50));
        check(&cursor, STOOK_MAPLE_CURSOR_OVERFLOW, 30, 99);
        assert_null(stook_maple_cursor_next(&cursor, 60));
        check(&cursor, STOOK_MAPLE_CURSOR_OVERFLOW, 30, 99);
        assert_ptr_equal(stook_maple_cursor_find(&cursor, 100), C);
        check(&cursor, STOOK_MAPLE_CURSOR_ACTIVE, 100, 199);
        assert_null(stook_maple_cursor_find(&cursor, 150));
        check(&cursor, STOOK_MAPLE_CURSOR_OVERFLOW, 100, 199);
        assert_ptr_equal(stook_maple_cursor_prev(&cursor, 0), B);
        check(&cursor, STOOK_MAPLE_CURSOR_ACTIVE, 20, 29);
        stook_maple_cursor_pause(&cursor);
        check(&cursor, STOOK_MAPLE_CURSOR_PAUSE, 20, 29);
        assert_ptr_equal(stook_maple_cursor_find_rev(&cursor, 0), A);
        assert_null(stook_maple_cursor_prev(&cursor, 5));
        check(&cursor, STOOK_MAPLE_CURSOR_UNDERFLOW, 0, 9);
        assert_null(stook_maple_cursor_find_rev(&cursor, 0));
        check(&cursor, STOOK_MAPLE_CURSOR_UNDERFLOW, 0, 9);
        assert_ptr_equal(stook_maple_cursor_next(&cursor, MAX), A);
        assert_null(stook_maple_cursor_prev_range(&cursor, 0));
        check(&cursor, STOOK_MAPLE_CURSOR_ACTIVE, 0, 9);
        assert_null(stook_maple_cursor_prev_range(&cursor, 0));
        check(&cursor, STOOK_MAPLE_CURSOR_UNDERFLOW, 0, 9);
        stook_maple_cursor_set(&cursor, 25, 27);
        check(&cursor, STOOK_MAPLE_CURSOR_START, 25, 27);
        assert_ptr_equal(stook_maple_cursor_next(&cursor, MAX), C);
        stook_maple_cursor_set(&cursor, 25, 27);
        assert_ptr_equal(stook_maple_cursor_find(&cursor, MAX), B);
        stook_maple_cursor_set(&cursor, 50, 50);
        assert_null(stook_maple_cursor_find_range(&cursor, MAX));
        check(&cursor, STOOK_MAPLE_CURSOR_ACTIVE, 30, 99);
        assert_ptr_equal(stook_maple_cursor_find_range(&cursor, MAX), C);
        assert_null(stook_maple_cursor_find_range(&cursor, MAX));
        check(&cursor, STOOK_MAPLE_CURSOR_ACTIVE, 200, MAX);
        assert_null(stook_maple_cursor_find_range(&cursor, MAX));
        check(&cursor, STOOK_MAPLE_CURSOR_OVERFLOW, 200, MAX);
        assert_ptr_equal(stook_maple_cursor_find_range_rev(&cursor, 0), C);
        stook_maple_cursor_reset(&cursor);
        check(&cursor, STOOK_MAPLE_CURSOR_START, 100, 199);
        stook_maple_cursor_set(&cursor, 40, 40);
        assert_null(stook_maple_cursor_find(&cursor, 30));
        check(&cursor, STOOK_MAPLE_CURSOR_OVERFLOW, 40, 40);
        /* Writes */
        stook_maple_cursor_set(&cursor, 40, 49);
        assert_int_equal(stook_maple_cursor_store(&cursor, A), 0);
        check(&cursor, STOOK_MAPLE_CURSOR_ACTIVE, 40, 49);
        assert_ptr_equal(stook_maple_cursor_next(&cursor, MAX), C);
        stook_maple_cursor_set(&cursor, 45, 45);
        assert_int_equal(stook_maple_cursor_erase(&cursor, &old), 0);
        assert_ptr_equal(old, A);
        check(&cursor, STOOK_MAPLE_CURSOR_ACTIVE, 40, 49);
        assert_int_equal(stook_maple_cursor_erase(&cursor, &old), -ENOENT);
        assert_int_equal(stook_maple_cursor_erase(&cursor, NULL), -ENOENT);
        assert_ptr_equal(old, A);               /* untouched */
        assert_three();
}

static void test_statuses_without_nodes(void **state)
{
        STOOK_MAPLE_CURSOR(cursor, &tree, 5, 5);

        (void)state;
        assert_int_equal(with_flags(STOOK_MAPLE_EXTERNAL_LOCK), 0);
        assert_null(stook_maple_cursor_walk(&cursor));
        check(&cursor, STOOK_MAPLE_CURSOR_NONE, 0, MAX);
        assert_null(stook_maple_cursor_next(&cursor, MAX));
        check(&cursor, STOOK_MAPLE_CURSOR_NONE, 0, MAX);
        assert_null(stook_maple_cursor_prev(&cursor, 0));
        check(&cursor, STOOK_MAPLE_CURSOR_NONE, 0, MAX);
        assert_int_equal(stook_maple_store(&tree, 0, 0, A), 0);
        assert_int_equal(stook_maple_height(&tree), 0);
        stook_maple_cursor_set(&cursor, 0, 0);
        assert_ptr_equal(stook_maple_cursor_find(&cursor, MAX), A);
        check(&cursor, STOOK_MAPLE_CURSOR_ROOT, 0, 0);
        assert_null(stook_maple_cursor_next_range(&cursor, MAX));
        check(&cursor, STOOK_MAPLE_CURSOR_NONE, 1, MAX);
        assert_null(stook_maple_cursor_next(&cursor, MAX));
        check(&cursor, STOOK_MAPLE_CURSOR_OVERFLOW, 1, MAX);
        assert_ptr_equal(stook_maple_cursor_prev(&cursor, 0), A);
        check(&cursor, STOOK_MAPLE_CURSOR_ROOT, 0, 0);
}

static void test_simple_calls_inside_the_lock(void **state)
{
        uint64_t key = 0;

        (void)state;
        three(0);
        stook_maple_lock(&tree);
        assert_ptr_equal(stook_maple_load(&tree, 15), A);
        assert_int_equal(stook_maple_store(&tree, 300, 300, A), 0);
        assert_ptr_equal(stook_maple_find(&tree, &key, MAX), A);
        assert_erases(300, A);
        stook_maple_unlock(&tree);
        assert_three();
}

static void *take_the_lock(void *unused)
{
        stook_maple_lock(&tree);
        stook_maple_unlock(&tree);
        return unused;
}

/* In a child: it ends with SIGABRT. */
static void assert_ends(void (*body)(void))
{
        int status;
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (!pid) {
                setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
                signal(SIGABRT, SIG_DFL);
                if (!freopen("/dev/null", "w", stderr))
                        _exit(2);
                body();
                _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void store_without(void)
{
        STOOK_MAPLE_CURSOR(cursor, &tree, 1, 2);

        stook_maple_cursor_store(&cursor, A);
}

static void erase_without(void)
{
        STOOK_MAPLE_CURSOR(cursor, &tree, 10, 10);

        stook_maple_cursor_erase(&cursor, NULL);
}

static void unlock_without(void)
{
        stook_maple_unlock(&tree);
}

static void test_write_without_the_lock(void **state)
{
        pthread_t thread;

        (void)state;
        for (unsigned flags = 0; flags <= STOOK_MAPLE_RCU; flags += STOOK_MAPLE_RCU) {
                three(flags);
                assert_ends(store_without);
                assert_ends(erase_without);
                assert_ends(unlock_without);
                assert_int_equal(pthread_create(&thread, NULL, take_the_lock, NULL), 0);
                pthread_join(thread, NULL);
                assert_ends(store_without);     /* another thread had it */
                assert_int_equal(end(NULL), 0);
        }
        three(STOOK_MAPLE_EXTERNAL_LOCK);
        store_without();                        /* that is the caller's business */
        assert_ptr_equal(stook_maple_load(&tree, 1), A);
}

static void test_no_rcu_chosen(void **state)
{
        pid_t pid = fork();                     /* once chosen it stays so in a process */
        int status;

        (void)state;
        assert_true(pid >= 0);
        if (!pid) {
                fake_no_rcu = true;
                with_flags(STOOK_MAPLE_RCU);
                if (stook_maple_store(&tree, 1, 2, A) != -ENOTSUP || !stook_maple_empty(&tree) ||
                    fake_live)
                        _exit(1);
                fake_no_rcu = false;
                _exit(stook_maple_store(&tree, 1, 2, A) ? 2 : 0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
}

/* What free_rcu has no place for waits with the tree. */
static void test_deferred_nodes(void **state)
{
        size_t live;

        (void)state;
        three(STOOK_MAPLE_RCU);
        fake_grace();
        live = fake_live;
        fake_rcu_full = true;
        for (uint64_t i = 0; i < 100; i++)
                assert_int_equal(stook_maple_store(&tree, 1000, 1100 - i, i % 2 ? A : B), 0);
        assert_int_equal(fake_waiting, 0);
        assert_true(fake_live >= live + 100);
        fake_rcu_full = false;
        assert_int_equal(stook_maple_store(&tree, 1000, 1100, A), 0);
        assert_true(fake_waiting >= 100);
        fake_grace();
        assert_true(fake_live < live + 3);
        fake_rcu_full = true;                   /* destroy makes room by a barrier */
}

/* With RCU an erase may lack memory, and says so; without, it needs none. */
static void test_erase_without_memory(void **state)
{
        STOOK_MAPLE_CURSOR(cursor, &tree, 15, 15);
        void *old = &tree;

        (void)state;
        three(STOOK_MAPLE_RCU);
        fake_fail_in = 1;
        errno = EDOM;
        assert_int_equal(stook_maple_erase(&tree, 15, &old), -ENOMEM);
        assert_int_equal(stook_maple_erase(&tree, 50, &old), -ENOENT);
        stook_maple_lock(&tree);
        assert_int_equal(stook_maple_cursor_erase(&cursor, &old), -ENOMEM);
        stook_maple_unlock(&tree);
        assert_true(old == &tree && errno == EDOM);
        assert_three();
        fake_fail_in = 0;
        assert_erases(15, A);
        assert_int_equal(end(NULL), 0);
        assert_int_equal(with_flags(0), 0);
        for (uint64_t key = 0; key < 5000; key++)
                assert_int_equal(stook_maple_store(&tree, key * 2, key * 2, A), 0);
        fake_fail_in = 1;
        for (uint64_t key = 5000; key--;)
                assert_erases(key * 7919 % 5000 * 2, A);
        assert_true(stook_maple_empty(&tree));
}

static void test_dup(void **state)
{
        struct stook_maple copy = STOOK_MAPLE_INIT(STOOK_MAPLE_GAPS);

        (void)state;
        three(0);
        assert_int_equal(stook_maple_dup(&tree, &copy), -EINVAL);       /* other flags */
        stook_maple_init(&copy, 0);
        assert_int_equal(stook_maple_dup(&tree, &copy), 0);
        assert_int_equal(stook_maple_dup(&tree, &copy), -EINVAL);       /* not empty */
        assert_int_equal(stook_maple_store(&copy, 0, MAX, C), 0);
        assert_three();
        stook_maple_destroy(&copy);
}

static char *dumped(enum stook_maple_format format)
{
        char *text;
        size_t bytes;
        FILE *stream = open_memstream(&text, &bytes);

        assert_non_null(stream);
        assert_int_equal(stook_maple_dump(&tree, stream, format), 0);
        fclose(stream);
        return text;
}

static unsigned count(const char *text, const char *what)
{
        unsigned n = 0;

        while ((text = strstr(text, what))) {
                n++;
                text++;
        }
        return n;
}

static void test_dump(void **state)
{
        FILE *full = fopen("/dev/full", "w");
        char *text;

        (void)state;
        assert_int_equal(with_flags(STOOK_MAPLE_GAPS), 0);
        text = dumped(STOOK_MAPLE_TEXT);
        assert_string_equal(text, "empty\n");
        free(text);
        for (uint64_t key = 0; key < 100; key++)
                assert_int_equal(stook_maple_store(&tree, key * 10, key * 10 + 4, A), 0);
        text = dumped(STOOK_MAPLE_TEXT);
        assert_int_equal(count(text, "leaf "), stook_maple_nodes(&tree) - count(text, "node "));
        assert_int_equal(count(text, ": 0x"), 100);
        assert_int_equal(count(text, ": gap"), 100);
        assert_non_null(strstr(text, "995-max: gap"));
        free(text);
        text = dumped(STOOK_MAPLE_DOT);
        assert_int_equal(strncmp(text, "digraph", 7), 0);
        assert_int_equal(count(text, "label="), stook_maple_nodes(&tree));
        assert_int_equal(count(text, "->"), stook_maple_nodes(&tree) - 1);
        assert_int_equal(count(text, "{"), count(text, "}"));
        free(text);
        if (full) {
                setvbuf(full, NULL, _IONBF, 0);
                assert_int_equal(stook_maple_dump(&tree, full, STOOK_MAPLE_TEXT), -EIO);
                fclose(full);
        }
}

/* validate is no good if it finds nothing: each kind of damage, done by hand. */
static void test_validate_finds(void **state)
{
        uint64_t *node, kept[32];

        (void)state;
        assert_int_equal(with_flags(STOOK_MAPLE_GAPS), 0);
        for (uint64_t key = 0; key < 100; key++)
                assert_int_equal(stook_maple_store(&tree, key * 10, key * 10 + 4, A), 0);
        assert_int_equal(stook_maple_validate(&tree), 0);
        node = (uint64_t *)(tree.root & ~UINT64_C(255));
        memcpy(kept, node, sizeof(kept));
#define DAMAGE(change) \
        do { \
                change; \
                assert_true(stook_maple_validate(&tree) > 0); \
                memcpy(node, kept, sizeof(kept)); \
                assert_int_equal(stook_maple_validate(&tree), 0); \
        } while (0)
        DAMAGE(node[0] = 1 << 1);               /* too few */
        DAMAGE(node[0] = 12 << 1);              /* too many */
        DAMAGE(node[0] |= 1);                   /* dead */
        DAMAGE(node[2] = node[1]);              /* pivots out of order */
        DAMAGE(node[1]++);                      /* a child's bounds: its last gap grows */
        DAMAGE(node[9] = 5);                    /* padding */
        DAMAGE(node[20]++);                     /* a gap */
        DAMAGE(node[10] = 0);                   /* no child */
        for (unsigned height = stook_maple_height(&tree); --height;)
                node = (uint64_t *)node[10];    /* down to the first leaf */
        memcpy(kept, node, sizeof(kept));
        DAMAGE(node[16] = 0);                   /* two gaps meet */
        DAMAGE(node[16] = 6);                   /* a reserved entry */
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_no_rcu_chosen),
                cmocka_unit_test_teardown(test_bad_input, end),
                cmocka_unit_test_teardown(test_no_gap_tracking, end),
                cmocka_unit_test_teardown(test_prealloc_missing, end),
                cmocka_unit_test_teardown(test_ends_of_the_keys, end),
                cmocka_unit_test_teardown(test_statuses, end),
                cmocka_unit_test_teardown(test_statuses_without_nodes, end),
                cmocka_unit_test_teardown(test_simple_calls_inside_the_lock, end),
                cmocka_unit_test_teardown(test_write_without_the_lock, end),
                cmocka_unit_test_teardown(test_deferred_nodes, end),
                cmocka_unit_test_teardown(test_erase_without_memory, end),
                cmocka_unit_test_teardown(test_dup, end),
                cmocka_unit_test_teardown(test_dump, end),
                cmocka_unit_test_teardown(test_validate_finds, end),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
