/*
 * Purpose: huge pages: which fresh memory asks for them, which of them a purge may break, and which
 * are asked for again where purged memory is taken. And the bound of mappings that this may cost.
 * Place: span_grow.c and own_mapping.c ask before they get memory, and tell what they got. purge.c
 *  tells what it is about to drop. Behind it: the system's advice for mappings.
 * How: a huge page is faulted in and cleared as a whole, so it makes memory resident that a program
 *  may never touch. By default the library asks for them only where the process is large, and only
 *  if the memory that requests of the same kind got before was written (policy/huge.h). It times
 *  the first fault of each growth by huge pages. While these take longer than as many bytes in
 *  small faults, it asks for none.
 * A map has one bit for each 2 MiB that were advised. A purge that takes a part of them clears the
 *  bit, and advises against a huge page there. Otherwise the system would make it whole again in
 *  the background, and what was given back would be resident once more.
 * Concurrency: any thread, without the node's lock. The map's bits, and what is known, are hints: a
 *  lost race costs a system call, or a huge page.
 * Invariant: I1 booked is at most STOOK_MAPPINGS_MOST.
 * Failure: where the system refuses advice, nothing is asked any more.
 */
#ifndef STOOK_ADVICE_H
#define STOOK_ADVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "policy/huge.h"

#define STOOK_HUGE_PAGE ((size_t)2 << 20)

struct stook_pages_node;
struct stook_span;

/* By need (see above), as the system sets them, wherever memory is got, never. */
enum stook_thp { STOOK_THP_AUTO, STOOK_THP_SYSTEM, STOOK_THP_ALWAYS, STOOK_THP_NEVER };
void stook_pages_set_thp(enum stook_thp policy);

/*
 * Atomic, relaxed: so many more huge faults were dear than were not. At STOOK_HUGE_DEAR no huge
 * page is asked for, but one after a time, to try. Before that a process waits for about six, since
 * growth (span_grow.c) makes two at a time at first.
 */
extern uint32_t stook_huge_dear STOOK_HIDDEN;

/*
 * Which sets of the bins may serve a request of @bytes, while memory can be had: a bit for each.
 * Huge pages that a node grew by for slabs serve slabs alone, which fill them; and slabs take no
 * other clean memory while growth for them asks for huge pages.
 */
unsigned stook_huge_sets(const struct stook_pages_node *node, size_t bytes);
/* The node grew by the huge page at @addr for slabs. */
bool stook_huge_is_for_slabs(uintptr_t addr);
/* @node grows for a request of @bytes. True: by whole huge pages. */
bool stook_huge_wanted(struct stook_pages_node *node, size_t bytes);
/*
 * It is not known yet whether what is so large is written, so its memory begins and ends with huge
 * pages, which stook_span_fresh_will_be_written may ask for.
 */
bool stook_huge_may_be_wanted(const struct stook_pages_node *node, size_t bytes);
/*
 * It grew by these pages, of which the first @need are for a request of @request bytes. @huge: what
 * stook_huge_wanted said, if it could be done.
 */
void stook_huge_grown(struct stook_pages_node *node, size_t need, size_t request, uintptr_t start,
                      size_t bytes, bool huge);
/* A mapping of its own gets @more bytes behind its first @have. True: they should be huge. */
bool stook_huge_own_wanted(struct stook_pages_node *node, uintptr_t start, size_t have,
                           size_t more);
/* These pages, which are whole huge pages, are to be huge: a user of theirs says so. */
void stook_huge_ask(uintptr_t start, size_t bytes);
/* Huge pages are asked for at @addr, and none of it was purged apart. */
bool stook_huge_is_advised(uintptr_t addr);
/* These free pages are about to be purged. */
void stook_huge_purge(struct stook_pages_node *node, uintptr_t start, size_t bytes);
/*
 * A request of @request bytes begins the huge pages from @start to @end, which lie free and purged.
 * True: they are worth taking whole, to be asked for again.
 */
bool stook_huge_may_come_again(const struct stook_pages_node *node, size_t request,
                               uintptr_t start, uintptr_t end);
/*
 * They were taken, and are in hands. Each was small, or was purged in parts. It is asked for again
 * if what is taken is written as a rule.
 */
void stook_huge_taken_again(struct stook_pages_node *node, size_t request, uintptr_t start,
                            uintptr_t end);

/*
 * ---- mappings ----
 * The system gives a process so many (vm.max_map_count, 65,530 by default). At the end of them the
 * program cannot map a file or start a thread, and a range cannot grow. Pages without access
 * (harden/guard.c) and advice against huge pages part mappings. Both book here before they do, so
 * together they leave half of all mappings to the program. One counter, relaxed: nothing else
 * follows from it. A booking that is refused may be seen for a moment by another thread, which is
 * then refused, too.
 */

#define STOOK_MAPPINGS_MOST 32768       /* half of what the system gives by default */
/*
 * A span with guards: its own, both guards, and free memory beside it, which was written and does
 * not merge any more.
 */
#define STOOK_MAPPINGS_GUARDED 4
/*
 * Advice against a huge page in the midst of others, or for one in the midst of small pages, parts
 * a mapping in three.
 */
#define STOOK_MAPPINGS_BREAK 2

/* False: refused, and nothing is booked. */
bool stook_mappings_book(unsigned mappings);
/* Of what was booked. */
void stook_mappings_unbook(unsigned mappings);

#endif
