/*
 * Purpose: what sample.c and guarded.c ask of each other.
 */
#ifndef STOOK_SAMPLE_INSIDE_H
#define STOOK_SAMPLE_INSIDE_H

#include "profile/profile.h"
#include "sample/sample.h"

/* Is a sample of @bytes to be guarded? NULL: no. Then stook_guarded_begin, or _drop. */
struct stook_guarded *stook_guarded_claim(size_t bytes);
void stook_guarded_drop(struct stook_guarded *guarded);
/*
 * Before its span, taken with STOOK_HOW_GUARDED, is an object: where it lies in it. False: it has
 * no guards, or is not worth them; it lies at the start of its span, as any other.
 */
bool stook_guarded_begin(struct stook_guarded *guarded, struct stook_span *span, size_t bytes,
                         size_t align, const struct stook_profile_life *life);
/* By the call that won its free. */
void stook_guarded_end(struct stook_span *span);

#endif
