/*
 * Purpose: system calls that the system refuses from here on, for a test's child: mappings over
 * ours, what gives their memory back, and what makes them readable.
 */
#ifndef PAGES_REFUSE_H
#define PAGES_REFUSE_H

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* All calls of @call with @value as argument @arg. False: this system filters none. */
static inline bool refuse_call(int call, unsigned arg, uint32_t value)
{
        struct sock_filter filter[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 3),
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                         (uint32_t)(offsetof(struct seccomp_data, args) + 8 * arg)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = { .len = sizeof(filter) / sizeof(*filter), .filter = filter };

        return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
               !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static inline bool refuse_mappings_over_ours(void)
{
        return refuse_call(SYS_mmap, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED);
}

static inline bool refuse_purges(void)
{
        return refuse_call(SYS_madvise, 2, MADV_DONTNEED);
}

#endif
