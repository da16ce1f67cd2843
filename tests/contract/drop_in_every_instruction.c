/*
 * Proves that the calls of dropin/hot_x86_64.S may be interrupted at each of their instructions.
 * race/slot_every_instruction does the same for the sections.
 *
 * A breakpoint is put on one instruction. Its SIGTRAP handler takes the breakpoint away and
 * allocates, frees, evacuates or moves to another CPU. Then every object must have one holder, and
 * its stamp as it was. The cache must count as many live objects as are held. The same is done in
 * threads that have not enrolled yet. There the handler enrols the thread, and a second breakpoint,
 * on the commit, shows whether a section that goes on is protected. With the argument "checked" a
 * vfork is under way all the time: calls of two sections use the second one.
 *
 * The test finds the instructions by stepping through each call once, while the kernel does not
 * know of the thread's area.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <malloc.h>
#include <stook/stook.h>
#include "cache/cache.h"
#include "evacuate/evacuate.h"
#include "malloc/malloc.h"
#include "os/os.h"
#include "direct/direct.h"
#include "slot/slot_regions.h"
#include "trap_flag.h"

#if !defined(__x86_64__)
int main(void)
{
        puts("the breakpoints here are x86-64's");
        return 77;
}
#else

#define SIZE      112                   /* of a class that nothing else here uses */
#define LARGE     20000                 /* above STOOK_CLASS_TABLE_MAX; likewise */
#define LARGE_CAPACITY 8                /* objects of a sheaf there */
#define OTHER     208
#define HELD      200
#define STEPS_MAX 192
#define COUNT(a)  (sizeof(a) / sizeof((a)[0]))
#define SIGNATURE 0x53053053u
#define RETURN    0xc3
#define SECTION_START 8                 /* struct rseq_cs: the start, and behind it the length */
#define BREAK     0xcc
#define CHECKED   11                    /* instructions more, where the second section is used */

static bool checked;                    /* calls of two sections use the second one */
static size_t cases, aborts, traps, unprotected, faults;
static struct stook_cache *cache;       /* of objects of `size` bytes */
static size_t size = SIZE;

/* ---- objects in our hands ---- */

static uint64_t *held[HELD];
static unsigned  holding;
static const char *at_call = "", *at_act = "";
static unsigned  at_instruction;

static void fault(const char *what)
{
        if (faults++ < 20)
                printf("fault: %s: %s, instruction %u, then %s\n", what, at_call, at_instruction,
                       at_act);
}

static void hold(void *object)
{
        uint64_t *o = object;

        if (!o) {
                fault("no memory");
                return;
        }
        for (unsigned i = 0; i < holding; i++)
                if (held[i] == o)
                        fault("an object was handed out twice");
        o[0] = (uintptr_t)o;
        o[size / 8 - 1] = ~(uintptr_t)o;
        held[holding++] = o;
}

static void *let_go(void)
{
        uint64_t *o = held[--holding];

        if (o[0] != (uintptr_t)o || o[size / 8 - 1] != ~(uintptr_t)o)
                fault("a stamp was overwritten");
        o[0] = 0;
        return o;
}

static size_t live(void)
{
        struct stook_cache_stats s = { .stats_size = sizeof(s) };

        return stook_cache_get_stats(cache, &s) ? ~(size_t)0 : (size_t)s.objects_live;
}

/* ---- calls, and what interrupts them ---- */

void *_Znwm(size_t bytes);
void *_Znam(size_t bytes);
void *_ZnwmRKSt9nothrow_t(size_t bytes, const void *nothrow);
void *_ZnwmSt11align_val_t(size_t bytes, size_t align);

static void *by_malloc(void) { return malloc(size); }
static void *by_new(void) { return _Znwm(size); }
static void *by_new_array(void) { return _Znam(size); }
static void *by_new_nothrow(void) { return _ZnwmRKSt9nothrow_t(size, ""); }
static void *by_new_aligned(void) { return _ZnwmSt11align_val_t(size, 16); }
static void *by_calloc(void) { return calloc(2, size / 2); }
static void *by_aligned_alloc(void) { return aligned_alloc(16, size); }

