/*
 * Purpose: the only door to the system. Everything the library asks of the kernel or of libc's
 * start-up data stands here; each function preserves errno and none allocates.
 * Place: called by pages (mappings), slot (rseq, membarrier), life (start), report (write). After
 * start only mmap, mremap, madvise, mprotect, munmap and futex are used, unless an evacuation, a
 * trim or a tuning was asked for (membarrier), a call was jumped out of (sigaltstack), an RCU
 * implementation comes (files of /proc and /sys), an own thread outlives the program's first one
 * (/proc), or a report is written.
 */
#ifndef STOOK_OS_H
#define STOOK_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- map.c: mappings; sizes and addresses are multiples of the system's page size ---- */

/*
 * Reserves address space (PROT_NONE), aligned to @align (a power of two). NULL: refused.
 */
void *stook_os_reserve(size_t bytes, size_t align);
/* Gives a whole reservation back. Only for one into which no pointer is left anywhere. */
void stook_os_unreserve(void *addr, size_t bytes);
/*
 * Maps fresh zero pages, readable and writable, over a part of a reservation. False: no memory.
 * Then what was there may be gone, and have no access; the address range stays ours.
 */
bool stook_os_commit(void *addr, size_t bytes);
/*
 * A reservation of its own for @bytes, all of it committed: zeros, which take no memory before they
 * are written. NULL: no memory.
 */
void *stook_os_zeroed(size_t bytes);
/*
 * Makes a part of a reservation readable and writable, content kept: may be done twice, by two
 * threads at once.
 */
bool stook_os_enable(void *addr, size_t bytes);
/* No access to a part of it any more, until it is opened; its memory stays. False: refused. */
bool stook_os_close(void *addr, size_t bytes);
/* What was enabled once, and closed, in whole or in part: all of it has access again. */
bool stook_os_open(void *addr, size_t bytes);
/* Puts PROT_NONE back over it; the address range stays ours (no hole). False: kept as it was. */
bool stook_os_decommit(void *addr, size_t bytes);
/* Makes a part of a reservation readable: zeros, without memory. */
bool stook_os_show(void *addr, size_t bytes);
/* Drops the pages' content; they read as zeros again. False: they do not (mlocked, or refused). */
bool stook_os_purge(void *addr, size_t bytes);
enum stook_os_move {
        STOOK_OS_MOVED,
        STOOK_OS_STAYED,                /* nothing changed: copy instead */
        /*
         * @from is as it was. @to may have a hole, which the mmap of another thread may have taken:
         * it is never to be touched again.
         */
        STOOK_OS_LOST,
};
/*
 * Moves the pages of [from, from+bytes) to [to, to+bytes), leaving [from...) mapped (empty):
 * MREMAP_DONTUNMAP. @to has just been committed. The kernel unmaps @to first, and finds out then
 * whether the process may have so many bytes: if @to was within its limits, the moved pages are,
 * unless a limit was lowered meanwhile. After a refusal no pages are moved any more, by any thread:
 * at most as much is lost as threads were moving at that time.
 */
enum stook_os_move stook_os_move(void *from, void *to, size_t bytes);
/*
 * At start, before anything is reserved: from here on mappings are named "stook" in
 * /proc/PID/maps. Each commit takes one more system call (prctl).
 */
void stook_os_name_mappings(void);
enum stook_os_advice {
        STOOK_OS_HUGEPAGE, STOOK_OS_NOHUGEPAGE, STOOK_OS_DONTDUMP, STOOK_OS_WIPEONFORK,
        STOOK_OS_POPULATE,              /* made resident now; refused before Linux 5.14 */
};
bool stook_os_advise(void *addr, size_t bytes, enum stook_os_advice advice);

/* ---- limits.c ---- */
size_t   stook_os_page_bytes(void);             /* 4, 16 or 64 KiB; from the auxiliary vector */
/* The bytes of as many pages as @bytes need. @bytes: at most SIZE_MAX less a page. */
static inline size_t stook_os_whole_pages(size_t bytes)
{
        size_t page = stook_os_page_bytes();

        return (bytes + page - 1) & ~(page - 1);
}
/* Finite RLIMIT_AS, or RLIMIT_MEMLOCK where it can bind; UINT64_MAX: none. */
uint64_t stook_os_address_limit(void);
/* RLIMIT_AS; UINT64_MAX: none. */
uint64_t stook_os_space_limit(void);
/* What the system counts against it. Reads a file; 0: not known. */
uint64_t stook_os_mapped_bytes(void);
/* Bytes of addresses that the machine has for a program: a power of two. */
uint64_t stook_os_address_space(void);
uint64_t stook_os_address_limit_at_start(void); /* asked at the first call only; at least 1 */
/* Smallest of RAM and cgroup memory.max; UINT64_MAX: unknown. Reads files. */
uint64_t stook_os_memory_bytes(void);
/* A page just mapped is mlocked: mlockall(MCL_FUTURE) is in force. Its content goes. */
bool     stook_os_is_locked(void *fresh);

