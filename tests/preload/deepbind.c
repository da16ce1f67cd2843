/*
 * Proves that a library opened with RTLD_DEEPBIND shares the drop-in's heap with the program, as
 * PHP's extensions must. Its malloc and free are the program's.
 * The drop-in's dlopen stands between the library and the linker and is not taken for the caller.
 * The linker searches the RUNPATH of the library that calls, other flags arrive, and errors are the
 * real ones.
 */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include <stook/malloc.h>

#ifndef RTLD_DEEPBIND                   /* musl */
#define RTLD_DEEPBIND 0
#endif

static const char *module;
static char outer[4096], inner[4096], folder[4096];

static void *open_plugin(const char *path, int flags)
{
        void *handle = dlopen(path, flags);

        if (!handle)
                fail_msg("%s", dlerror());
        return handle;
}

static void test_one_heap(void **state)
{
        void *handle = open_plugin(outer, RTLD_LAZY | RTLD_GLOBAL | RTLD_DEEPBIND), *object;
        void (*(*its_free)(void))(void *);
        void *(*give)(size_t);
        char *(*copy)(const char *);
        void (*take)(void *);

        (void)state;
        *(void **)&its_free = dlsym(handle, "plugin_free_address");
        *(void **)&give = dlsym(handle, "plugin_give");
        *(void **)&copy = dlsym(handle, "plugin_copy");
        *(void **)&take = dlsym(handle, "plugin_take");
        assert_ptr_equal(its_free(), free);
        for (size_t size = 1; size < 1000000; size = size * 3 + 1) {
                object = give(size);
                assert_true(stook_owns(object));
                free(object);
                take(malloc(size));
        }
        object = copy("text");          /* by libc's strdup */
        assert_true(stook_owns(object));
        take(object);
        assert_int_equal(dlclose(handle), 0);
}

static void test_runpath_of_the_caller(void **state)
{
        void *handle = open_plugin(outer, RTLD_NOW | RTLD_LOCAL), *found;
        void *(*open_other)(const char *, int);

        (void)state;
        *(void **)&open_other = dlsym(handle, "plugin_open");
        assert_null(dlopen("stook-inner.so", RTLD_NOW));        /* not the program's RUNPATH */
#ifndef __GLIBC__
        skip();                                 /* musl looks at the RUNPATH of the program alone */
#endif
        for (int deep = 0; deep < 2; deep++) {
                found = open_other("stook-inner.so", RTLD_NOW | (deep ? RTLD_DEEPBIND : 0));
                if (!found)
                        fail_msg("%s", dlerror());
                assert_ptr_equal(found, open_plugin(inner, RTLD_NOW | RTLD_NOLOAD));
                for (int i = 0; i < 2; i++)
                        assert_int_equal(dlclose(found), 0);
        }
        assert_int_equal(dlclose(handle), 0);
}

static void test_the_rest_is_as_it_was(void **state)
{
        void *handle;

        (void)state;
#ifndef __GLIBC__
        skip();                                 /* musl's dlclose unloads nothing */
#endif
        assert_null(dlopen("/nonexistent/library.so", RTLD_NOW | RTLD_DEEPBIND));
        assert_non_null(strstr(dlerror(), "/nonexistent/library.so"));
        assert_null(dlopen(inner, RTLD_NOW | RTLD_NOLOAD | RTLD_DEEPBIND));
        handle = open_plugin(inner, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
        assert_null(dlsym(RTLD_DEFAULT, "plugin_give"));
        open_plugin(inner, RTLD_NOW | RTLD_GLOBAL | RTLD_DEEPBIND);
        assert_non_null(dlsym(RTLD_DEFAULT, "plugin_give"));
        assert_non_null(dlopen(NULL, RTLD_NOW | RTLD_DEEPBIND));
        for (int i = 0; i < 2; i++)
                assert_int_equal(dlclose(handle), 0);
}

/* A test's module, twice: in a folder and in one below, where the module's RUNPATH points. */
static int setup(void **state)
{
        char command[20000];
        const char *tmp = getenv("TMPDIR");

        snprintf(folder, sizeof(folder), "%s/stook-deepbind-XXXXXX", tmp ? tmp : "/tmp");
        (void)state;
        if (!module || !mkdtemp(folder))
                return -1;
        snprintf(outer, sizeof(outer), "%.3000s/stook-outer.so", folder);
        snprintf(inner, sizeof(inner), "%.3000s/inner/stook-inner.so", folder);
        snprintf(command, sizeof(command), "mkdir '%s/inner' && cp '%s' '%s' && cp '%s' '%s'",
                 folder, module, outer, module, inner);
        return system(command);
}

static int teardown(void **state)
{
        char command[5000];

        (void)state;
        snprintf(command, sizeof(command), "rm -rf '%s'", folder);
        return system(command);
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_one_heap),
                cmocka_unit_test(test_runpath_of_the_caller),
                cmocka_unit_test(test_the_rest_is_as_it_was),
        };

        module = argc > 1 ? argv[1] : NULL;
        return cmocka_run_group_tests(tests, setup, teardown);
}
