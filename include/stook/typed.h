/*
 * <stook/typed.h> - caches of one type, checked by the compiler
 *
 *      STOOK_DEFINE_CACHE(routes, struct route);       // the type `union routes`
 *      static union routes routes;
 *
 *      if (!stook_typed_create(&routes, "route", NULL))
 *              return -errno;
 *      struct route *route = stook_new(&routes);       // to another type's pointer: warned of
 *      stook_delete(&routes, route);
 *      return stook_cache_destroy(routes.cache);
 *
 * The macros name the type once. From there on the compiler knows the size, the alignment and what
 * a pointer points to. A pointer of another type that is freed does not compile. One that gets a
 * new object is warned of, and an error with gcc 14 or -Werror=incompatible-pointer-types. The
 * calls behind the macros are those of <stook/cache.h>, and nothing else runs: errors, threads and
 * signals are as there. Every other call of <stook/cache.h> takes the member `cache`.
 *
 * C++ has STOOK_DEFINE_CACHE() alone, for headers of both, and stook::object_cache.
 */
#ifndef STOOK_TYPED_H
#define STOOK_TYPED_H

#include <stook/cache.h>

/*
 * STOOK_DEFINE_CACHE() - define a type for caches of objects of a type
 * @name: the type is `union name`. It has the member `cache`, which is the caller's to read: NULL,
 *        or what stook_typed_create() made. A static one without initializer has NULL.
 * @type: of the objects: complete where the calls below are used
 */
#define STOOK_DEFINE_CACHE(name, type) \
        union name { \
                struct stook_cache *cache; \
                __typeof__(type) *object;       /* never used: it carries the type */ \
        }

#ifndef __cplusplus

/*
 * stook_typed_create() - stook_cache_create() with the type's size and alignment
 * @typed: a pointer to a cache of STOOK_DEFINE_CACHE()
 * @name, @args: as there: NULL, or STOOK_CACHE_ARGS(.ctor = make). The larger of `align` and
 *        the type's alignment counts.
 * Return: the cache, which is in the member `cache` then; NULL with errno.
 */
#define stook_typed_create(typed, name, args) \
        ((typed)->cache = stook_typed_create_aligned(name, sizeof(*(typed)->object), \
                                                     __alignof__(*(typed)->object), args))

/*
 * stook_new() - stook_cache_alloc()
 * stook_new_zeroed() - stook_cache_zalloc()
 * Return: a pointer to the cache's type.
 */
#define stook_new(typed) ((__typeof__(&*(typed)->object))stook_cache_alloc((typed)->cache))
#define stook_new_zeroed(typed) ((__typeof__(&*(typed)->object))stook_cache_zalloc((typed)->cache))

/*
 * stook_delete() - stook_cache_free()
 * @pointer: a pointer to the cache's type; NULL needs a type, too
 */
#define stook_delete(typed, pointer) \
        stook_cache_free((typed)->cache, STOOK_OBJECT_OF(typed, pointer))

/*
 * STOOK_OBJECT_OF() - @pointer, if it points to the cache's type; else the program does not compile
 * For calls without a macro: stook_cache_free_rcu(routes.cache, STOOK_OBJECT_OF(&routes, route)).
 */
#define STOOK_OBJECT_OF(typed, pointer) \
        _Generic((pointer), __typeof__(&*(typed)->object): (pointer))

/* What stook_typed_create() calls. @align: bytes, a power of two */
static inline __attribute__((unused)) struct stook_cache *
stook_typed_create_aligned(const char *name, size_t size, size_t align,
                           const struct stook_cache_args *args)
{
        struct stook_cache_args aligned = { .args_size = sizeof(aligned) };

        if (!args || (args->args_size == sizeof(aligned) && args->align < align)) {
                if (args)
                        aligned = *args;
                aligned.align = align;
                args = &aligned;
        }
        return stook_cache_create(name, size, args);
}

#endif
#endif
