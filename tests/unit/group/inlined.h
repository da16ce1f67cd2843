/*
 * Inlined calls, for tests that include the library's own headers, too: its sections and those of
 * <stook/inline.h> do not go into one file.
 */
#ifndef UNIT_GROUP_INLINED_H
#define UNIT_GROUP_INLINED_H

struct stook_cache;

void *inlined_alloc(struct stook_cache *cache);
void inlined_free(struct stook_cache *cache, void *object);

#endif
