/*
 * Proves the drop-in's names. The test is linked to libstook-malloc.so, which stands for
 * preloading. Each of the C library's calls is the drop-in's and means what glibc's means, on every
 * edge that the standard or glibc's manual knows.
 */
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>
#include <stook/group.h>
#include <stook/malloc.h>
#include <stook/stats.h>

#include "off_by.h"

void cfree(void *object);
void *pvalloc(size_t size);                     /* musl declares neither */
void free_sized(void *object, size_t size);
void free_aligned_sized(void *object, size_t align, size_t size);

/* Not known to the compiler, or it warns of what is tested, and drops pairs of calls. */
static volatile size_t too_large = (size_t)PTRDIFF_MAX + 1, zero = 0, odd = 48;
static void *volatile sink;

static void test_every_name_is_ours(void **state)
{
        static const char *const names[] = {
                "malloc",
                "free",
                "calloc",
                "realloc",
                "reallocarray",
                "aligned_alloc",
                "posix_memalign",
                "memalign",
                "valloc",
                "pvalloc",
                "cfree",
                "malloc_usable_size",
                "malloc_trim",
#ifdef __GLIBC__
                "mallinfo",
                "mallinfo2",
                "malloc_info",
#endif
                "mallopt",
                "malloc_stats",
                "free_sized",
                "free_aligned_sized",
                "_Znwm",
                "_Znam",
                "_ZnwmRKSt9nothrow_t",
                "_ZnamRKSt9nothrow_t",
                "_ZnwmSt11align_val_t",
                "_ZnamSt11align_val_t",
                "_ZnwmSt11align_val_tRKSt9nothrow_t",
                "_ZnamSt11align_val_tRKSt9nothrow_t",
                "_ZdlPv",
                "_ZdaPv",
                "_ZdlPvm",
                "_ZdaPvm",
                "_ZdlPvSt11align_val_t",
                "_ZdaPvSt11align_val_t",
                "_ZdlPvmSt11align_val_t",
                "_ZdaPvmSt11align_val_t",
                "_ZdlPvRKSt9nothrow_t",
                "_ZdaPvRKSt9nothrow_t",
                "_ZdlPvSt11align_val_tRKSt9nothrow_t",
                "_ZdaPvSt11align_val_tRKSt9nothrow_t",
                "stook_malloc",
                "stook_cache_create",
                "vfork",
        };

        (void)state;
        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
                Dl_info info;
                void   *found = dlsym(RTLD_DEFAULT, names[i]);

                if (!found)
                        fail_msg("%s is missing", names[i]);
                assert_true(dladdr(found, &info));
                if (!strstr(info.dli_fname, "libstook-malloc.so"))
                        fail_msg("%s is from %s", names[i], info.dli_fname);
        }
        assert_null(dlsym(RTLD_DEFAULT, "stook_malloc_object")); /* internal names stay inside */
}

/* All of @names, which ends with NULL, are the function @as. */
static void are_the_same(const char *const *names, const char *as)
{
        for (; *names; names++)
                if (dlsym(RTLD_DEFAULT, *names) != dlsym(RTLD_DEFAULT, as))
                        fail_msg("%s is another function than %s", *names, as);
}

/*
 * Functions of the same code, so that each way to free costs the same. On x86-64 each delete has
 * its own, because a miss knows which it is.
 */
static void test_every_free_is_free(void **state)
{
        static const char *const plain[] = { "cfree", "free_aligned_sized", NULL },
        *const one[] = { "_ZdlPvRKSt9nothrow_t", NULL }, *const array[] = {
                "_ZdaPvRKSt9nothrow_t", NULL
        }, *const aligned[] = {
                "_ZdlPvmSt11align_val_t", "_ZdlPvSt11align_val_tRKSt9nothrow_t", NULL
        }, *const array_aligned[] = {
                "_ZdaPvmSt11align_val_t", "_ZdaPvSt11align_val_tRKSt9nothrow_t", NULL
        };
#ifndef __x86_64__
        static const char *const every[] = {
                "_ZdlPv", "_ZdaPv", "_ZdlPvSt11align_val_t", "_ZdaPvSt11align_val_t", NULL,
        }, *const sized[] = { "_ZdlPvm", "_ZdaPvm", NULL };

        are_the_same(every, "free");
        are_the_same(sized, "free_sized");
#endif
        (void)state;
        are_the_same(plain, "free");
        are_the_same(one, "_ZdlPv");
        are_the_same(array, "_ZdaPv");
        are_the_same(aligned, "_ZdlPvSt11align_val_t");
        are_the_same(array_aligned, "_ZdaPvSt11align_val_t");
}