/* ---- cpu.c ---- */
/* Highest possible CPU number + 1, at least 1. Reads a file. */
unsigned stook_os_possible_cpus(void);
/*
 * No less than that, and no file is read: what the kernel has room for in its masks; 0: more than
 * STOOK_CPUS_FEW, or not to be told. *@allowed: CPUs that this thread may run on now.
 */
#define STOOK_CPUS_FEW 256
unsigned stook_os_cpus_bound(unsigned *allowed);

unsigned stook_os_cpu(void);                    /* that runs this thread, a hint */

/* ---- cpu.c: the kernel's way to write sets of numbers: "0-3,8" ---- */
/* A list as it is read, piece by piece. All zero: at its start. */
struct stook_number_list {
        uint32_t first, number;
        bool     digits, range, bad;
};

typedef void stook_number_range(uint32_t first, uint32_t last, void *data);

/*
 * Reads on, calling @each for every range that is over. Anything but digits, '-' and ',' ends one,
 * and is skipped.
 */
void stook_number_list_read(struct stook_number_list *list, const char *text, size_t bytes,
                            stook_number_range *each, void *data);
/*
 * The end: the last range. False: it was no list (a range without an end or backwards, a number
 * above UINT32_MAX).
 */
bool stook_number_list_end(struct stook_number_list *list, stook_number_range *each, void *data);

/* All ranges of a file. False: no such file, or no list. Preserves errno. */
bool stook_number_list_file(const char *path, stook_number_range *each, void *data);

/* ---- topology.c: NUMA nodes, by the kernel's numbers; until detected, one node, 0 ---- */
/* Machines with higher node numbers are taken for one node. */
#define STOOK_NODES_MAX 64

/* Reads /sys, or STOOK_TOPOLOGY. Once, at start. */
void     stook_os_topology_detect(void);
unsigned stook_os_node_count(void);             /* highest node number + 1 */
bool     stook_os_node_exists(unsigned node);   /* any number may be asked */
bool     stook_os_node_has_memory(unsigned node);
/* Where what is allocated on a node comes from: the node itself, or the nearest one with memory. */
unsigned stook_os_node_home(unsigned node);
/* Of a CPU, which is of a slot too. */
unsigned stook_os_node_of_cpu(unsigned cpu);
/* True: STOOK_TOPOLOGY made the nodes up; the kernel knows none of them. */
bool     stook_os_topology_is_fake(void);
/* Slots that a fake one asks for at least; 0: does not. */
unsigned stook_os_topology_slots(void);

/* ---- mempolicy.c ---- */
/*
 * Asks the system to take the pages of a mapping from a node. False: it refuses such calls.
 */
bool stook_os_prefer_node(void *addr, size_t bytes, unsigned node);
/*
 * True: all memory that this task may have is of one node. False: of several, or the system does
 * not say.
 */
bool stook_os_has_one_memory(void);
/* True: this task's pages go by a policy other than the system's default. */
bool stook_os_has_policy(void);
/* The node that the task's policy names for an allocation made on node @here. */
unsigned stook_os_task_node(unsigned here);

/* ---- thread_end.c ---- */
/*
 * A key: @end is called at the end of each thread that armed it, with the pointer it was armed
 * with, which must not be NULL. Negative: no key is known to be armed without an allocation. A key
 * is for ever, unless it is dropped before any thread armed it. Any thread, handlers too: glibc
 * exchanges a word, musl blocks signals while it holds its lock.
 */
int  stook_os_thread_end_key(void (*end)(void *value));
void stook_os_thread_end_key_drop(int key);
bool stook_os_thread_end_arm(int key, void *value);
/* Has this thread armed it? */
bool stook_os_thread_end_is_armed(int key);

