/*
 * Purpose: the bound of mappings that the library makes of its own accord. The system gives a
 * process so many (vm.max_map_count, 65,530 by default). At the end of them the program cannot map
 * a file or start a thread, and a range cannot grow. Pages without access (guard.c) and advice
 * against huge pages (huge.c) part mappings. Both book here, so together they leave half of all
 * mappings to the program.
 * Place: guard.c and huge.c book before they part a mapping.
 * Invariant: I1 booked is at most STOOK_MAPPINGS_MOST.
 * Concurrency: one counter, relaxed: nothing else follows from it. A booking that is refused may
 *  be seen for a moment by another thread, which is then refused, too.
 */
#ifndef STOOK_MAPPINGS_H
#define STOOK_MAPPINGS_H

#include <stdbool.h>

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