static void test_size_zero(void **state)
{
        void *a = malloc(zero), *b = malloc(zero), *c = calloc(zero, 10), *d = NULL,
             *e = aligned_alloc(64, zero);

        (void)state;
        assert_int_equal(posix_memalign(&d, 32, zero), 0);
        assert_true(a && b && c && d && e && a != b && b != c && c != d && d != e);
        free(a), cfree(b), free_sized(c, 0), free_aligned_sized(d, 32, 0), free(e);
        free(NULL), cfree(NULL), free_sized(NULL, 3), free_aligned_sized(NULL, 16, 16);
        assert_int_equal(malloc_usable_size(NULL), 0);
}

static void test_realloc_to_zero_frees_like_glibc(void **state)
{
        void *object = malloc(100);

        (void)state;
        errno = 0;
        sink = realloc(object,
                       zero); /* clang takes out a call whose result is only compared with NULL */
        assert_null(sink);
        assert_int_equal(errno, 0);
        object = realloc(NULL, zero);
        assert_non_null(object);
        assert_null(reallocarray(object, 5, zero));
}

static void test_impossible_sizes(void **state)
{
        char *object = malloc(64);

        (void)state;
#define REFUSED(call) \
        do { \
                errno = 0; \
                sink = (call); \
                assert_null(sink); \
                assert_int_equal(errno, ENOMEM); \
        } while (0)
        REFUSED(malloc(too_large));
        REFUSED(malloc(SIZE_MAX - too_large + too_large));
        REFUSED(calloc(too_large, 2));
        REFUSED(calloc(too_large, 1));
        sink = object;                                  /* a refused realloc keeps the object */
        errno = 0;
        assert_null(realloc(sink, too_large));
        assert_int_equal(errno, ENOMEM);
        errno = 0;
        assert_null(reallocarray(sink, too_large, 2));
        assert_int_equal(errno, ENOMEM);
        object = sink;
        REFUSED(aligned_alloc(64, too_large));
        REFUSED(memalign(64, too_large));
        REFUSED(valloc(too_large));
        REFUSED(pvalloc(too_large));
        REFUSED(pvalloc(SIZE_MAX - too_large + too_large));
        free(object);
}

static void test_posix_memalign_leaves_all_alone_when_it_fails(void **state)
{
        void *mark = &mark, *out = mark;

        (void)state;
        errno = 77;
        assert_int_equal(posix_memalign(&out, 24, 100), EINVAL);
        assert_int_equal(posix_memalign(&out, zero, 100), EINVAL);
        assert_int_equal(posix_memalign(&out, 4, 100), EINVAL);
        assert_int_equal(posix_memalign(&out, 64, too_large), ENOMEM);
        assert_int_equal(posix_memalign(&out, too_large, 1), ENOMEM);
        assert_ptr_equal(out, mark);
        assert_int_equal(errno, 77);
        assert_int_equal(posix_memalign(&out, sizeof(void *), 100), 0);
        assert_int_equal(errno, 77);
        free(out);
}

static void test_alignments(void **state)
{
        size_t page = (size_t)sysconf(_SC_PAGESIZE);

        (void)state;
        for (size_t align = 8; align <= (size_t)4 << 20; align *= 2)
                for (size_t size = 1; size < 300000; size = size * 3 + 5) {
                        void *a = aligned_alloc(align, size), *b = memalign(align, size), *c = NULL;

                        assert_int_equal(posix_memalign(&c, align, size), 0);
                        assert_true(a && b && c);
                        assert_int_equal(((uintptr_t)a | (uintptr_t)b | (uintptr_t)c) % align, 0);
                        assert_true(malloc_usable_size(a) >= size && malloc_usable_size(b) >= size);
                        memset(a, 1, size), memset(b, 2, size), memset(c, 3, size);
                        free(a), free_aligned_sized(b, align, size), free(c);
                }

        void *v = valloc(10), *p = pvalloc(10), *p0 = pvalloc(zero), *m = memalign(odd, 10),
             *m0 = memalign(zero, 10);

        assert_true(v && p && p0 && m && m0);
        assert_int_equal(((uintptr_t)v | (uintptr_t)p | (uintptr_t)p0) % page, 0);
        assert_true(malloc_usable_size(p) >= page && malloc_usable_size(p0) >= page);
        assert_int_equal(off_by(m, 64), 0);         /* rounded up, as glibc does */
        free(v), free(p), free(p0), free(m), free(m0);

        errno = 0;
        sink = aligned_alloc(odd, 96);
        assert_null(sink);
        assert_int_equal(errno, EINVAL);
        errno = 0;
        sink = memalign(SIZE_MAX - zero, 1);
        assert_null(sink);
        assert_int_equal(errno, EINVAL);
}

