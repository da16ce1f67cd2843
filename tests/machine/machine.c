/*
 * Purpose: see machine.h. Not compiled with -fsanitize=thread itself.
 */
#include "machine.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/single_threaded.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <stook/layout.h>
#include "base/inject.h"
#include "base/pair.h"

#define STACK      (256 << 10)
#define STEPS_MOST 64                   /* of a thread, before it is preempted */
#define HANDLERS   48                   /* of so many preemptions one is a handler */
#define MIGRATIONS 4                    /* of so many one is also to another CPU */
#define DEPTH      2                    /* of handlers */

static struct thread {
        ucontext_t context;
        char *stack;
        bool runs, blocks;              /* blocks: handlers */
        unsigned cpu, depth;
        _Alignas(64) struct stook_thread_v1 self;
} threads[MACHINE_THREADS + 1];         /* the last: what runs between */
static void (*thread_work)(void), (*thread_handler)(void);
static uint64_t random_state, sum;
static unsigned left;                   /* steps until the next decision */

unsigned machine_me = MACHINE_THREADS;
uint64_t machine_ms = 1000000;
bool machine_is_child;
struct stook_thread_v1 *machine_self = &threads[MACHINE_THREADS].self;

uint64_t machine_random(void)
{
        random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407u;
        return random_state;
}

void machine_note(uint64_t what)
{
        sum = (sum ^ what) * UINT64_C(0x100000001b3);
}

static void go_to(unsigned to)
{
        unsigned from = machine_me;

        machine_note(to);
        if (to == from)
                return;
        machine_me = to;
        machine_self = &threads[to].self;
        __atomic_store_n(&stook_inject.locked_slot, threads[to].cpu + 1, __ATOMIC_RELAXED);
        swapcontext(&threads[from].context, &threads[to].context);
}

/* One that runs; none: what runs between. */
static unsigned draw(void)
{
        unsigned n = 0, k;

        for (unsigned i = 0; i < MACHINE_THREADS; i++)
                n += threads[i].runs;
        if (!n)
                return MACHINE_THREADS;
        k = machine_below(n);
        for (unsigned i = 0; i < MACHINE_THREADS; i++)
                if (threads[i].runs && !k--)
                        return i;
        return MACHINE_THREADS;
}

static void decide(void)
{
        struct thread *me = &threads[machine_me];

        left = 1 + machine_below(STEPS_MOST);
        if (me->depth < DEPTH && !me->blocks && !machine_below(HANDLERS)) {
                me->depth++;
                thread_handler();
                me->depth--;
                return;
        }
        if (!machine_below(MIGRATIONS)) {
                me->cpu = machine_below(MACHINE_CPUS);
                __atomic_store_n(&stook_inject.locked_slot, me->cpu + 1, __ATOMIC_RELAXED);
        }
        machine_ms += !machine_below(16);
        go_to(draw());
}

static void step(void)
{
        if (machine_me < MACHINE_THREADS && !left--)
                decide();
}

static void body(void)
{
        thread_work();
        threads[machine_me].runs = false;
        left = 1;
        go_to(draw());
}

uint64_t machine_run(uint64_t seed, void (*work)(void), void (*handler)(void))
{
        random_state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
        sum = UINT64_C(0xcbf29ce484222325);
        left = 1;
        thread_work = work;
        __libc_single_threaded = 0;     /* or the library takes its ways for one thread */
        thread_handler = handler;
        for (unsigned i = 0; i < MACHINE_THREADS; i++) {
                struct thread *t = &threads[i];

                if (!t->stack && !(t->stack = malloc(STACK)))
                        abort();
                t->runs = true;
                t->depth = 0;
                t->blocks = false;
                t->cpu = machine_below(MACHINE_CPUS);
                getcontext(&t->context);
                t->context.uc_stack.ss_sp = t->stack;
                t->context.uc_stack.ss_size = STACK;
                t->context.uc_link = NULL;
                makecontext(&t->context, body, 0);
        }
        go_to(draw());
        return sum;
}

bool machine_fork(void)
{
        long child = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
        int status;

        if (child)
                return child > 0 && waitpid((pid_t)child, &status, 0) == child && !status;
        for (unsigned i = 0; i < MACHINE_THREADS; i++)
                threads[i].runs &= i == machine_me;
        machine_is_child = true;
        return true;
}

/* ---- time and chance: the linker puts these in the place of the library's ---- */

static void let_others_go_on(void)
{
        if (machine_me < MACHINE_THREADS && !threads[machine_me].depth) {
                left = 1 + machine_below(STEPS_MOST);
                go_to(draw());
        }
}

void __wrap_stook_os_futex_wait(uint32_t *word, uint32_t value, uint64_t ns)
{
        (void)word, (void)value;
        machine_ms += ns / 1000000;
        let_others_go_on();
}

