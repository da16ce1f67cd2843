/*
 * Purpose: the points of slow calls where tracers look in: static probes (USDT) of the provider
 *  `stook`, for bpftrace, perf and SystemTap. A probe is one `nop` and a note in the ELF file that
 *  says where the arguments are.
 * Place: any layer. Without <sys/sdt.h> at build time, and in every place that this header does not
 *  name, there is nothing.
 * Concurrency: a probe changes nothing and calls nothing.
 *
 * Probes, with their arguments. Sizes in bytes; a cache is the number in <stook/stats.h>'s order.
 *   sheaf_refill   cache index, objects, node       objects came from slabs into a sheaf
 *   sheaf_flush    cache index, objects             a sheaf's objects went into their slabs
 *   slab_new       cache index, address, bytes      a slab was cut from a run of pages
 *   slab_free      cache index, address, bytes      an empty slab went back
 *   large_alloc    address, bytes                   an object above malloc's classes
 *   large_free     address, bytes
 *   pages_commit   address, bytes                   memory was asked of the system
 *   pages_purge    address, bytes, done             content was given back; done 0: refused
 *   alloc_fail     (none)                           an allocation fails with ENOMEM
 */
#ifndef STOOK_PROBE_H
#define STOOK_PROBE_H

#ifdef STOOK_USDT
#include <sys/sdt.h>
#define STOOK_PROBE(name)             DTRACE_PROBE(stook, name)
#define STOOK_PROBE2(name, a, b)      DTRACE_PROBE2(stook, name, a, b)
#define STOOK_PROBE3(name, a, b, c)   DTRACE_PROBE3(stook, name, a, b, c)
#else
#define STOOK_PROBE(name)             ((void)0)
#define STOOK_PROBE2(name, a, b)      ((void)0)
#define STOOK_PROBE3(name, a, b, c)   ((void)0)
#endif

#endif