/* Every size that the hot paths know, and some above; neighbours of the class stay as they are. */
static void test_calloc_clears_its_object_alone(void **state)
{
        enum { NEIGHBOURS = 40 };
        unsigned char *near[NEIGHBOURS];

        (void)state;
        for (size_t size = 0; size < 5000; size += size < 300 ? 1 : 37) {
                size_t usable = 0;
                unsigned char *object;

                for (size_t i = 0; i < NEIGHBOURS; i++) {
                        near[i] = malloc(size);
                        assert_non_null(near[i]);
                        usable = malloc_usable_size(near[i]);
                        memset(near[i], 0xff, usable);
                }
                free(near[NEIGHBOURS / 2]);
                object = size & 1 ? calloc(1, size) : calloc(2, size / 2);
                near[NEIGHBOURS / 2] = object;
                for (size_t i = 0; i < size; i++)
                        assert_int_equal(object[i], 0);
                for (size_t i = 0; i < NEIGHBOURS; i++) {
                        usable = near[i] != object ? malloc_usable_size(near[i]) : 0;
                        for (size_t k = 0; k < usable; k++)
                                assert_int_equal(near[i][k], 0xff);
                        free(near[i]);
                }
        }
}

/* From every class of the hot path to every other, and a little beyond. */
static void test_realloc_keeps_what_there_is(void **state)
{
        (void)state;
        for (size_t from = 1; from < 5000; from += 1 + from / 9)
                for (size_t to = 1; to < 5000; to += 1 + to / 7) {
                        unsigned char *object = malloc(from), *behind = malloc(to);
                        size_t common = from < to ? from : to, usable;

                        assert_true(object && behind);
                        memset(behind, 0xee, malloc_usable_size(behind));
                        for (size_t i = 0; i < from; i++)
                                object[i] = (unsigned char)(i * 7 + from);
                        object = realloc(object, to);
                        assert_non_null(object);
                        usable = malloc_usable_size(object);
                        assert_true(usable >= to && (usable <= 2 * to + 14 || usable <= 16));
                        for (size_t i = 0; i < common; i++)
                                assert_int_equal(object[i], (unsigned char)(i * 7 + from));
                        memset(object, 0xdd, usable);
                        for (size_t i = 0; i < to; i++)
                                assert_int_equal(behind[i], 0xee);
                        free(object), free(behind);
                }
}

static void test_alignments_of_every_small_size(void **state)
{
        (void)state;
        for (size_t align = 1; align <= 8192; align *= 2)
                for (size_t size = 0; size < 5000; size += 1 + size / 11) {
                        void *a = aligned_alloc(align, size), *b = NULL;

                        assert_non_null(a);
                        assert_int_equal(off_by(a, align < 16 ? 16 : align), 0);
                        assert_true(malloc_usable_size(a) >= size);
                        memset(a, 1, malloc_usable_size(a));
                        errno = 77;
                        assert_int_equal(posix_memalign(&b, align, size), align < 8 ? EINVAL : 0);
                        assert_int_equal(errno, 77);
                        assert_true(!b == (align < 8));
                        assert_int_equal(off_by(b, align), 0);
                        free(a), free(b);
                }
        for (size_t less = zero; less < 5000; less += 1 + less / 5)
                for (size_t align = 1; align && align <= too_large; align *= 2) {
                        volatile size_t most = SIZE_MAX - less; /* or compilers warn of it */

                        REFUSED(aligned_alloc(align, most));
                        REFUSED(memalign(align, most));
                }
}

static void test_errno_is_preserved(void **state)
{
        static const size_t sizes[] = {10, 1000, 30000, 200000, 10000000};

        (void)state;
        for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
                void *object = malloc(sizes[i]);

                errno = 99;
                object = realloc(object, sizes[i] / 2);
                assert_non_null(object);
                object = realloc(object, 1);
                assert_non_null(object);
                free(object);
                assert_int_equal(errno, 99);
        }
}

static void test_alignment_and_use_at_every_size(void **state)
{
        (void)state;
        for (size_t size = 1; size < 200000; size += 1 + size / 50) {
                char *object = malloc(size), *other;

                assert_non_null(object);
                assert_int_equal(off_by(object, 16), 0);
                memset(object, 5, malloc_usable_size(object));
                other = calloc(1, size);
                assert_non_null(other);
                assert_int_equal(off_by(other, 16), 0);
                assert_true(!other[0] && !other[size / 2] && !other[size - 1]);
                free(object), free(other);
        }
}

