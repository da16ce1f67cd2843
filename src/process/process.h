/*
 * Purpose: what features ask of the system: other processes that answer, files that the user has
 * named, threads of the library's own, the names and the memory of this process, memory checkers.
 * Each function preserves errno, and none allocates but where it says so.
 * Place: beside os, which has what an allocation itself asks of the system. No allocation and no
 * free calls this, but to report misuse, to record, or to tell a checker.
 */
#ifndef STOOK_PROCESS_H
#define STOOK_PROCESS_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <stook/options.h>
#include "base/compiler.h"

/* ---- option_source.c: <stook/options.h>; the names: env_spelling.c ---- */
#define STOOK_OPTIONS 29
extern const char *const stook_option_names[];          /* [STOOK_OPTIONS], by the alphabet */
/* By the index of the name. Zeros: the default. Readers outside look at it, too (life/root.h). */
struct stook_option_state {
        char     name[STOOK_OPTION_NAME_BYTES];         /* once it has a value */
        char     value[STOOK_OPTION_VALUE_BYTES];
        uint32_t source;                /* enum stook_option_source */
};
extern struct stook_option_state stook_option_states[] STOOK_HIDDEN;
/* At start, before anything reads an option. */
void stook_options_gather(void);
bool stook_options_are_locked(void);
/* Any case. -1: there is none. */
int stook_option_index(const char *name, size_t bytes);
/* From here on it has @value. Any thread. */
void stook_option_note(int index, const char *value, enum stook_option_source source);

/* ---- self.c ---- */
uint32_t stook_process_id(void);
uint32_t stook_process_parent_id(void);
/* The name of the program, without folders. */
const char *stook_process_name(void);
/* The program's file, in @bytes bytes, cut; "": not known. */
void stook_process_path(char *path, size_t bytes);
/* The kernel's number of this thread; that of the first one is the process id. */
uint32_t stook_process_thread_id(void);
/* At most 15 bytes, for this thread, in /proc and debuggers. */
void stook_process_name_thread(const char *name);
/* What is added to an address in the program's file, to have the one in memory. */
uintptr_t stook_process_program_base(void);
/* Does @address lie in a file of the program, in its data, or on the stack of its first thread? */
bool stook_process_is_program_memory(const void *address);
/*
 * Copies memory of this process by the kernel. False: not all of it is there, or the system refuses
 * such calls.
 */
bool stook_process_read_memory(void *to, const void *from, size_t bytes);
/*
 * Calls @each for each line of a file, until it answers true. False: the file cannot be read.
 */
bool stook_file_each_line(const char *path, bool (*each)(const char *line, void *data), void *data);

/* ---- own_thread.c ---- */
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
void stook_process_allowed_cpus(struct stook_cpus *cpus);

#define STOOK_RCU_THREAD         "stook-rcu"         /* libstook-urcu's threads, too */
#define STOOK_MAINTENANCE_THREAD "stook-maintain"

struct stook_own_thread {
        void (*run)(void);              /* const */
        const char *name;               /* const: one of those above */
        uint64_t signals;               /* what the thread that started it had blocked */
};

/*
 * Starts a thread of the library's own: detached, all signals blocked. @thread is for ever, and has
 * one such thread at a time. 0, or the error of pthread_create(3), negative.
 */
int stook_own_thread_start(struct stook_own_thread *thread);
/* Called by such a thread: have all others ended? Then it must return. */
bool stook_own_threads_are_alone(void);

/* ---- child.c ---- */
/* No handler runs in this thread until the other call. Return: for that. */
uint64_t stook_process_handlers_block(void);
void stook_process_handlers_allow(uint64_t before);

/*
 * Forks; the child calls @ask, and ends. The library makes no thread beside that. *@answer: what
 * @ask returned. Return: 0; -errno: no child, or no pipe; -EIO: the child ended before it answered.
 */
int stook_process_ask_child(int (*ask)(void), int *answer);

/* Stacks of the two children that execute a helper. */
struct stook_helper {
        char outer[8192], inner[8192];
};
/*
 * Executes argv[0] (a path), gives it @request on its standard input, and reads what it answers, at
 * most @room bytes, until it closes its standard output. Waits @wait_ms at most. Returns bytes of
 * the answer; 0: none.
 */
