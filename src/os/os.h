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
/* No access to a part of it any more, until it is enabled; its memory stays. False: refused. */
bool stook_os_close(void *addr, size_t bytes);
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

#define STOOK_CPUS_MAX 8192
struct stook_cpus {
        uint64_t mask[STOOK_CPUS_MAX / 64];
        uint64_t one[STOOK_CPUS_MAX / 64];      /* scratch: of one thread */
        unsigned count;                 /* 0: not to be told */
};
/*
 * CPUs that are online and that some thread of this process may run on, now. Reads a folder of
 * /proc.
 */
void stook_os_allowed_cpus(struct stook_cpus *cpus);
unsigned stook_os_cpu(void);                    /* that runs this thread, a hint */

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

/* ---- own_thread.c ---- */
#define STOOK_OS_RCU_THREAD         "stook-rcu"         /* libstook-urcu's threads, too */
#define STOOK_OS_MAINTENANCE_THREAD "stook-maintain"

struct stook_own_thread {
        void (*run)(void);              /* const */
        const char *name;               /* const: one of those above */
        uint64_t signals;               /* what the thread that started it had blocked */
};

/*
 * Starts a thread of the library's own: detached, all signals blocked. @thread is for ever, and has
 * one such thread at a time. 0, or the error of pthread_create(3), negative.
 */
int stook_os_own_thread(struct stook_own_thread *thread);
/* Called by such a thread: have all others ended? Then it must return. */
bool stook_os_only_own_threads(void);

/* ---- rseq_register.c ---- */
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

/* ---- membarrier.c ---- */
bool stook_os_membarrier_register(void);        /* PRIVATE_EXPEDITED_RSEQ; false: locked mode */
bool stook_os_membarrier(void);                 /* one round; false: refused now */
/* The same, for memory alone: a full fence on every CPU that runs this process. */
bool stook_os_membarrier_register_memory(void);
bool stook_os_membarrier_memory(void);

/* ---- pressure.c: is memory scarce? For calls now and then; reads files ---- */
/*
 * True: since the last call tasks stood still for lack of memory for more than a tenth of the time
 * (PSI, of the process's cgroup or of the machine), or the cgroup passed its memory.high or
 * memory.max. The first call only notes.
 */
bool stook_os_pressure(void);

/* ---- shared_file.c: a file shared with another process; for STOOK_STATS and STOOK_NOTES ---- */
/*
 * Maps a regular file, at most @at_most bytes of it, shared and without access. NULL: cannot be
 * opened or mapped.
 */
void *stook_os_map_file(const char *path, size_t at_most, size_t *bytes);
/* Makes a part of it readable and writable. */
bool stook_os_open_file_part(void *addr, size_t bytes);
/*
 * Makes the pages of an opened part. False: the file system is full, a write would be SIGBUS.
 */
bool stook_os_populate_file_part(void *addr, size_t bytes);
/*
 * Sets the byte number @n, below 8, of those behind @magic, with which the file begins. Any other
 * file stays as it is.
 */
void stook_os_mark_file(const char *path, uint64_t magic, unsigned n);
uint32_t stook_os_pid(void);
uint32_t stook_os_parent_pid(void);

/* ---- trace_file.c: the file that a recording appends to; only for STOOK_RECORD ---- */
/*
 * Opens or makes it. Return: 0; -errno; -EBADMSG: it is no regular file, or has content that does
 * not begin with @magic.
 */
int stook_os_trace_open(const char *path, uint64_t magic);
/* One write at its end. False: it was not taken; the first time, one line on stderr says why. */
bool stook_os_trace_write(const void *bytes, size_t n);

/* ---- output.c: a file that takes its name when it is whole ---- */
#define STOOK_OUTPUT_PATH 1024
struct stook_output {
        int    fd, error;
        size_t bytes;                   /* in the buffer */
        char   path[STOOK_OUTPUT_PATH], temporary[STOOK_OUTPUT_PATH];
        char   buffer[4096];
};
/* "%p" in @path becomes the process number. Return: 0; -errno. */
int  stook_output_begin(struct stook_output *o, const char *path);
/* At most 4096 bytes. */
void stook_output_put(struct stook_output *o, const void *bytes, size_t n);
/* @keep false: the file is dropped. Return: 0: it has its name; -errno of the first failure. */
int  stook_output_end(struct stook_output *o, bool keep);

