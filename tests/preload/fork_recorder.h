/* What fork_recorder.c has seen. fork.c reads it. */
#ifndef STOOK_TEST_FORK_RECORDER_H
#define STOOK_TEST_FORK_RECORDER_H

#define RECORDED_MOST 8

extern struct recorded {
        unsigned count;
        unsigned forks;
        unsigned count_before_fork;
        void (*prepare[RECORDED_MOST])(void);
} recorded;

#endif