static void *by_posix_memalign(void)
{
        void *object;

        return posix_memalign(&object, 16, size) ? NULL : object;
}

static void call_malloc(void) { hold(malloc(size)); }
static void call_free(void) { if (holding) free(let_go()); }

/*
 * With the slot evacuated, all of set_up's others and one object more are freed: main has one
 * object, the spare is full.
 */
static void empty_main(void) { call_malloc(); }
/* Main has one object, and its line guesses another one. */
static void spoil_guess(void)
{
        call_malloc();
        call_free();
        stook_slots_line(stook_slot_now(), cache->front.offset >> STOOK_LINE_SHIFT)->guess = 16;
}

static void full_main(void) { call_malloc(); call_malloc(); call_free(); }

/*
 * One that allocates, or, without `take`, free. Its last section ends behind the step `commit`. It
 * takes at most so many instructions: as many as it took when this was written, without those that
 * do nothing. What is called before it, if anything, makes it run a second section.
 */
struct call {
        const char *name;
        void *(*take)(void);
        void (*before)(void);
        size_t size;                    /* 0: SIZE */
        unsigned most;
        uint8_t *start, *steps[STEPS_MAX];
        unsigned count, commit;
};
#define CALL(called, wrapper, instructions) \
        { .name = #called, .take = wrapper, .most = instructions, \
          .start = (uint8_t *)(uintptr_t)called }
/* Where main is empty, these go on in what the calls above do. */
#define LARGE_CALL(called_name, called, wrapper, instructions) \
        { .name = called_name, .take = wrapper, .size = LARGE, .most = instructions, \
          .start = (uint8_t *)(uintptr_t)called }
static struct call calls[] = {
        CALL(malloc, by_malloc, 25), CALL(free, NULL, 35), CALL(_Znwm, by_new, 25),
        CALL(_ZnwmRKSt9nothrow_t, by_new_nothrow, 25),
        CALL(_ZnwmSt11align_val_t, by_new_aligned, 34),
        CALL(calloc, by_calloc, 48), CALL(aligned_alloc, by_aligned_alloc, 34),
        CALL(posix_memalign, by_posix_memalign, 38),
        { .name = "malloc, main empty", .take = by_malloc, .before = empty_main, .most = 69,
          .start = (uint8_t *)(uintptr_t)malloc },
        { .name = "malloc, a wrong guess", .take = by_malloc, .before = spoil_guess, .most = 42,
          .start = (uint8_t *)(uintptr_t)malloc },
        { .name = "_Znwm, main empty", .take = by_new, .before = empty_main, .most = 69,
          .start = (uint8_t *)(uintptr_t)_Znwm },
        CALL(_Znam, by_new_array, 25),
        LARGE_CALL("malloc, large", malloc, by_malloc, 29),
        LARGE_CALL("_Znwm, large", _Znwm, by_new, 29),
        LARGE_CALL("_Znam, large", _Znam, by_new_array, 29),
        { .name = "free, main full", .before = full_main, .most = 86,
          .start = (uint8_t *)(uintptr_t)free },
};

static void run(const struct call *call)
{
        if (call->take)
                hold(call->take());
        else
                call_free();
}

static void act_both(void) { call_malloc(); call_free(); }
static void act_free_first(void) { call_free(); call_malloc(); }
static void act_many(void) { for (int i = 0; i < 3; i++) call_malloc(); }
static void act_free_many(void) { for (int i = 0; i < 3; i++) call_free(); }
static void act_evacuate(void) { stook_evacuate_cache(&cache->front); }

static void act_other_size(void)
{
        void *volatile a = malloc(OTHER), *volatile b = malloc(OTHER);

        free(a);
        free(b);
}

static void act_resize(void)
{
        char *volatile o = calloc(1, size);

        o = realloc(o, OTHER);
        free(o);
}

