/*
 * Purpose: foreign pointers (foreign.h). A process has them when the drop-in is loaded late
 * (dlopen), when something allocates past it, or when another preloaded library has an allocator.
 * Place: called by entry.c and new_delete.c; calls the next definitions of the same names, the
 * C++ library, and misuse reports.
 * Invariants:
 *  I1 free, realloc and malloc_usable_size are looked up at the first foreign pointer: few programs
 *     have one. Before the first fork, too: in a child the loader's lock may have no holder. What
 *     dlsym itself frees meanwhile goes to __libc_free. Where libc has none, that does nothing.
 *     Under STOOK_DEBUG a pointer to the program's own data or stack is reported, not passed on.
 *  I2 pointers inside our ranges never come here: if nothing lives there, that is reported, not
 *     passed on.
 * Concurrency: M1: the release of `found` pairs with its acquire: the table is written before.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/thread.h"
#include "cache/cache.h"
#include "debug/debug_modes.h"
#include "foreign.h"
#include "os/os.h"
#include "process/process.h"
#include "report/report.h"

extern void __libc_free(void *object) __attribute__((weak));

/* Atomic, relaxed: all that write store the same. */
static struct {
        void  (*free)(void *object);
        void *(*realloc)(void *object, size_t size);
        size_t (*usable)(void *object);
} next;
static bool found;                      /* atomic: M1 */

STOOK_INLINE void set(void *function, const char *name)
{
        __atomic_store_n((void **)function, dlsym(RTLD_NEXT, name), __ATOMIC_RELAXED);
}

/* False: this is a call of dlsym on top of the look. */
STOOK_INLINE bool look_up(void)
{
        static void *looker;            /* atomic: stook_self of a thread that looks */
        int before = errno;

        if (__atomic_load_n(&found, __ATOMIC_ACQUIRE))
                return true;
        if (__atomic_load_n(&looker, __ATOMIC_RELAXED) == stook_self)
                return false;
        __atomic_store_n(&looker, stook_self, __ATOMIC_RELAXED);
        set(&next.free, "free");
        set(&next.realloc, "realloc");
        set(&next.usable, "malloc_usable_size");
        __atomic_store_n(&looker, NULL, __ATOMIC_RELAXED);
        __atomic_store_n(&found, true, __ATOMIC_RELEASE);
        errno = before;
        return true;
}

void stook_foreign_look_up(void)
{
        (void)look_up();
}

void stook_foreign_free(void *object)
{
        if (!look_up()) {
                if (__libc_free)
                        __libc_free(object);
        } else if (stook_debug_is_asked() && stook_process_is_program_memory(object)) {
                stook_cache_free_misuse(NULL, object);
        } else if (next.free) {
                next.free(object);
        } else {
                stook_cache_free_misuse(NULL, object);  /* no other allocator can have made it */
        }
}

void *stook_foreign_realloc(void *object, size_t size)
{
        if (look_up() && next.realloc)
                return next.realloc(object, size);
        stook_cache_free_misuse(NULL, object);
        errno = ENOMEM;
        return NULL;
}

size_t stook_foreign_usable(void *object)
{
        return look_up() && next.usable ? next.usable(object) : 0;
}

/*
 * Not looked up at start: the C++ library may be loaded later, and is needed only when memory runs
 * out. It may also have been loaded privately, where RTLD_NEXT does not see it.
 */
static void *of_cxx(const char *name)
{
        static const char *const libraries[] = {"libstdc++.so.6", "libc++.so.1"};
        void *found = dlsym(RTLD_NEXT, name);

        for (size_t i = 0; !found && i < STOOK_ARRAY_SIZE(libraries); i++) {
                void *handle = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);

                if (handle) {
                        found = dlsym(handle, name);
                        dlclose(handle);        /* it stays loaded: it was before */
                }
        }
        return found;
}

void *stook_next_dlopen;

/* At the first dlopen, not at start: most programs call none. Two threads find the same. */
void *stook_find_next_dlopen(void)
{
        void *next_one = dlsym(RTLD_NEXT, "dlopen");

        if (&stook_fork_look_up)
                stook_fork_look_up();
        __atomic_store_n(&stook_next_dlopen, next_one, __ATOMIC_RELAXED);
        return next_one;
}

static STOOK_COLD _Noreturn void no_cxx(void)
{
        static const char text[] = "stook: out of memory in operator new, "
                                   "and no C++ library to throw bad_alloc\n";

        stook_os_write(text, sizeof(text) - 1);
        stook_os_abort();
}

/* NULL: none, or no C++ library that knows. */
static void *new_handler(void)
{
        void *(*get)(void);

        *(void **)&get = of_cxx("_ZSt15get_new_handlerv");
        return get ? get() : NULL;
}

void stook_foreign_no_memory(void)
{
        void *handler = new_handler();
        void (*call)(void);

        *(void **)&call = handler ? handler : of_cxx("_ZSt17__throw_bad_allocv");
        if (!call)
                no_cxx();
        call();
}

/* size_t is mangled m on every system here. */
void *stook_foreign_new_nothrow(size_t size, const void *nothrow)
{
        void *(*new)(size_t, const void *);

        *(void **)&new = new_handler() ? of_cxx("_ZnwmRKSt9nothrow_t") : NULL;
        return new ? new(size, nothrow) : NULL;
}

void *stook_foreign_new_aligned_nothrow(size_t size, size_t align, const void *nothrow)
{
        void *(*new)(size_t, size_t, const void *);

        *(void **)&new = new_handler() ? of_cxx("_ZnwmSt11align_val_tRKSt9nothrow_t") : NULL;
        return new ? new(size, align, nothrow) : NULL;
}
