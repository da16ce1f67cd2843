/*
 * (The name is not debug.h: C++ libraries have a <debug/debug.h>, and would find this one.)
 * Purpose: debug modes of a cache: what lies around its objects, and what is checked when they come
 * and go. STOOK_DEBUG and the flags of <stook/debug.h> choose the modes by letters:
 *   F  states of objects, and sizes that frees name      U  which threads allocated and freed it
 *   Z  red zones before and behind an object             T  a line for each allocation and free
 *   P  poison in free objects                            Q  freed objects wait before reuse
 *   A  marks the cache for fault injection               V  Valgrind or ASan is told of each object
 *   C  a freed object is as its constructor made it
 * Place: called by watch and inspect; calls slab for what is out of a slab, stack, pages and
 *  report. It knows no cache: a cache has a struct stook_debug in itself.
 *
 * An object of such a cache lies at a multiple of the stride, as objects of all caches do. Its
 * stride holds:
 *
 *      object_bytes | words of other layers | red zone | tail, room and red zone of the NEXT object
 *
 * So an overrun cannot erase what the tail says of its object: the state, who allocated and freed.
 * The first object of a slab is never handed out (slab.h, keep_first), so each object that is has a
 * tail before it. The words of other layers are the group's (account/account.h) and the hidden word
 * (src/rcu).
 *
 * States of an object:
 *   FREE          in its slab, in a prefilled sheaf, or on the way       poison, zones FREE
 *   LIVE          with a user                                            zones LIVE
 *   WAITING       freed by RCU, readers may look at it                   zones LIVE
 *   QUARANTINED   freed, in the quarantine                               poison, zones FREE
 *   ISOLATED      found at fault; it is never handed out again           as it was found
 *
 * Invariants:
 *  I1 what leaves LIVE does so by a compare-and-swap of the state: of two frees at once one
 *     succeeds.
 *  I2 only the thread that made the last change of state writes zones, poison and tracks, until it
 *     stores the next state or gives the object away.
 * Concurrency: any thread, any instruction; no lock. M1: the store of a state is a release, its
 *  load an acquire: a thread that sees LIVE sees the zones. What happens in a slab orders the rest.
 * Failure: what is found is reported; the object is isolated.
 */
#ifndef STOOK_DEBUG_INTERNAL_H
#define STOOK_DEBUG_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stook/debug.h>
#include "base/compiler.h"
#include "report/report.h"
#include "slab/slab.h"

/* Of STOOK_DEBUG only: no mode that makes an object need more pages. */
#define STOOK_DEBUG_O (UINT64_C(1) << 23)
/* Of STOOK_DEBUG only: an object is freed as its constructor made it. */
#define STOOK_DEBUG_C (UINT64_C(1) << 25)
/* A memory checker is told of each object (process/checker.h): caches that have no other mode. */
#define STOOK_DEBUG_V (UINT64_C(1) << 24)
/* With it: a late use finds no new user, and sizes are known. */
#define STOOK_DEBUG_CHECKED (STOOK_DEBUG_V | STOOK_CACHE_QUARANTINE | STOOK_CACHE_CHECK)
/* The name of large objects, as of a cache. */
#define STOOK_DEBUG_LARGE "malloc-large"

/* Of a cache; const after its creation. Offsets are from an object's start. */
struct stook_debug {
        uint64_t flags;                 /* STOOK_DEBUG_*; 0: none of this holds */
        struct stook_slabs *slabs;      /* NULL: this is of one large object of malloc alone */
        const char *name;
        size_t   object_bytes;          /* the user's; of a large object: what was asked for */
        size_t   words, words_end;      /* words of other layers */
        size_t   hidden;                /* the last of these, if it is the hidden one; 0: none */
        size_t   zone_end;              /* of the red zone behind it */
        ptrdiff_t tail;                 /* before the object, but for most large ones */
        uint32_t left;                  /* bytes of the red zone before an object; 0: none */
        bool     accounted;             /* the first word is the group's */
        bool     poisons;               /* no constructor and no reader cares for free objects */
        bool     closes;                /* with V: free objects are closed to the program */
        void   (*ctor)(void *object, void *ctor_data);
        void    *ctor_data;
        void   (*dtor)(void *object, void *ctor_data);
};