#ifdef __GLIBC__                        /* musl declares none of these */
/* @text: malloc_info's, of a moment ago. All of them say what stook_get_totals() says. */
static void check_agreement(const char *text)
{
        struct stook_totals t = { .totals_size = sizeof(t) };
        struct mallinfo2 info = mallinfo2();
        char line[200];

        assert_int_equal(stook_get_totals(&t), 0);
        assert_int_equal(info.arena, t.active_bytes + t.free_dirty_bytes);
        assert_int_equal(info.uordblks, t.allocated_bytes);
        assert_int_equal(info.uordblks + info.fordblks, info.arena);
        assert_int_equal(info.fsmblks, t.cached_bytes);
        assert_int_equal(info.smblks, t.objects_cached);
        assert_int_equal(info.ordblks, t.free_spans);
        assert_int_equal(info.usmblks, t.active_peak_bytes);
        assert_int_equal(info.keepcost, t.free_dirty_bytes);
        snprintf(line, sizeof(line), "<taken bytes=\"%" PRIu64 "\" peak=\"%" PRIu64 "\"/>\n",
                 t.active_bytes, t.active_peak_bytes);
        assert_non_null(strstr(text, line));
        snprintf(line, sizeof(line), "<allocated bytes=\"%" PRIu64 "\" objects=\"%" PRIu64 "\"/>\n",
                 t.allocated_bytes, t.objects_live);
        assert_non_null(strstr(text, line));
}

/* What malloc_stats writes to standard error. */
static void check_malloc_stats(void)
{
        struct stook_totals t = { .totals_size = sizeof(t) };
        int words = memfd_create("words", 0), standard_error = dup(STDERR_FILENO);
        char text[1000], line[200];

        dup2(words, STDERR_FILENO);
        malloc_stats();
        dup2(standard_error, STDERR_FILENO);
        text[pread(words, text, sizeof(text) - 1, 0)] = '\0';
        close(words);
        close(standard_error);
        assert_int_equal(stook_get_totals(&t), 0);
        snprintf(line, sizeof(line),
                 "stook: bytes in use %" PRIu64 "\nstook: bytes in slabs and large objects %" PRIu64
                 "\n", t.allocated_bytes, t.active_bytes);
        assert_non_null(strstr(text, line));
}

static void test_telling_and_tuning(void **state)
{
        char  *volatile held = malloc((size_t)3 << 20);
        static char text[64 << 10];
        FILE  *out = fmemopen(text, sizeof(text), "w");

        (void)state;
        assert_int_equal(mallopt(M_MMAP_THRESHOLD, 4096), 1);
        assert_int_equal(mallopt(12345, 0), 1);
        assert_true(malloc_trim(0) == 0 ||
                    malloc_trim(0) == 0); /* the second has nothing left to give */
        assert_true(mallinfo2().uordblks >= (size_t)3 << 20);
        assert_true(mallinfo2().arena >= mallinfo2().uordblks);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
        assert_true(mallinfo().uordblks >= 3 << 20);
#pragma GCC diagnostic pop
        assert_non_null(out);
        fputs("\n", out);               /* its buffer is there */
        fflush(out);
        assert_int_equal(malloc_info(0, out), 0);
        errno = 0;
        assert_int_equal(malloc_info(1, out), -1);
        assert_int_equal(errno, EINVAL);
        fflush(out);
        check_agreement(text);
        check_malloc_stats();
        fclose(out);
        assert_non_null(strstr(text, "<malloc version="));
        assert_non_null(strstr(text, "<cache name=\"malloc-"));
        assert_non_null(strstr(text, "</malloc>\n"));
        free(held);
}
#endif

static void test_trim_returns_what_was_freed(void **state)
{
        enum { OBJECTS = 20000 };
        static void *objects[OBJECTS];

        (void)state;
        for (int i = 0; i < OBJECTS; i++)
                memset(objects[i] = malloc(1000), 1, 1000);
        for (int i = 0; i < OBJECTS; i++)
                free(objects[i]);
        assert_int_equal(malloc_trim(0), 1);
}

static void test_one_heap_with_libstook(void **state)
{
        void *object = malloc(300), *other = stook_malloc(300);

        (void)state;
        assert_true(stook_owns(object));
        stook_free(object);
        free(other);
}