/* As if another thread did. */
static void act_vfork(void)
{
        stook_direct_begin_vfork();
        call_malloc();
        stook_direct_end_vfork();
}

static void act_begin_vfork(void) { stook_direct_begin_vfork(); }

static int home_cpu, other_cpu = -1;

static void move_to(int cpu)
{
        cpu_set_t set;

        if (cpu < 0)
                return;
        CPU_ZERO(&set);
        CPU_SET((size_t)cpu, &set);
        sched_setaffinity(0, sizeof(set), &set);
}

static void act_migrate(void) { move_to(other_cpu); }
static void act_migrate_malloc(void) { move_to(other_cpu); call_malloc(); }
static void act_migrate_free(void) { move_to(other_cpu); call_free(); }

static const struct { const char *name; void (*run)(void);
} acts[] = {
        { "malloc", call_malloc },
        { "free", call_free },
        { "malloc and free", act_both },
        { "free and malloc", act_free_first },
        { "three mallocs", act_many },
        { "three frees", act_free_many },
        { "a vfork, and malloc", act_vfork },
        { "an evacuation", act_evacuate },
        { "another size", act_other_size },
        { "calloc and realloc", act_resize },
        { "migration", act_migrate },
        { "migration and malloc", act_migrate_malloc },
        { "migration and free", act_migrate_free },
        { "the beginning of a vfork", act_begin_vfork },
};

/* ---- breakpoints and steps ---- */

static uint8_t *volatile breakpoint, *volatile second;
static uint8_t original;
static volatile bool trapped, aborted;
static void (*interruption)(void);
static struct call *volatile stepping;

static void set_breakpoint(uint8_t *at)
{
        original = *at;
        breakpoint = at;
        *at = BREAK;
}

static void clear_breakpoint(void)
{
        if (breakpoint)
                *breakpoint = original;
        breakpoint = NULL;
}

/* In a straight line up to the return: a call that jumps away has missed. */
static void record(struct call *call, uint8_t *rip)
{
        uint8_t *last = call->count ? call->steps[call->count - 1] : NULL;

        if (rip < call->start || rip >= call->start + 1024 || call->count == STEPS_MAX)
                return;
        if (last ? rip > last && *last != RETURN : rip == call->start)
                call->steps[call->count++] = rip;
}

static void on_trap(int signal, siginfo_t *info, void *context)
{
        greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
        uint8_t *at = breakpoint;

        (void)signal, (void)info;
        if (stepping) {
                record(stepping, (uint8_t *)g[REG_RIP]);
                return;
        }
        clear_breakpoint();
        traps++;
        trapped = true;
        aborted = (uint8_t *)g[REG_RIP] != at + 1;
        if (!aborted)
                g[REG_RIP] = (greg_t)at;
        if (second) {                   /* the first one of two */
                interruption();
                set_breakpoint(second);
                second = NULL;
                return;
        }
        interruption();
}

/* Tells the kernel of this thread's area, or takes it away. Areas are 32 bytes at least. */
static bool rseq(int flags)
{
        static uint32_t bytes;

        if (bytes)
                return !syscall(SYS_rseq, stook_self->rseq, bytes, flags, SIGNATURE);
        for (bytes = 32; bytes <= 256; bytes += 4)
                if (!syscall(SYS_rseq, stook_self->rseq, bytes, flags, SIGNATURE))
                        return true;
        return false;
}

/* Padding in front of jumps, and the landing place of -fcf-protection. */
static bool does_nothing(const uint8_t *at)
{
        while (*at == 0x66 || *at == 0x2e)
                at++;
        return *at == 0x90 || (at[0] == 0x0f && at[1] == 0x1f) || !memcmp(at, "\xf3\x0f\x1e", 3);
}

static unsigned idle_steps(const struct call *call)
{
        unsigned n = 0;

        for (unsigned k = 0; k < call->count; k++)
                n += does_nothing(call->steps[k]);
        return n;
}

