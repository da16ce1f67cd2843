/*
 * What this proves: a destroy or a reset gives back all of a heap at once, whatever is alive, by
 * slabs and not by objects, and leaves other heaps alone. A heap that a thread is inside of stays
 * as it is. Neither indices nor memory are lost by thousands of heaps.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/inject.h"
#include "heap/heaps.h"
#include "os/os.h"
#include "pages/meta.h"
#include "pages/pagemap.h"
#include "slab/slab_state.h"
#include "slot/slot_regions.h"
#include <stook/stook.h>

static unsigned reports;
static enum stook_fault last_fault;

static void on_report(const struct stook_report *report, void *data)
{
        (void)data;
        reports++;
        last_fault = report->fault;
}

static struct stook_heap *make(const char *name)
{
        struct stook_heap *heap = stook_heap_create(name, NULL);

        assert_non_null(heap);
        return heap;
}

static struct stook_heap_stats stats_of(struct stook_heap *heap)
{
        struct stook_heap_stats stats = { .stats_size = sizeof(stats) };

        assert_int_equal(stook_heap_get_stats(heap, &stats), 0);
        return stats;
}

static struct stook_cache_stats counts_of(struct stook_cache *cache)
{
        struct stook_cache_stats stats = { .stats_size = sizeof(stats) };

        assert_int_equal(stook_cache_get_stats(cache, &stats), 0);
        return stats;
}

static size_t taken(void)
{
        size_t bytes = 0;

        for (unsigned node = 0; node < stook_os_node_count(); node++)
                bytes += stook_pages_taken(node);
        return bytes;
}

#define MILLION 1000000

/* What ends a slab is counted once for each; what frees objects in slabs is never called. */
static void a_million_objects_end_by_slabs(void **state)
{
        struct stook_heap *heap = make("million");
        struct stook_cache *cache;
        struct stook_cache_stats full, emptied;
        size_t before = taken();

        (void)state;
        for (unsigned i = 0; i < MILLION; i++)
                *(unsigned *)stook_heap_alloc(heap, 48) = i;
        assert_int_equal(stats_of(heap).objects_live, MILLION);
        assert_true(stats_of(heap).bytes >= MILLION * UINT64_C(48));
        assert_int_equal(taken() - before, stats_of(heap).bytes);
        cache = stook_cache_find("million-48");
        full = counts_of(cache);
        assert_int_equal(full.slabs, full.alloc_slab - full.free_slab);
        assert_int_equal(stook_heap_reset(heap), 0);
        assert_int_equal(stats_of(heap).bytes, 0);
        assert_int_equal(stats_of(heap).slabs, 0);
        assert_int_equal(stats_of(heap).objects_live, 0);
        assert_int_equal(taken(), before);
        emptied = counts_of(cache);
        assert_int_equal(emptied.free_slab, emptied.alloc_slab);
        /* Only what lay in sheaves went one by one. */
        assert_true(emptied.sheaf_flush - full.sheaf_flush < MILLION / 50);
        assert_int_equal(stook_validate_all(), 0);
        assert_int_equal(stook_heap_destroy(heap), 0);
}

static void fill(struct stook_heap *heap, unsigned char byte, void **objects)
{
        for (unsigned i = 0; i < 2000; i++) {
                size_t size = 1 + i * 37 % 50000;

                objects[i] = stook_heap_alloc(heap, size);
                assert_non_null(objects[i]);
                memset(objects[i], byte, size);
        }
}

static void others_stay_as_they_are(void **state)
{
        void *ours[2000], *theirs[2000];
        struct stook_heap *heap = make("ends"), *other = make("stays");

        (void)state;
        fill(other, 1, theirs);
        for (unsigned round = 0; round < 3; round++) {
                fill(heap, 2, ours);
                for (unsigned i = 0; i < 2000; i += 3)
                        stook_free(ours[i]);
                assert_int_equal(stook_heap_reset(heap), 0);
                assert_int_equal(stats_of(heap).bytes, 0);
                assert_int_equal(stook_validate_all(), 0);
        }
        fill(heap, 3, ours);
        assert_int_equal(stook_heap_destroy(heap), 0);
        for (unsigned i = 0; i < 2000; i++) {
                const unsigned char *object = theirs[i];

                for (size_t k = 0; k < 1 + i * 37 % 50000; k++)
                        assert_int_equal(object[k], 1);
                assert_ptr_equal(stook_heap_of(object), other);
                stook_heap_free(other, theirs[i]);
        }
        assert_int_equal(stats_of(other).objects_live, 0);
        assert_int_equal(stook_heap_destroy(other), 0);
        assert_int_equal(stook_validate_all(), 0);
}