/* ---- rseq.c ---- */
enum stook_rseq_owner { STOOK_RSEQ_NONE, STOOK_RSEQ_LIBC, STOOK_RSEQ_OWN };
/* Finds out, once, what registers rseq areas in this process, and whether mm_cid is written. */
void stook_os_rseq_detect(void);
enum stook_rseq_owner stook_os_rseq_owner(void);
/*
 * Calls @before at the end of each thread whose area is ours, with its stook_thread_v1, while the
 * area is still registered. At start.
 */
void stook_os_rseq_before_end(void (*before)(void *));
bool stook_os_rseq_has_mm_cid(void);
/*
 * This thread's registered area, registering the own one of its stook_thread_v1 if libc makes none
 * (its end at thread exit included). NULL: not to be had; the thread is then barred for good.
 */
char *stook_os_rseq_area(void);

bool stook_os_membarrier_register(void);        /* PRIVATE_EXPEDITED_RSEQ; false: locked mode */
bool stook_os_membarrier(void);                 /* one round; false: refused now */
/* The same, for memory alone: a full fence on every CPU that runs this process. */
bool stook_os_membarrier_register_memory(void);
bool stook_os_membarrier_memory(void);

/* ---- env.c ---- */
/* Has the process more rights than its caller: is it set-user-ID, or has it capabilities? */
bool stook_os_is_secure(void);
#define STOOK_ENV_PREFIX "STOOK_"
/*
 * The first variable of the environment that begins so; others may follow it, up to a NULL. None
 * where the process is secure.
 */
char **stook_os_env_first(void);
/* Variables that stand in for the environment; NULL: none do. Written at start, by one thread. */
extern char **stook_os_env_instead;
/* Value of a STOOK_* variable; NULL: not set, or the process is secure. */
const char *stook_os_env(const char *name);
/* One line on stderr that @name's value makes no sense and what it takes; the default is used. */
void stook_os_env_refuse(const char *name, const char *value, const char *takes);
/* One line on stderr that what @name names cannot be used, and @why. */
void stook_os_env_fail(const char *name, const char *path, const char *why);
/* One line on stderr: "stook: ", the first @n bytes of @name (100 at most), @says, @more. */
void stook_os_env_tell(const char *name, size_t n, const char *says, const char *more);

/* ---- thread_end.c: handlers ---- */
/*
 * False: this code runs on the alternate signal stack (sigaltstack), and @address is not of that.
 */
bool stook_os_same_stack(uintptr_t address);
/*
 * True: this code runs on the alternate signal stack, or a signal is blocked that has a handler. A
 * signal is blocked while its handler runs, except with SA_NODEFER. With SA_RESETHAND it has no
 * handler any more. So handlers with these flags are not seen, nor those that unblock or reset
 * their signal. A thread that blocks such signals for other reasons seems to be in one.
 */
bool stook_os_may_be_in_handler(void);

/* ---- random.c, time.c, write.c ---- */
/* Seeded once from AT_RANDOM, or the clock; any thread. */
uint64_t stook_os_random(void);
uint64_t stook_os_clock_ms(void);               /* monotonic, coarse, by the vDSO */
uint64_t stook_os_clock_ns(void);               /* the same clock, fine: 20 to 100 ns */
uint64_t stook_os_real_ns(void);                /* since 1970 */
void stook_os_futex_wait(uint32_t *word, uint32_t value, uint64_t ns);
/* Sleeps for @ns, or less if a signal comes. For a thread that no other one wakes. */
void stook_os_pause(uint64_t ns);
void stook_os_futex_wake(uint32_t *word);
void stook_os_futex_wake_all(uint32_t *word);
/* The word is not zero. False also if it cannot be read: other threads may protect its page. */
bool stook_os_word_is_set(uint32_t *word);
/*
 * Has a descriptor of standard error of its own from here on, for the two below when the program
 * has closed its own: many programs do so at exit.
 */
void stook_os_keep_stderr(void);
void stook_os_write(const char *text, size_t bytes); /* to stderr; loops over short writes */
/* Atomic. What the two write goes to it first; true: it is done. NULL: to stderr. */
extern bool (*stook_os_output)(const char *text, size_t bytes);
struct iovec;
void stook_os_write_line(const struct iovec *parts, int n); /* likewise, by one write */
/* Puts that descriptor back in place: in a copy of the process, for a helper that it executes. */
void stook_os_restore_stderr(void);
_Noreturn void stook_os_abort(void);

#endif
