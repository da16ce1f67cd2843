/*
 * Purpose: what the two cursor files share.
 */
#ifndef STOOK_MCURSOR_H
#define STOOK_MCURSOR_H

#include "mtree.h"

/* Not in a leaf any more: the next call walks down. */
static inline void mcursor_leave(struct stook_cursor *cursor, enum stook_cursor_status status)
{
        cursor->node = NULL;
        cursor->status = (unsigned char)status;
}

#endif