/* The last instruction of the section that the thread has run last. */
static bool find_commit(struct call *call)
{
        const uint8_t *cs = *(uint8_t *volatile *)(stook_self->rseq + STOOK_RSEQ_CS), *start;
        uint64_t bytes;

        if (!cs)
                return false;
        memcpy(&start, cs + SECTION_START, sizeof(start));
        memcpy(&bytes, cs + SECTION_START + sizeof(start), sizeof(bytes));
        for (call->commit = 0; call->commit + 1 < call->count; call->commit++)
                if (call->steps[call->commit + 1] == start + bytes)
                        return true;
        return false;
}

/* Nothing is held. Sheaves of few objects would grow. */
static void use_size_of(const struct call *call)
{
        struct stook_tuning few = { sizeof few, LARGE_CAPACITY, 0, 0 };

        while (holding)
                call_free();
        size = call->size ? call->size : SIZE;
        free(malloc(size));                     /* the first one makes the cache */
        cache = stook_cache_at(stook_class_for(size) + 1);
        if (call->size && cache->front.barns->capacity != LARGE_CAPACITY &&
            stook_cache_tune(cache, &few))
                fault("a class cannot be tuned");
}

/* 12 objects held, @freed objects of others in the slot: 0: no sheaf there. */
static void set_up(unsigned freed)
{
        void *others[HELD];

        while (holding)
                call_free();
        for (unsigned i = 0; i < 12; i++)
                call_malloc();
        for (unsigned i = 0; i < freed; i++)
                others[i] = malloc(size);
        stook_evacuate_cache(&cache->front);
        for (unsigned i = 0; i < freed; i++)
                free(others[i]);
}

static bool find_instructions(struct call *call)
{
        void *volatile o = NULL;
        bool found;

        use_size_of(call);
        if (!call->take)
                o = malloc(size);
        free(malloc(size));
        if (call->before) {
                set_up(cache->front.barns->capacity + 1);
                call->before();
        }
        if (!rseq(1))
                return false;
        *(volatile uint64_t *)(stook_self->rseq + STOOK_RSEQ_CS) = 0;
        stepping = call;
        TRAP_FLAG_ON();
        if (call->take)
                o = call->take();
        else
                free(o);
        TRAP_FLAG_OFF();
        stepping = NULL;
        found = find_commit(call);
        *(volatile uint64_t *)(stook_self->rseq + STOOK_RSEQ_CS) = 0;
        if (!rseq(0))
                return false;
        if (call->take)
                free(o);
        printf("  %s: %u instructions\n", call->name, call->count);
        if (call->count - idle_steps(call) > call->most + (checked ? CHECKED : 0)) {
                printf("fault: %s took %u instructions\n", call->name, call->most);
                faults++;
        }
        return found && call->count > (call->before ? 30 : 15) &&
               *call->steps[call->count - 1] == RETURN;
}

/* ---- cases ---- */

static void check(void)
{
        cases++;
        if (live() != holding)
                fault(live() > holding ? "an object is lost" : "more is free than there is");
        for (unsigned i = 0; i < holding; i++)
                if (held[i][0] != (uintptr_t)held[i] ||
                    held[i][size / 8 - 1] != ~(uintptr_t)held[i])
                        fault("a stamp was overwritten");
}

static void run_case(struct call *call, unsigned act, unsigned freed, unsigned k)
{
        at_call = call->name, at_act = acts[act].name, at_instruction = k;
        move_to(home_cpu);
        set_up(freed);
        if (call->before)
                call->before();
        interruption = acts[act].run;
        trapped = aborted = false;
        set_breakpoint(call->steps[k]);
        run(call);
        clear_breakpoint();
        if (trapped && acts[act].run == act_begin_vfork)
                stook_direct_end_vfork();
        aborts += aborted;
        check();
}

static struct call *fresh_call;
static unsigned fresh_step;
static bool forget_offsets;

