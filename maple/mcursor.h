/*
 * Purpose: what the cursor files share.
 */
#ifndef STOOK_MCURSOR_H
#define STOOK_MCURSOR_H

#include "mtree.h"

/* The cursor is in no leaf any more: the next call walks down. */
static inline void mcursor_leave(struct stook_maple_cursor *cursor, enum stook_maple_status status)
{
        cursor->node = NULL;
        cursor->status = (unsigned char)status;
}

/* The next call begins at `first`, and not beside [first, last]. */
static inline bool mcursor_nowhere(const struct stook_maple_cursor *cursor)
{
        return cursor->status == STOOK_MAPLE_CURSOR_START ||
               cursor->status == STOOK_MAPLE_CURSOR_ERROR;
}

#endif