/* ---- env.c ---- */
/* Has the process more rights than its caller: is it set-user-ID, or has it capabilities? */
bool stook_os_is_secure(void);
/*
 * Value of a STOOK_* variable, from the initial environment; NULL: not set, or the process is
 * set-user-ID.
 */
const char *stook_os_env(const char *name);
/* One line on stderr that @name's value makes no sense and what it takes; the default is used. */
void stook_os_env_refuse(const char *name, const char *value, const char *takes);
/* One line on stderr that what @name names cannot be used, and @why. */
void stook_os_env_fail(const char *name, const char *path, const char *why);
/* One line on stderr: "stook: ", the first @n bytes of @name (100 at most), @says, @more. */
void stook_os_env_tell(const char *name, size_t n, const char *says, const char *more);

/* ---- env_spelling.c ---- */
/* A line on stderr for each variable whose name looks like that of another one, misspelt. */
void stook_os_env_check_spelling(void);
/* Each variable that begins with STOOK_; none in set-user-ID programs. @known: the library's. */
void stook_os_env_for_each(void (*each)(const char *name, size_t name_bytes, const char *value,
                                        bool known, void *data), void *data);

/* ---- signal_stack.c ---- */
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

/* ---- read_memory.c ---- */
/*
 * Copies memory of this process by the kernel. False: not all of it is there, or the system refuses
 * such calls.
 */
bool stook_os_read_memory(void *to, const void *from, size_t bytes);

/* ---- lines.c ---- */
/*
 * Calls @each for each line of a file, until it answers true. False: the file cannot be read.
 */
bool stook_os_each_line(const char *path, bool (*each)(const char *line, void *data), void *data);

/* ---- child.c ---- */
/*
 * Forks; the child calls @ask, and ends. *@answer: what that returned. Return: 0; -errno: no child,
 * or no pipe; -EIO: the child ended before it answered.
 */
int stook_os_ask_child(int (*ask)(void), int *answer);

/* ---- helper.c ---- */
/* Stacks of the two children that execute a helper. */
struct stook_helper {
        char outer[8192], inner[8192];
};
/*
 * Executes argv[0] (a path), gives it @request on its standard input, and reads what it answers, at
 * most @room bytes, until it closes its standard output. Waits @wait_ms at most. Returns bytes of
 * the answer; 0: none.
 */
size_t stook_os_ask_helper(struct stook_helper *helper, char *const *argv, const char *request,
                           size_t bytes, char *answer, size_t room, unsigned wait_ms);
/* May this process execute the file? */
bool stook_os_is_executable(const char *path);
/* ---- process_copy.c ---- */
/*
 * A child that is this process as it stands, with this thread alone and all signals blocked, to
 * look at its memory. Return: in the child 0, in the parent its number; negative: none can be made.
 * *@pipe: for the child's answer.
 */
int stook_os_process_copy(int *pipe);
/* The child's end. */
void stook_os_process_copy_end(int to_parent, const void *answer, size_t bytes);
/* In the parent: waits for it. False: the child gave no such answer. */
bool stook_os_process_copy_answer(int pid, int from_child, void *answer, size_t bytes);

/* Adds to a file, which is made if need be, in one write. Return: 0 or -errno. */
int stook_os_append(const char *path, const char *text, size_t bytes);
/* Could that be done now, as far as the name tells? Nothing is opened. Return: 0; -errno. */
int stook_os_may_append(const char *path);

/* ---- error_words.c ---- */
/* What a file could not be opened or written for. @error: a positive errno. Never NULL. */
const char *stook_os_error_words(int error);

/* ---- program_memory.c ---- */
/* Does @address lie in a file of the program, in its data, or on the stack of its first thread? */
bool stook_os_is_program_memory(const void *address);

/* ---- self.c ---- */
/* The name of the program, without folders. */
const char *stook_os_program(void);
/* The kernel's number of this thread; that of the first one is the process id. */
uint32_t stook_os_thread_number(void);
/* At most 15 bytes, for this thread, in /proc and debuggers. */
void stook_os_name_thread(const char *name);

/* ---- program.c ---- */
/* What is added to an address in the program's file, to have the one in memory. */
uintptr_t stook_os_program_base(void);

/* ---- random.c, clock.c, futex.c, write.c ---- */
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
struct iovec;
void stook_os_write_line(const struct iovec *parts, int n); /* likewise, by one write */
/* Puts that descriptor back in place: in a copy of the process, for a helper that it executes. */
void stook_os_restore_stderr(void);
_Noreturn void stook_os_abort(void);

#endif