size_t stook_process_ask_helper(struct stook_helper *helper, char *const *argv, const char *request,
                           size_t bytes, char *answer, size_t room, unsigned wait_ms);
/* May this process execute the file? */
bool stook_process_is_executable(const char *path);

/*
 * A child that is this process as it stands, with this thread alone and all signals blocked, to
 * look at its memory. Return: in the child 0, in the parent its number; negative: none can be made.
 * *@pipe: for the child's answer.
 */
int stook_process_copy(int *pipe);
/* The child's end. */
void stook_process_copy_end(int to_parent, const void *answer, size_t bytes);
/* In the parent: waits for it. False: the child gave no such answer. */
bool stook_process_copy_answer(int pid, int from_child, void *answer, size_t bytes);

/* ---- file.c ---- */
/* What a file could not be opened or written for. @error: a positive errno. Never NULL. */
const char *stook_file_error_words(int error);
/*
 * To open @path for writing: O_NOFOLLOW where its folder is one that everybody writes to (/tmp), so
 * that nobody's link there leads to another file; else 0.
 */
STOOK_INLINE int stook_file_open_flags(const char *path)
{
        const char *slash = strrchr(path, '/');
        size_t bytes = slash ? (size_t)(slash - path) + 1 : 2;
        char folder[512] = "./";
        struct stat st;
        int before = errno;
        bool shared;

        if (bytes >= sizeof(folder))
                return O_NOFOLLOW;
        if (slash)
                memcpy(folder, path, bytes);
        shared = stat(folder, &st) || ((st.st_mode & S_ISVTX) && (st.st_mode & S_IWOTH));
        errno = before;
        return shared ? O_NOFOLLOW : 0;
}
/* Adds to a file, which is made if need be, in one write. Return: 0 or -errno. */
int stook_file_append(const char *path, const char *text, size_t bytes);
/* Could that be done now, as far as the name tells? Nothing is opened. Return: 0; -errno. */
int stook_file_may_append(const char *path);
/* Beyond a limit of sizes a write fails, and SIGXFSZ, which is sent then, is taken back. */
long stook_file_write_quietly(int fd, const void *bytes, size_t n);

/* ---- file.c: a file that takes its name when it is whole ---- */
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

/* ---- shared_file.c: a file shared with another process; for STOOK_STATS and STOOK_NOTES ---- */
/*
 * Maps a regular file, at most @at_most bytes of it, shared and without access. NULL: cannot be
 * opened or mapped.
 */
void *stook_file_map(const char *path, size_t at_most, size_t *bytes);
/* Makes a part of it readable and writable. */
bool stook_file_open_part(void *addr, size_t bytes);
/*
 * Makes the pages of an opened part. False: the file system is full, a write would be SIGBUS.
 */
bool stook_file_populate_part(void *addr, size_t bytes);
/*
 * Sets the byte number @n, below 8, of those behind @magic, with which the file begins. Any other
 * file stays as it is.
 */
void stook_file_mark(const char *path, uint64_t magic, unsigned n);

/* ---- trace_file.c: the file that a recording appends to; only for STOOK_RECORD ---- */
/*
 * Opens or makes it. Return: 0; -errno; -EBADMSG: it is no regular file, or has content that does
 * not begin with @magic.
 */
int stook_trace_file_open(const char *path, uint64_t magic);
/* One write at its end. False: it was not taken; the first time, one line on stderr says why. */
bool stook_trace_file_write(const void *bytes, size_t n);

/* ---- pressure.c: is memory scarce? For calls now and then; reads files ---- */
/*
 * True: since the last call tasks stood still for lack of memory for more than a tenth of the time
 * (PSI, of the process's cgroup or of the machine), or the cgroup passed its memory.high or
 * memory.max. The first call only notes.
 */
bool stook_process_pressure(void);

/* ---- env_spelling.c ---- */
/* A line on stderr for each variable whose name looks like that of another one, misspelt. */
void stook_env_check_spelling(void);
/* Each variable that begins with STOOK_; none in set-user-ID programs. @known: the library's. */
void stook_env_for_each(void (*each)(const char *name, size_t name_bytes, const char *value,
                                        bool known, void *data), void *data);

#endif
