/*
 * Purpose: a file that this command makes and the processes of a program open by its path: without
 * a name, or else, where that cannot be, in /dev/shm, $TMPDIR or /tmp.
 */
#ifndef STOOK_CLI_SHARED_FILE_H
#define STOOK_CLI_SHARED_FILE_H

#include <limits.h>
#include <stdbool.h>

struct shared_file {
        char path[PATH_MAX];            /* by which processes open it */
        int  fd;                        /* -1: there is none */
        bool nameless;                  /* nothing to be unlinked */
};

/* An empty file. Return: 0; -errno. */
int  shared_file_make(struct shared_file *file);
/* Also one that could not be made. */
void shared_file_remove(struct shared_file *file);

#endif