/* Indices, descriptors, sheaves and the memory of heaps serve again. */
static void thousands_of_heaps_lose_nothing(void **state)
{
        size_t meta = 0, pages = taken();
        unsigned bound = 0;

        (void)state;
        for (unsigned i = 0; i < 3000; i++) {
                struct stook_heap *heap = make("one of many");

                for (size_t size = 16; size <= 40000; size *= 2)
                        memset(stook_heap_alloc(heap, size), 1, size);
                assert_int_equal(stook_heap_destroy(heap), 0);
                if (i == 100) {
                        meta = stook_meta_bytes();
                        bound = stook_caches_bound();
                }
        }
        assert_int_equal(stook_meta_bytes(), meta);
        assert_int_equal(stook_caches_bound(), bound);
        assert_int_equal(taken(), pages);
}

/* There is an index for so many caches. Then a heap's objects are of its other sizes, or spans. */
static void without_an_index_a_heap_shares_with_no_stranger(void **state)
{
        static struct stook_heap *heaps[STOOK_CACHES_MAX];
        struct stook_cache *plain;
        unsigned n = 0;
        char *first, *second, *third;

        (void)state;
        do {
                heaps[n] = make("index");
                memset(stook_heap_alloc(heaps[n], 64), 1, 64);
        } while (!stats_of(heaps[n++]).spilled);
        assert_true(n > STOOK_CACHES_MAX - 512);
        n--;
        assert_int_equal(stats_of(heaps[n]).caches, 0);
        assert_int_equal(stook_heap_destroy(heaps[n]), 0);
        plain = stook_cache_create("plain", 64, NULL);
        assert_null(plain);
        assert_int_equal(errno, EAGAIN);
        first = stook_heap_alloc(heaps[0], 64);
        second = stook_heap_alloc(heaps[0], 40);        /* of the next larger class it has */
        third = stook_heap_alloc(heaps[0], 200);        /* a span */
        memset(first, 1, 64);
        memset(second, 2, 40);
        memset(third, 3, 200);
        assert_int_equal(stook_usable_size(second), 64);
        assert_int_equal(stook_usable_size(third), stook_os_page_bytes());
        assert_ptr_equal(stook_heap_of(second), heaps[0]);
        assert_ptr_equal(stook_heap_of(third), heaps[0]);
        assert_int_equal(stats_of(heaps[0]).spilled, 2);
        while (n--)
                assert_int_equal(stook_heap_destroy(heaps[n]), 0);
        plain = stook_cache_create("plain", 64, NULL);
        assert_non_null(plain);
        assert_int_equal(stook_cache_destroy(plain), 0);
}

static void check_unchanged(const unsigned char *object, unsigned char byte, size_t bytes)
{
        for (size_t i = 0; i < bytes; i++)
                assert_int_equal(object[i], byte);
}

/* A thread of another cache has a sheaf of the heap's in hands. */
static void a_heap_that_a_thread_is_inside_of_stays(void **state)
{
        struct stook_heap *heap = make("busy");
        unsigned char *object = stook_heap_alloc(heap, 100);
        struct stook_cache *cache = stook_cache_find("busy-112");

        (void)state;
        assert_non_null(stook_heap_alloc(heap, 3000));
        memset(object, 5, 100);
        stook_on_report(on_report, NULL);
        reports = 0;
        assert_true(stook_barns_visit_begin(&cache->barns));
        assert_int_equal(stook_heap_destroy(heap), -EBUSY);
        assert_int_equal(stook_heap_reset(heap), -EBUSY);
        stook_barns_visit_end(&cache->barns);
        assert_int_equal(reports, 2);
        assert_int_equal(last_fault, STOOK_FAULT_OBJECTS_LEFT);
        check_unchanged(object, 5, 100);
        stook_heap_free(heap, object);
        assert_non_null(stook_heap_alloc(heap, 100));
        assert_int_equal(stats_of(heap).objects_live, 2);
        assert_int_equal(stook_heap_destroy(heap), 0);
        stook_on_report(NULL, NULL);
}