struct stook_debug_args {
        uint64_t flags;                 /* STOOK_DEBUG_* */
        const char *name;
        struct stook_slabs *slabs;
        size_t object_bytes, words, words_end, hidden, align;
        bool accounted;
        bool stable;                    /* readers look at free objects */
        void (*ctor)(void *object, void *ctor_data);
        void *ctor_data;
        void (*dtor)(void *object, void *ctor_data);
};

/* ---- debug_layout.c ---- */
/* Sets @debug. Returns the bytes that a stride needs behind @words_end (slab.h, tail_bytes). */
size_t stook_debug_init(struct stook_debug *debug, const struct stook_debug_args *args);

/*
 * Sets @debug for a large object: of @bytes in all, the tail at their end; or with a @lead at their
 * beginning, and the object so many bytes behind that. Without @made the object has no tail yet,
 * and @requested bytes of it are the user's.
 */
void stook_debug_init_large(struct stook_debug *debug, uint64_t flags, const void *made,
                            size_t requested, size_t bytes, size_t lead);
/* Bytes that a large object needs behind what is asked for. */
size_t stook_debug_large_room(uint64_t flags);

/* ---- debug_object.c ---- */
/* The constructor of all slabs of a debugged cache: an object is FREE from here on. */
void stook_debug_make(void *object, void *debug);
/* The destructor of all slabs of a debugged cache that has one. The object is to be made anew. */
void stook_debug_unmake(void *object, void *debug);
/*
 * @object goes from its slab to a user that asked for @bytes. False: it is at fault, which
 * was reported, and isolated.
 */
bool stook_debug_alloc(const struct stook_debug *debug, void *object, size_t bytes);

/* The same of a large object that has no tail yet: nothing is known of its bytes. */
void stook_debug_alloc_large(const struct stook_debug *debug, void *object, size_t bytes);

struct stook_debug_free {
        bool   has_size;                /* the caller names the bytes that it asked for */
        bool   waited;                  /* readers have left: the object is WAITING */
        bool   ends;                    /* set by stook_debug_free itself */
        size_t bytes;
};
/* What becomes of an object that a user frees. */
enum stook_debug_freed {
        STOOK_DEBUG_KEPT,               /* nothing: it is no live object, or at fault */
        STOOK_DEBUG_GOES,               /* it is FREE, and goes to its slab */
        STOOK_DEBUG_QUARANTINED,        /* to the quarantine */
};
enum stook_debug_freed stook_debug_free(const struct stook_debug *debug, void *object,
                                        struct stook_debug_free how);
/*
 * A live object is freed by RCU, so it waits for readers. False: the object is not live, or is at
 * fault, which was reported; it is not freed.
 */
bool stook_debug_wait(const struct stook_debug *debug, void *object);
/* The free by RCU was refused: the object is its user's as before. */
void stook_debug_wait_undo(const struct stook_debug *debug, void *object);
/* Out of the quarantine. True: it is FREE, and goes to its slab. False: at fault, isolated. */
bool stook_debug_leave(const struct stook_debug *debug, void *object);

/*
 * With F, in the drop-in: a live object was made by that entry point (enum stook_entry_point); it
 * is to be freed by that one. False: it was made by *@was, which is to be reported.
 */
void stook_debug_made(const struct stook_debug *debug, void *object, unsigned by);
bool stook_debug_goes(const struct stook_debug *debug, const void *object, unsigned by,
                      unsigned *was);
void stook_debug_report_mismatch(const struct stook_debug *debug, const void *object,
                                 const char *detail);

/* The bytes that the user of a live object asked for, or STOOK_NO_OBJECT. */
size_t stook_debug_requested(const struct stook_debug *debug, const void *object);
/*
 * A live object is to have @bytes, at most object_bytes. False: the object is not live, or is at
 * fault, which was reported.
 */
bool stook_debug_resize(const struct stook_debug *debug, void *object, size_t bytes);

/* Isolated objects go to their slabs, made anew: the cache is to be destroyed. Quiescent. */
void stook_debug_end(const struct stook_debug *debug);

/* ---- debug_closed.c: what was memory of a cache that was destroyed ---- */
/* @debug's cache is to be destroyed: its slabs lose their access, and are given later. */
void stook_debug_close_slabs(const struct stook_debug *debug);
/*
 * What is known of the object that @address lies in, if it lies in such a slab, which gets its
 * access back: the process ends. False: it does not.
 */
