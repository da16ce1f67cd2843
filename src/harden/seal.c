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
                stook_seal_fill(stook_seal_key(object), object, 0);
        *stook_seal_word_of(object, (uintptr_t)at) = stook_seal_of_free(stook_seal_key(object), 0);
}

bool stook_seal_reads_zero(const void *object, size_t bytes)
{
        typedef uint64_t piece __attribute__((vector_size(16), may_alias));
        const piece *at = object;
        piece all = { 0 };

        for (; bytes >= 64; bytes -= 64, at += 4)
                all |= at[0] | at[1] | at[2] | at[3];
        for (const uint64_t *word = (const uint64_t *)at; bytes; bytes -= 8)
                all[0] |= *word++;
        return !(all[0] | all[1]);
}
