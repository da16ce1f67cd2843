/*
 * Purpose: what `stook info` prints of a look at a heap, in three forms.
 */
#ifndef STOOK_CLI_INFO_H
#define STOOK_CLI_INFO_H

#include <stdio.h>
#include "cli/heap/heap.h"
#include "cli/memory/target.h"
#include "cli/text/json.h"

struct info_view {
        const char *name;               /* pattern of names (fnmatch), or NULL: all */
        const char *sort;               /* one of info_sorts, or NULL: by bytes of slabs */
        bool        all;                /* caches that never had a slab, too */
        bool        details;            /* each cache at length */
        bool        shares;             /* slabs by the share of their objects that are out */
        bool        by_slot;            /* objects in each slot */
};

/* Names of --sort, NULL at the end. */
extern const char *const info_sorts[];

/*
 * The caches of the view, sorted. Return: how many; SIZE_MAX: no memory. The array is the caller's
 * to free.
 */
size_t info_choose(const struct heap *heap, const struct info_view *view,
                   const struct heap_cache ***chosen);

void info_text(const struct heap *heap, const struct info_view *view, FILE *out);
/* One object, of an array or (@key) of an object. */
void info_json(const struct heap *heap, const struct info_view *view, const char *library,
               struct json *json);
/*
 * An array "libraries": each copy of the target, with everything of it. Return: 0; -errno: the
 * array has what could be read before. @why, of 160 bytes, says in a line what the matter is.
 */
int info_json_all(struct target *target, struct json *json, char *why);
/*
 * The text format of Prometheus, version 0.0.4, or that of OpenMetrics, without its last line.
 * Metrics of all heaps stand together, so this takes them all; they may be of several processes.
 */
void info_prometheus(const struct heap *const *heaps, size_t count, const struct info_view *view,
                     bool openmetrics, FILE *out);

/* Letters for what a cache is, as in the kernel's slabinfo where it has them; 16 bytes. */
const char *info_flags(const struct heap_cache *cache, char letters[16]);
/* The modes of <stook/debug.h>, as in STOOK_DEBUG; "": none. 16 bytes. */
const char *info_debug(const struct heap_cache *cache, char letters[16]);
/* Address of the constructor that the user gave; 0: none. */
uint64_t info_ctor(const struct heap_cache *cache);
/* Where an option has its value from; NULL: it has the default. */
const char *info_option_source(const struct stook_option_state *option);
/* Bytes of all slabs, from counts. */
uint64_t info_space_bytes(const struct heap_cache *cache);

#endif
