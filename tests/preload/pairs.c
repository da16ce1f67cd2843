/*
 * Proves: under STOOK_HARDEN=pairs an object is freed by the call that belongs to the one that made
 * it: free, delete or delete[], aligned if the new was, sized or not; of each other pair the
 * drop-in reports a mismatch, for objects of every size. The operators are called by their names:
 * no C++ is needed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <stook/debug.h>

void *_Znwm(size_t size);
void *_Znam(size_t size);
void *_ZnwmSt11align_val_t(size_t size, size_t align);
void *_ZnamSt11align_val_t(size_t size, size_t align);
void *_ZnwmRKSt9nothrow_t(size_t size, const void *nothrow);
void *_ZnamRKSt9nothrow_t(size_t size, const void *nothrow);
void _ZdlPv(void *object);
void _ZdaPv(void *object);
void _ZdlPvm(void *object, size_t size);
void _ZdaPvm(void *object, size_t size);
void _ZdlPvSt11align_val_t(void *object, size_t align);
void _ZdaPvSt11align_val_t(void *object, size_t align);

enum { MALLOC, NEW, ARRAY, WAYS };

static unsigned reports;
static enum stook_fault last;

static void note(const struct stook_report *report, void *data)
{
        (void)data;
        reports++;
        last = report->fault;
}

static void *(*volatile allocate)(size_t) = malloc;
static void (*volatile release)(void *) = free;

static void *make(int way, int form, size_t size)
{
        switch (way * 3 + form % 3) {
        case MALLOC * 3: return allocate(size);
        case MALLOC * 3 + 1: return calloc(1, size);
        case MALLOC * 3 + 2: return aligned_alloc(64, size);
        case NEW * 3: return _Znwm(size);
        case NEW * 3 + 1: return _ZnwmSt11align_val_t(size, 64);
        case NEW * 3 + 2: return _ZnwmRKSt9nothrow_t(size, "");
        case ARRAY * 3: return _Znam(size);
        case ARRAY * 3 + 1: return _ZnamSt11align_val_t(size, 64);
        default: return _ZnamRKSt9nothrow_t(size, "");
        }
}

static void end(int way, int form, void *object, size_t size)
{
        switch (way * 3 + form % 3) {
        case NEW * 3: _ZdlPv(object); break;
        case NEW * 3 + 1: _ZdlPvSt11align_val_t(object, 64); break;
        case NEW * 3 + 2: _ZdlPvm(object, size); break;
        case ARRAY * 3: _ZdaPv(object); break;
        case ARRAY * 3 + 1: _ZdaPvSt11align_val_t(object, 64); break;
        case ARRAY * 3 + 2: _ZdaPvm(object, size); break;
        default: release(object); break;
        }
}

static void pairs_are_compared(void **state)
{
        static const size_t sizes[] = { 1, 24, 64, 1000, 5000, 100000, 131072, 300000, 50000000 };

        (void)state;
        for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
                for (int k = 0; k < WAYS * WAYS * 9; k++) {
                        int by = k % WAYS, to = k / WAYS % WAYS, form = k / (WAYS * WAYS);
                        char *object = make(by, form / 3, sizes[i]);

                        assert_non_null(object);
                        object[0] = object[sizes[i] - 1] = 1;
                        end(to, form, object, sizes[i]);
                        assert_int_equal(reports, by != to || (by != MALLOC &&
                                                               (form / 3 == 1) != (form % 3 == 1)));
                        if (reports)
                                assert_int_equal(last, STOOK_FAULT_MISMATCH);
                        reports = 0;
                }
}

static void a_wrong_size_is_found(void **state)
{
        void *volatile object = _Znwm(40);     /* or clang leaves out both */

        (void)state;
        _ZdlPvm(object, 48);
        assert_int_equal(reports, 1);
        assert_int_equal(last, STOOK_FAULT_WRONG_SIZE);
        reports = 0;
        _ZdlPvm(object, 40);
        assert_int_equal(reports, 0);
}

static void nothing_is_freed_by_any(void **state)
{
        (void)state;
        for (int k = 0; k < WAYS * 3; k++)
                end(k % WAYS, k / WAYS, NULL, 0);
        assert_int_equal(reports, 0);
}

/* What realloc moves is malloc's. */
static void realloc_makes_it_mallocs(void **state)
{
        char *object = allocate(10);

        (void)state;
        for (size_t size = 20; size < 2000000; size *= 2)
                assert_non_null(object = realloc(object, size));
        release(object);
        assert_int_equal(reports, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(pairs_are_compared),
                cmocka_unit_test(a_wrong_size_is_found),
                cmocka_unit_test(nothing_is_freed_by_any),
                cmocka_unit_test(realloc_makes_it_mallocs),
        };

#ifndef __x86_64__
        return 77;
#endif
        stook_on_report(note, NULL);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