bool stook_debug_describe_closed(uintptr_t address, struct stook_report_about *about);

/* ---- debug_check.c ---- */
/* Checks all objects of the cache; quiescent. Returns faults found, each of which is reported. */
int stook_debug_validate(const struct stook_debug *debug);
/* The same of one large object, live or in the quarantine. */
int stook_debug_validate_large(const struct stook_debug *debug, void *object);
/*
 * What is known of the object that @pointer lies in: sizes, and its tracks. For
 * reports of other layers. @pointer lies in a slab of the cache.
 */
void stook_debug_describe(const struct stook_debug *debug, const void *pointer,
                          struct stook_report_about *about);

/* ---- debug_options.c ---- */
/* At start: reads STOOK_DEBUG. */
void stook_debug_read_options(void);
/* Does STOOK_DEBUG ask for anything? */
bool stook_debug_is_asked(void);
/* What it asks for a cache of that name: STOOK_DEBUG_*. */
uint64_t stook_debug_wanted(const char *name);
/* Is a cache's @name the one asked for, of @n bytes, which may end with `*`? */
bool stook_debug_name_fits(const char *asked_for, size_t n, const char *name);
/* At exit: one line for each name in STOOK_DEBUG that no cache had. */
void stook_debug_tell_unused(void);
/* Called when modes are asked for, and when a cache is made that has some. */
void stook_debug_note_process(void);
/* Is this another process than the one in which that was noted first? */
bool stook_debug_is_child(void);
/* The least bytes of a red zone; Z=BYTES. */
size_t stook_debug_zone_bytes(void);
/* Z=guard: objects of malloc's with Z have pages of their own (watch_large.c). */
bool stook_debug_guards(void);
/* Bytes that may wait in the quarantine. */
uint64_t stook_debug_quarantine_bytes(void);

/* ---- quarantine.c ---- */
/*
 * Makes room for @limit bytes, once. Called when a cache that uses it is made; registry mutex, or
 * at start.
 */
void stook_quarantine_start(uint64_t limit);

/* How objects leave. */
struct stook_leaving {
        /*
         * Before a put takes @object out: its cache, *@cache, is not destroyed before `end`. False:
         * it may be under way, and the destroy takes the object out. @object may have left by now,
         * and its memory may be another cache's: then the put does not find it in its place.
         */
        bool   (*begin)(const void *object, void **cache);
        /* @object has left. @how: of the free that makes it leave. Return: its bytes. */
        size_t (*leave)(void *object, uint64_t how);
        void   (*end)(void *cache);
};

/*
 * Puts @object of @bytes there. To make room, objects leave: those that have waited longest, or
 * @object itself if there is no room for it.
 */
void stook_quarantine_put(void *object, size_t bytes, uint64_t how,
                          const struct stook_leaving *by);

/*
 * All objects leave for which @is returns true; @data is its second argument. They are of a cache
 * that only the caller destroys, and that refuses `begin`.
 */
void stook_quarantine_flush(bool (*is)(const void *object, const void *data), const void *data,
                            const struct stook_leaving *by);

/* Bytes that wait there now. */
uint64_t stook_quarantine_bytes(void);

/* ---- fail.c: allocations that fail on purpose, to test a program's handling of ENOMEM ---- */
/* At start: reads STOOK_FAIL. */
void stook_fail_read_options(void);

/* Was STOOK_FAIL given? Then caches whose names it names, or all, are watched. */
bool stook_fail_is_asked(void);

/* Are those that fail told? */
bool stook_fail_tells(void);

/* May allocations from a cache of that name fail? */
bool stook_fail_wants(const char *name);
#define STOOK_FAIL_LARGE "large"        /* the name of large objects */

/* Did an allocation fail, and was that told? */
bool stook_fail_has_told(void);
/* At exit: one line for each term of STOOK_FAIL that nothing in the process was meant by. */
void stook_fail_tell_unused(void);

/*
 * Is this allocation of @bytes, from a cache or of malloc, to fail? The caller then does what it
 * does when there is no memory.
 */
bool stook_fail_strikes(const char *name, size_t bytes);
/* The same for a large object of malloc, which no cache marks. */
bool stook_fail_strikes_large(size_t bytes);

#endif
