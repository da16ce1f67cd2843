/* A library that allocates in its constructor, for early_class.c. */
#include <stdlib.h>
#include "early_library.h"

struct early early;

__attribute__((constructor)) static void allocate(void)
{
        early.aligned = aligned_alloc(64, EARLY_BYTES);
        early.plain = malloc(EARLY_BYTES);
}
