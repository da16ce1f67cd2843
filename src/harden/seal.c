/*
 * Purpose: see seal.h: the secret, and what is not inlined.
 */
#include "harden/seal.h"

#include "harden/harden.h"
#include "os/os.h"

uint64_t stook_seal_secret[2];

void stook_seal_start(void)
{
        stook_seal_secret[0] = stook_os_random();
        stook_seal_secret[1] = stook_os_random() | 1;
}

/* What is looked at when it is handed out is zero from the first time on. */
void stook_seal_make(void *object, void *at)
{
        if (stook_is_hardened(STOOK_HARDEN_CHECK_FREE))
                memset(object, 0, (uintptr_t)at);
        else
                stook_seal_fill(object);
        *stook_seal_word_of(object, (uintptr_t)at) = stook_seal_of(object, 0);
}

bool stook_seal_reads_zero(const void *object, size_t bytes)
{
        const stook_seal_word *word = object;
        uint64_t all = 0;

        for (size_t i = 0; i < bytes / 8; i++)
                all |= word[i];
        return !all;
}