/* A sandbox comes down over this process. */
static int refuse_membarrier(void)
{
        struct sock_filter filter[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = { STOOK_ARRAY_SIZE(filter), filter };

        return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
               prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* In a process of its own. Return: the step that failed; 0: none; 77: no filter. */
static int end_without_a_barrier(void)
{
        struct stook_heap *heap = stook_heap_create("barrier", NULL);
        unsigned char *object = stook_heap_alloc(heap, 100);

        if (refuse_membarrier())
                return 77;
        memset(object, 7, 100);
        if (stook_heap_shrink(heap) != -EBUSY)
                return 1;
        if (stook_heap_reset(heap) != -EBUSY || stook_heap_destroy(heap) != -EBUSY)
                return 2;
        if (object[0] != 7 || object[99] != 7 || stook_heap_of(object) != heap)
                return 3;
        stook_free(object);
        return stook_heap_alloc(heap, 100) ? 0 : 4;
}

static void a_heap_whose_slots_are_not_emptied_stays(void **state)
{
        int status;
        pid_t pid;

        (void)state;
        if (!stook_regions.rseq_slots)
                skip();                 /* the locked backend needs no membarrier */
        pid = fork();
        if (!pid)
                _exit(end_without_a_barrier());
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        if (WEXITSTATUS(status) == 77)
                skip();
        assert_int_equal(WEXITSTATUS(status), 0);
}

/* A sheaf on loan has objects of the heap's slabs. */
static void a_lent_sheaf_keeps_a_heap(void **state)
{
        struct stook_heap *heap = make("lent");
        struct stook_cache *cache;
        struct stook_sheaf *sheaf;

        (void)state;
        stook_on_report(on_report, NULL);
        assert_non_null(stook_heap_alloc(heap, 64));
        cache = stook_cache_find("lent-64");
        assert_non_null(cache);
        assert_int_equal(stook_cache_destroy(cache), -EINVAL);
        sheaf = stook_sheaf_prefill(cache, 0, 10);
        assert_non_null(sheaf);
        reports = 0;
        assert_int_equal(stook_heap_reset(heap), -EBUSY);
        assert_int_equal(reports, 1);
        assert_non_null(stook_heap_alloc(heap, 64));
        stook_sheaf_return(cache, sheaf);
        assert_int_equal(stook_heap_reset(heap), 0);
        assert_int_equal(stook_heap_destroy(heap), 0);
        stook_on_report(NULL, NULL);
}

/* A free left its claim: its slab cannot be had, and the heap can only be destroyed then. */
static void a_claim_is_waited_for(void **state)
{
        struct stook_heap *heap = make("claim");
        struct stook_span *span;
        struct stook_slab *slab;
        struct stook_pair *part;
        void *object = NULL;

        (void)state;
        for (unsigned i = 0; i < 10; i++)
                object = stook_heap_alloc(heap, 2000);
        assert_int_equal(stook_heap_shrink(heap), 0);
        span = stook_entry_span(stook_pagemap_get((uintptr_t)object));
        slab = stook_slab_of(span);
        part = stook_slab_part(slab, 0);
        stook_on_report(on_report, NULL);
        reports = 0;
        part->lo |= STOOK_PART_CLAIM;
        assert_int_equal(stook_heap_reset(heap), -EBUSY);
        assert_int_equal(reports, 1);
        assert_null(stook_heap_alloc(heap, 2000));
        assert_int_equal(stook_heap_reset(heap), -EINVAL);
        part->lo &= ~STOOK_PART_CLAIM;
        assert_int_equal(stook_heap_destroy(heap), 0);
        assert_int_equal(stook_validate_all(), 0);
        stook_on_report(NULL, NULL);
}

/* Objects of all kinds, until one is not to be had. Return: how many there were. */
static unsigned fill_up(struct stook_heap *heap)
{
        unsigned n;

        for (n = 0; n < 400; n++) {
                size_t size = n % 7 ? 16 + n * 97 % 5000 : 40000 + n * 1000;
                void *object = stook_heap_alloc(heap, size);

                if (!object)
                        break;
                memset(object, 1, size);
        }
        assert_true(n == 400 || errno == ENOMEM);
        return n;
}

/* Each step of an allocation finds no memory in turn. The heap is whole, and can be ended. */
static void without_memory_nothing_is_lost(void **state)
{
        size_t before = taken();
        unsigned refused = 0;

        (void)state;
        for (long from = 1; from < 120; from++)
                for (unsigned what = 0; what < 2; what++) {
                        long *fail = what ? &stook_inject.commit_fail_from
                                          : &stook_inject.span_fail_from;
                        struct stook_heap *heap = make("poor");
                        unsigned n;

                        *fail = from;
                        errno = 0;
                        n = fill_up(heap);
                        *fail = 0;
                        refused += n < 400;
                        assert_int_equal(stats_of(heap).refusals, n < 400);
                        assert_int_equal(taken() - before, stats_of(heap).bytes);
                        if (from % 2)
                                assert_int_equal(stook_heap_reset(heap), 0);
                        assert_non_null(stook_heap_alloc(heap, 100));
                        assert_int_equal(stook_heap_destroy(heap), 0);
                        assert_int_equal(taken(), before);
                }
        assert_true(refused > 100);
        assert_int_equal(stook_validate_all(), 0);
}

static unsigned asked;

static size_t give_nothing(struct stook_cache *cache, size_t wanted, void *data)
{
        (void)cache, (void)wanted, (void)data;
        asked++;
        return 0;
}

/* Caches spare memory for a heap where there is none, and not where the heap is at its limit. */
static void caches_are_not_asked_because_of_a_limit(void **state)
{
        struct stook_cache_args args = { .args_size = sizeof(args), .reclaim = give_nothing };
        struct stook_cache *cache = stook_cache_create("spares", 64, &args);
        struct stook_heap *heap = make("asks");

        (void)state;
        asked = 0;
        assert_int_equal(stook_heap_set_limit(heap, 300000), 0);
        while (stook_heap_alloc(heap, 3000))
                ;
        assert_int_equal(asked, 0);
        assert_int_equal(stook_heap_set_limit(heap, 0), 0);
        stook_inject.span_fail_from = 1;
        while (stook_heap_alloc(heap, 3000))
                ;
        stook_inject.span_fail_from = 0;
        assert_true(asked > 0);
        assert_int_equal(stook_heap_destroy(heap), 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

/* What is charged for the heap itself is refused. */
static void a_group_at_its_limit_refuses_a_heap(void **state)
{
        struct stook_group *group = stook_group_create("tiny", NULL, 16);
        struct stook_heap_args args = { .args_size = sizeof(args), .group = group };

        (void)state;
        errno = 0;
        assert_null(stook_heap_create("refused", &args));
        assert_int_equal(errno, ENOMEM);
        assert_int_equal(stook_group_usage(group), 0);
        stook_group_destroy(group);
}

/* In a child of fork. Return: the step that failed; 0: none. */
static int end_in_child(struct stook_heap *heap, void *const *objects)
{
        struct stook_heap *own = stook_heap_create("child", NULL);

        if (!own || stook_heap_of(objects[0]) != heap)
                return 1;
        for (unsigned i = 0; i < 2000; i += 2)
                stook_heap_free(heap, objects[i]);
        for (unsigned i = 0; i < 1000; i++)
                memset(stook_heap_alloc(heap, 20 + i), 9, 20 + i);
        memset(stook_heap_alloc(own, 300), 1, 300);
        if (stook_heap_reset(heap) || stats_of(heap).bytes)
                return 2;
        memset(stook_heap_alloc(heap, 300), 1, 300);
        return stook_heap_destroy(heap) || stook_heap_destroy(own) || stook_validate_all() ? 3 : 0;
}

static void a_child_of_fork_has_the_heaps(void **state)
{
        struct stook_heap *heap = make("forked");
        void *objects[2000];
        int status;
        pid_t pid;

        (void)state;
        fill(heap, 6, objects);
        pid = fork();
        if (!pid)
                _exit(end_in_child(heap, objects));
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
        for (unsigned i = 0; i < 2000; i++)
                check_unchanged(objects[i], 6, 1 + i * 37 % 50000);
        assert_int_equal(stook_heap_destroy(heap), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_million_objects_end_by_slabs),
                cmocka_unit_test(others_stay_as_they_are),
                cmocka_unit_test(thousands_of_heaps_lose_nothing),
                cmocka_unit_test(without_an_index_a_heap_shares_with_no_stranger),
                cmocka_unit_test(a_heap_that_a_thread_is_inside_of_stays),
                cmocka_unit_test(a_heap_whose_slots_are_not_emptied_stays),
                cmocka_unit_test(a_lent_sheaf_keeps_a_heap),
                cmocka_unit_test(a_claim_is_waited_for),
                cmocka_unit_test(a_child_of_fork_has_the_heaps),
                cmocka_unit_test(without_memory_nothing_is_lost),
                cmocka_unit_test(a_group_at_its_limit_refuses_a_heap),
                cmocka_unit_test(caches_are_not_asked_because_of_a_limit),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
