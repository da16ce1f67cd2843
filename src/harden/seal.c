/*
 * Purpose: see seal.h: the secret, and what is not inlined.
 */
#include "harden/seal.h"

#include "harden/harden.h"
#include "os/os.h"

struct stook_seal_secret stook_seal_secret;

/* Each round doubles the bits that are right; of an odd number its own three lowest are. */
static uint64_t inverse_of(uint64_t odd)
{
        uint64_t inverse = odd;

        for (unsigned right = 3; right < 64; right *= 2)
                inverse *= 2 - odd * inverse;
        return inverse;
}

void stook_seal_start(void)
{
        stook_seal_secret.address = stook_os_random();
        stook_seal_secret.factor = stook_os_random() | 1;
        stook_seal_secret.tie = stook_os_random() | 1;
        stook_seal_secret.untie = inverse_of(stook_seal_secret.tie);
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
        piece all = { *(const stook_seal_word *)((const char *)object + bytes - 8) };

        for (; bytes >= 64; bytes -= 64, at += 4)
                all |= at[0] | at[1] | at[2] | at[3];
        for (; bytes >= 16; bytes -= 16)
                all |= *at++;
        return !(all[0] | all[1]);
}
