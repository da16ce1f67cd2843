/*
 * Purpose: reports of guard pages that were touched; see guard_hit.c.
 */
#ifndef STOOK_GUARD_HIT_H
#define STOOK_GUARD_HIT_H

/* At start, where large objects get guards. */
void stook_guard_hits_report(void);

#endif