/* What libc allocates itself comes from us and can go back to us. */
static void test_libc_allocates_from_us(void **state)
{
        char  *line = NULL, *text = NULL;
        size_t bytes = 0;
        FILE  *in = fmemopen("some text\n", 10, "r");

        (void)state;
        assert_non_null(in);
        assert_int_equal(getline(&line, &bytes, in), 10);
        fclose(in);
        assert_true(malloc_usable_size(line) >= bytes);
        assert_true(asprintf(&text, "%d %s", 5, line) > 0);
        free(line), free(text);
        free(strdup("x"));
        free(realpath("/proc/self", NULL));
}

/* Objects of another allocator, glibc's own, as they come to a drop-in that is loaded late. */
static void test_foreign_objects_are_passed_on(void **state)
{
        void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
        void *(*libc_malloc)(size_t);

        (void)state;
        if (!libc)
                skip();
        *(void **)&libc_malloc = dlsym(libc, "malloc");
        for (size_t size = 1; size < 1000000; size = size * 5 + 1) {
                unsigned char *object = libc_malloc(size);

                assert_non_null(object);
                memset(object, 9, size);
                assert_true(malloc_usable_size(object) >= size);
                object = realloc(object, size * 2);
                assert_non_null(object);
                for (size_t i = 0; i < size; i++)
                        assert_int_equal(object[i], 9);
                free(object);
                free_sized(libc_malloc(size), size);
        }
}

/* The last: once there is a group, hot paths miss. */
static void test_aligned_objects_are_charged(void **state)
{
        struct stook_group *group = stook_group_create("aligned", NULL, 0);
        void *objects[4] = { NULL };

        (void)state;
        assert_non_null(group);
        stook_group_enter(group);
        objects[0] = aligned_alloc(64, 64);
        assert_int_equal(posix_memalign(&objects[1], 256, 256), 0);
        objects[2] = memalign(32, 96);
        objects[3] = realloc(malloc(24), 100);
        stook_group_enter(NULL);
        assert_true(objects[0] && objects[1] && objects[2] && objects[3]);
        assert_int_equal(off_by(objects[0], 64), 0);
        assert_int_equal(off_by(objects[1], 256), 0);
        assert_int_equal(off_by(objects[2], 32), 0);
        assert_true(stook_group_usage(group) >= 64 + 256 + 96 + 100);
        for (int i = 0; i < 4; i++)
                free(objects[i]);
        assert_int_equal(stook_group_usage(group), 0);
        stook_group_destroy(group);
}

/* Behind a charged object stands its group: a copy of whole pieces must not reach it. */
static void test_realloc_of_an_uncharged_object_in_a_group(void **state)
{
        struct stook_group *group = stook_group_create("copies", NULL, 0);

        (void)state;
        assert_non_null(group);
        for (size_t size = 1; size <= 4096; size++) {
                unsigned char *before = malloc(2 * size + 64), *after;

                memset(before, 0xa5, 2 * size + 64);
                stook_group_enter(group);
                after = realloc(before, size);
                stook_group_enter(NULL);
                assert_non_null(after);
                for (size_t i = 0; i < size; i++)
                        assert_int_equal(after[i], 0xa5);
                free(after);                    /* it would be reported */
                assert_int_equal(stook_group_usage(group), 0);
        }
        stook_group_destroy(group);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_every_name_is_ours),
                cmocka_unit_test(test_every_free_is_free),
                cmocka_unit_test(test_size_zero),
                cmocka_unit_test(test_realloc_to_zero_frees_like_glibc),
                cmocka_unit_test(test_impossible_sizes),
                cmocka_unit_test(test_posix_memalign_leaves_all_alone_when_it_fails),
                cmocka_unit_test(test_alignments),
                cmocka_unit_test(test_calloc_clears_its_object_alone),
                cmocka_unit_test(test_realloc_keeps_what_there_is),
                cmocka_unit_test(test_alignments_of_every_small_size),
                cmocka_unit_test(test_errno_is_preserved),
                cmocka_unit_test(test_alignment_and_use_at_every_size),
#ifdef __GLIBC__
                cmocka_unit_test(test_telling_and_tuning),
#endif
                cmocka_unit_test(test_trim_returns_what_was_freed),
                cmocka_unit_test(test_one_heap_with_libstook),
                cmocka_unit_test(test_libc_allocates_from_us),
                cmocka_unit_test(test_foreign_objects_are_passed_on),
                cmocka_unit_test(test_aligned_objects_are_charged),
                cmocka_unit_test(test_realloc_of_an_uncharged_object_in_a_group),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
