/*
 * Proves that a thread with restartable sequences finds out how long its huge faults take. A fault
 * during which another thread ran is not counted, so this goes on until one was undisturbed.
 */
#include <stdlib.h>
#include <string.h>
#include <stook/malloc.h>
#include <stook/stook.h>

#include "base/inject.h"
#include "base/thread.h"
#include "huge_env.h"

#define BYTES   ((size_t)1000)
#define OBJECTS ((size_t)100000)        /* 100 MB, of which most comes in huge pages */

int main(void)
{
        static char *object[OBJECTS];

        stook_free(stook_malloc(BYTES));
        if (!has_huge_pages() || !stook_self->rseq) {
                puts("no huge pages, or no restartable sequences");
                return 77;
        }
        while (!stook_inject.faults_timed) {
                for (size_t i = 0; i < OBJECTS; i++) {
                        object[i] = stook_malloc(BYTES);
                        if (!object[i])
                                return 1;
                        memset(object[i], 7, BYTES);
                }
                for (size_t i = 0; i < OBJECTS; i++)
                        stook_free(object[i]);
                stook_trim(0);
        }
        printf("%u huge faults timed\n", stook_inject.faults_timed);
        return 0;
}
