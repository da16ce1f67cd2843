/*
 * Purpose: the release the program runs on, which need not be the one it was compiled against.
 * Place: API; calls nothing.
 */
#include <stook/control.h>
#include <stook/version.h>

STOOK_PUBLIC const char *stook_version(void)
{
        return STOOK_VERSION;
}