void __wrap_stook_os_pause(uint64_t ns)
{
        machine_ms += ns / 1000000;
        let_others_go_on();
}

uint64_t __wrap_stook_process_handlers_block(void)
{
        bool before = threads[machine_me].blocks;

        threads[machine_me].blocks = true;
        return before;
}

void __wrap_stook_process_handlers_allow(uint64_t before)
{
        threads[machine_me].blocks = before;
}

uint64_t __wrap_stook_os_clock_ms(void)
{
        return machine_ms;
}

uint64_t __wrap_stook_os_clock_ns(void)
{
        return machine_ms * 1000000;
}

uint64_t __wrap_stook_os_random(void)
{
        return machine_random();
}

/* ---- a pair: base/pair.h with STOOK_PAIR_BY_LOCK ---- */

bool stook_pair_cas(struct stook_pair *p, struct stook_pair *expected, struct stook_pair desired)
{
        step();
        if (p->lo != expected->lo || p->hi != expected->hi) {
                *expected = *p;
                return false;
        }
        *p = desired;
        return true;
}

bool stook_pair_half_cas(uint64_t *half, uint64_t expected, uint64_t desired)
{
        step();
        if (*half != expected)
                return false;
        *half = desired;
        return true;
}

void stook_pair_set_lock(uint32_t *lock) { (void)lock; }
void stook_pair_fork_child(void) { }

/* ---- what the compiler calls ---- */

void __tsan_init(void) { }
void __tsan_func_entry(void *caller) { (void)caller; }
void __tsan_func_exit(void) { }
void __tsan_acquire(void *at) { (void)at; }
void __tsan_release(void *at) { (void)at; }
void __tsan_read_range(void *at, unsigned long bytes) { (void)at, (void)bytes; }
void __tsan_write_range(void *at, unsigned long bytes) { (void)at, (void)bytes; }
void *__tsan_memcpy(void *to, const void *from, size_t n) { return memcpy(to, from, n); }
void *__tsan_memset(void *to, int byte, size_t n) { return memset(to, byte, n); }
void *__tsan_memmove(void *to, const void *from, size_t n) { return memmove(to, from, n); }

#define PLAIN_OF(n) \
        void __tsan_read##n(void *at) { (void)at; } \
        void __tsan_write##n(void *at) { (void)at; } \
        void __tsan_unaligned_read##n(void *at) { (void)at; } \
        void __tsan_unaligned_write##n(void *at) { (void)at; }
PLAIN_OF(1)
PLAIN_OF(2)
PLAIN_OF(4)
PLAIN_OF(8)
PLAIN_OF(16)

#define CHANGE_OF(n, type, name, now) \
        type __tsan_atomic##n##_##name(volatile type *at, type by, int order) \
        { \
                type was; \
                (void)order; \
                step(); \
                was = *at; \
                *at = (type)(now); \
                return was; \
        }
#define ATOMIC_OF(n, type) \
        type __tsan_atomic##n##_load(const volatile type *at, int order) \
        { \
                (void)order; \
                step(); \
                return *at; \
        } \
        void __tsan_atomic##n##_store(volatile type *at, type value, int order) \
        { \
                (void)order; \
                step(); \
                *at = value; \
        } \
        CHANGE_OF(n, type, exchange, by) \
        CHANGE_OF(n, type, fetch_add, was + by) \
        CHANGE_OF(n, type, fetch_sub, was - by) \
        CHANGE_OF(n, type, fetch_or, was | by) \
        CHANGE_OF(n, type, fetch_and, was & by) \
        CHANGE_OF(n, type, fetch_xor, was ^ by) \
        int __tsan_atomic##n##_compare_exchange_strong(volatile type *at, type *expected, \
                                                       type desired, int order, int failing) \
        { \
                (void)order, (void)failing; \
                step(); \
                if (*at != *expected) \
                        return *expected = *at, 0; \
                *at = desired; \
                return 1; \
        } \
        int __tsan_atomic##n##_compare_exchange_weak(volatile type *at, type *expected, \
                                                     type desired, int order, int failing) \
        { \
                return __tsan_atomic##n##_compare_exchange_strong(at, expected, desired, order, \
                                                                  failing); \
        } \
        type __tsan_atomic##n##_compare_exchange_val(volatile type *at, type expected, \
                                                     type desired, int order, int failing) \
        { \
                __tsan_atomic##n##_compare_exchange_strong(at, &expected, desired, order, \
                                                           failing); \
                return expected; \
        }
ATOMIC_OF(8, uint8_t)
ATOMIC_OF(16, uint16_t)
ATOMIC_OF(32, uint32_t)
ATOMIC_OF(64, uint64_t)

void __tsan_atomic_thread_fence(int order) { (void)order; }
void __tsan_atomic_signal_fence(int order) { (void)order; }