static void *fresh_thread(void *unused)
{
        struct stook_sections sections = stook_sections;
        struct stook_direct open = stook_direct;

        (void)unused;
        stook_self->ready = 0;
        stook_self->rseq = NULL;
        if (forget_offsets) {           /* the process has never enrolled a thread */
                stook_sections.area = 0;
                stook_sections.index = STOOK_RSEQ_MM_CID;
                stook_direct.area = (char *)stook_self - (char *)__builtin_thread_pointer();
        }
        second = fresh_call->steps[fresh_call->commit];
        set_breakpoint(fresh_call->steps[fresh_step]);
        run(fresh_call);
        second = NULL;
        clear_breakpoint();
        stook_sections = sections;
        stook_direct.area = open.area;
        return NULL;
}

static void run_fresh_case(struct call *call, unsigned act, unsigned k, bool forget)
{
        pthread_t thread;
        size_t before = faults;

        at_call = call->name, at_act = acts[act].name, at_instruction = k;
        set_up(8);
        interruption = acts[act].run;
        fresh_call = call;
        fresh_step = k;
        forget_offsets = forget;
        if (pthread_create(&thread, NULL, fresh_thread, NULL)) {
                fault("no thread");
                return;
        }
        pthread_join(thread, NULL);
        check();
        unprotected += faults != before;
}

/* Both threads on one CPU: they have the same slot. */
static void run_call(struct call *call, unsigned capacity)
{
        const unsigned states[] = { 0, 1, 5, capacity - 1, capacity, capacity + 3 };

        for (unsigned k = 0; k < call->count; k++) {
                if (call->before) {
                        for (unsigned act = 0; act < COUNT(acts); act++)
                                run_case(call, act, capacity + 1, k);
                        continue;
                }
                for (unsigned s = 0; s < COUNT(states); s++)
                        for (unsigned act = 0; act < COUNT(acts); act++)
                                run_case(call, act, states[s], k);
                move_to(home_cpu);
                for (unsigned act = 0; act < 7; act++)
                        for (unsigned forget = 0; forget < 2; forget++)
                                run_fresh_case(call, act, k, forget);
        }
}

int main(int argc, char **argv)
{
        struct sigaction sa = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_NODEFER };
        uintptr_t page = stook_os_page_bytes(), from = UINTPTR_MAX, to = 0;
        cpu_set_t set;

        setvbuf(stdout, NULL, _IOLBF, 0);
        cache = stook_cache_at(stook_class_for(size) + 1);
        sched_getaffinity(0, sizeof(set), &set);
        home_cpu = sched_getcpu();
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
                if (CPU_ISSET((size_t)cpu, &set) && cpu != home_cpu)
                        other_cpu = cpu;
        move_to(home_cpu);
        call_malloc();
        call_free();
        if (argc > 1 && !strcmp(argv[1], "checked"))
                stook_direct_begin_vfork();
        checked = !(uint32_t)stook_direct.ready;
        if (!stook_regions.rseq_slots || !stook_self->ready) {
                puts("no restartable sequences here");
                return 77;
        }
        for (unsigned i = 0; i < COUNT(calls); i++) {
                uintptr_t start = (uintptr_t)calls[i].start;

                from = start < from ? start : from;
                to = start > to ? start : to;
        }
        if (mprotect((void *)(from & -page), ((to + 2048) & -page) + page - (from & -page),
                     PROT_READ | PROT_WRITE | PROT_EXEC)) {
                puts("text cannot be written to here");
                return 77;
        }
        sigaction(SIGTRAP, &sa, NULL);
        for (unsigned i = 0; i < COUNT(calls); i++)
                if (!find_instructions(&calls[i])) {
                        printf("fault: the instructions of %s were not found\n", calls[i].name);
                        return 1;
                }
        for (unsigned i = 0; i < COUNT(calls); i++) {
                use_size_of(&calls[i]);
                run_call(&calls[i], cache->front.barns->capacity);
        }
        while (holding)
                call_free();
        printf("%zu cases, %zu breakpoints hit, %zu aborts, %zu faults (%zu of fresh threads)\n",
               cases, traps, aborts, faults, unprotected);
        return faults || !aborts;
}
#endif
