/*
 * Purpose: what the files of life ask of each other, and the drop-in of fork.c.
 */
#ifndef STOOK_LIFE_H
#define STOOK_LIFE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/compiler.h"

/* ---- options.c: the environment variables, read once at start ---- */
/*
 * A value that is not allowed is refused by one line on stderr, and the default is used.
 * (STOOK_SLOTS is read by slot, which chooses its backend by it.)
 */
/* Before the layers start: hands each its options. */
void stook_options_read(void);
/* After the page layer has started: what barns may keep, by the memory there is. */
void stook_options_set_budget(void);
const char *stook_options_thp(void);
unsigned stook_options_thp_asked(void); /* an index of stook_thp_names */
void stook_options_set_thp(unsigned to);
/* What values of options are. */
extern const char *const stook_thp_names[], *const stook_on_fault_names[];      /* NULL: the end */
#define STOOK_DECAY_MS_MAX 3600000
int stook_option_choice(const char *text, const char *const *names);    /* -1: none of them */
int64_t stook_option_number(const char *text, int64_t most);    /* -1: no number up to @most */
/* Bytes, with a suffix for powers of 1024; 0: no such size. */
uint64_t stook_option_size(const char *text);
bool stook_options_maintenance(void);   /* STOOK_MAINTENANCE=1 */

/* The group of the process, if it is to have one (STOOK_GROUP_LIMIT); malloc is up. */
void stook_options_start_group(void);

/* ---- observe.c: what observes the heap from inside, if the environment asks for it ---- */
/* After the options were read, before the first cache is made. */
void stook_observe_start(void);
/* The heap profile; a failure is said on standard error. Any instruction. */
void stook_observe_write(const char *path);
/* The same to FILE.1, FILE.2, ... */
void stook_observe_write_next(const char *file);

/* ---- sampling.c: likewise ---- */
void stook_sampling_begin(void);
struct stook_sample_terms;
/*
 * Loads the unwinder, and begins a session. Slots are still to be emptied. 0; -EINVAL; -ENOMEM. Not
 * for handlers.
 */
int stook_sampling_start_by(const struct stook_sample_terms *terms);
/* With the registry mutex. Sheaves on slots that have no countdown leave. */
void stook_sampling_empty_slots(void);

/* ---- fork.c ---- */
/* Makes the word that says "forked". */
void stook_fork_start(void);
/* Was a slow call made beside a second thread? Until then nothing is to be done around a fork. */
bool stook_fork_is_marked(void);
/* The duties that life hands to the gate: after a jump out of a handler; in a forked child. */
void stook_fork_recover(void);
void stook_fork_repair(void);
/* pthread_atfork, or what the drop-in has for it. */
typedef int stook_fork_registrar(void (*prepare)(void), void (*parent)(void), void (*child)(void));
/* Asks libc to call us around fork; may allocate. */
void stook_fork_register(stook_fork_registrar *registrar);
/* Defined in the drop-in alone, which registers later than the constructor (dropin/fork.c). */
extern const bool stook_fork_registers_late __attribute__((weak, visibility("hidden")));

/* ---- guard_hit.c: reports of guard pages that were touched ---- */
/* At start, where large objects get guards. */
void stook_guard_hits_report(void);
/* At start, where a memory checker is told of objects, and who allocated them is kept. */
void stook_checked_faults_report(void);
/* At start, where allocations that are made to fail are told. */
void stook_crashes_report(void);

/* ---- last_thread.c: what a process keeps falls when it has one thread again ---- */
/* At start, after the slots. */
void stook_last_thread_start(void);
/* At the end of a thread that stook_threads_live counts. @self: its record; not used. */
void stook_last_thread_at_end(void *self);

/* ---- maintain.c: rounds of maintenance, and the thread that runs them ---- */
/* One round; the library is up. Return: 0: there was nothing to do. */
unsigned stook_maintain_round(void);
/*
 * Starts the thread if it is wanted and this is a forked child, which has none. Not for handlers,
 * nor inside malloc.
 */
void stook_maintenance_revive(void);
/* Atomic: id of the process that has the thread; 0: none. A forked child has its parent's id. */
extern uint32_t stook_maintenance_process STOOK_HIDDEN;
/* stook_trim, after the start of the library. */
size_t stook_trim_now(size_t keep_bytes);

#endif
