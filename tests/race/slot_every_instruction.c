/*
 * Proves that each critical section of the rseq backend may be interrupted at each of its
 * instructions.
 *
 * The test puts a breakpoint on one instruction. Its SIGTRAP handler takes the breakpoint away and
 * acts on the same line of the same slot, as another thread or handler might: it pops, pushes,
 * swaps, evacuates or moves to another CPU. The trap is a signal, so the kernel must send a section
 * to its abort; elsewhere it must not. Afterwards every object must be back exactly once, and the
 * counts of pops and pushes must agree. The cases are every instruction, every operation, every
 * kind of interruption, and states of the slot from empty to full.
 * (Single-stepping a section cannot do it: each step is a signal and aborts at the first
 * instruction.)
 *
 * Instructions are found by stepping through the operation once, on a made-up rseq area. The kernel
 * does not know the area, so it does not interfere.
 *
 * Built with a section broken on purpose (see meson.build), the test must fail: EXPECT_FAULTS.
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "evacuate/evacuate.h"
#include "os/os.h"
#include "section/section_hot.h"
#include "slot/slot_regions.h"
#include "trap_flag.h"
#include "unit/slot/fixture.h"

#if !defined(__x86_64__)
int main(void)
{
        puts("breakpoints are set on x86-64 only");
        return 77;
}
#else

#define CAPACITY 8
#define OBJECTS  64
#define OFFSET   (INDEX << STOOK_LINE_SHIFT)
#define TRAP_FLAG 0x100
#define STEPS_MAX 1024
#define MISS_BYTES 1200                /* of code; what is behind it may be another function's */

static size_t cases, aborts, faults;
static void  *held[OBJECTS];            /* objects in the hands of operation and handler */
static size_t holding;

static void fault(const char *what, const char *where, unsigned k)
{
        if (faults++ < 20)
                printf("fault: %s: %s, instruction %u\n", what, where, k);
#ifdef EXPECT_FAULTS
        fflush(stdout);
        _exit(1);                               /* one fault is enough */
#endif
}

/* ---- what is done: by the operation under test, and by the interruption ---- */

static void hold(void *object)
{
        if (holding < OBJECTS)
                held[holding++] = object;
}

static bool do_pop(void)
{
        void *o = ops->pop(OFFSET);

        if (o)
                hold(o);
        return o;
}

/* What goes is taken out of `held` first: a handler on top must not find it there. */
static bool do_push(void)
{
        void *o;

        if (!holding)
                return false;
        o = held[--holding];
        if (ops->push(OFFSET, o) == STOOK_PUSH_DONE)
                return true;
        hold(o);
        return false;
}

/*
 * The sections that are inlined into callers, in a section of the file so that nothing else is
 * among their instructions. With another index than the concurrency id they only miss.
 */
#define INLINED static __attribute__((noinline, section("inlined")))
extern char __start_inlined[], __stop_inlined[];

INLINED void *inlined_pop(void)
{
        return stook_section_pop_v1(front.line);
}

INLINED enum stook_push inlined_push(void *object)
{
        return stook_section_push_v1(front.line, object);
}

/*
 * By pointers, as ops: handlers change what is held, which the compiler must not believe it sees
 * through.
 */
static void *(*volatile pop_inlined)(void) = inlined_pop;
static enum stook_push (*volatile push_inlined)(void *) = inlined_push;

static bool do_inlined_pop(void)
{
        void *o = pop_inlined();

        if (o)
                hold(o);
        return o;
}

static bool do_inlined_push(void)
{
        void *o;

        if (!holding)
                return false;
        o = held[--holding];
        if (push_inlined(o) == STOOK_PUSH_DONE)
                return true;
        hold(o);
        return false;
}

static bool do_pop_n(void)
{
        void *got[3];
        size_t n = ops->pop_n(OFFSET, 3, got);

        for (size_t i = 0; i < n; i++)
                hold(got[i]);
        return n;
}

static bool do_push_n(void)
{
        void *three[3];
        size_t n;

        if (holding < 3)
                return false;
        holding -= 3;
        memcpy(three, held + holding, sizeof(three));
        n = ops->push_n(OFFSET, 3, three);
        for (size_t i = n; i < 3; i++)
                hold(three[i]);
        return n;
}

static bool do_pop_if(void)
{
        void *top = ops->peek(OFFSET), *o = top ? ops->pop_if(OFFSET, top) : NULL;

        if (o)
                hold(o);
        return o;
}

/* What sets a new count of a marked main: slot/slot_trip.c. */
static bool do_rearm(void)
{
        struct stook_sheaf *main = (void *)ops->look(OFFSET).lo;
        uint64_t word = main->word;

        return stook_word_is_marked(word) && ops->rearm(OFFSET, main, word,
                                                        stook_word_rearmed(word, 2));
}

static bool do_swap(void)
{
        struct stook_pair seen = ops->look(OFFSET);
        struct stook_pair to = { seen.hi, seen.lo == (uintptr_t)ZERO ? 0 : seen.lo };

        return seen.hi &&
               ops->exchange(OFFSET, seen, to, stook_sheaf_size((void *)seen.lo), NULL, 0);
}

/* By the hot paths' misses. */
/* As allocation does it: main is believed to be empty. The spare is taken and its objects held. */
static struct stook_pair seen_empty;
static bool do_replace_empty(void)
{
        struct stook_pair to = { seen_empty.hi, 0 };
        struct stook_sheaf *main = (void *)seen_empty.lo;

        if (!seen_empty.hi || !ops->exchange(OFFSET, seen_empty, to, 0, &front.config, 0))
                return false;
        if (main != ZERO)
                stook_sheaf_delete(main,
                                   &counters); /* an empty one, if the exchange is worth anything */
        return true;
}

static bool do_alloc(void)
{
        void *o = stook_slot_get(&front, true);

        hold(o);
        return o;
}

static bool do_free(void)
{
        if (!holding)
                return false;
        stook_slot_put(&front, held[--holding], on_double);
        return true;
}

static bool do_evacuate(void) { return stook_evacuate_cache(&front); }

static int other_cpu = -1, home_cpu;
static bool do_migrate(void)
{
        cpu_set_t set;

        if (other_cpu < 0)
                return false;
        CPU_ZERO(&set);
        CPU_SET((size_t)other_cpu, &set);
        sched_setaffinity(0, sizeof(set), &set);
        return do_pop() || do_push();
}

static void come_home(void)
{
        cpu_set_t set;

        CPU_ZERO(&set);
        CPU_SET((size_t)home_cpu, &set);
        sched_setaffinity(0, sizeof(set), &set);
}

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct act {
        const char *name;
        bool (*run)(void);
        bool sections; /* false: retries inside, so an abort is no miss of the whole */
        bool with_barn;                   /* the barn has a full sheaf and an empty one */
        bool at_mark;                     /* sheaves are marked, or will be after a pop or two */
};
static const struct act operations[] = {
        { .name = "pop", .run = do_pop, .sections = true },
        { .name = "pop to mark", .run = do_pop, .sections = true, .at_mark = true },
        { .name = "inlined pop to mark", .run = do_inlined_pop, .sections = true, .at_mark = true },
        { .name = "pop_n to mark", .run = do_pop_n, .sections = true, .at_mark = true },
        { .name = "push", .run = do_push, .sections = true },
        { .name = "inlined pop", .run = do_inlined_pop, .sections = true },
        { .name = "inlined push", .run = do_inlined_push, .sections = true },
        { .name = "pop_n", .run = do_pop_n, .sections = true },
        { .name = "push_n", .run = do_push_n, .sections = true },
        { .name = "pop_if", .run = do_pop_if, .sections = true },
        { .name = "rearm", .run = do_rearm, .sections = true, .at_mark = true },
        { .name = "exchange", .run = do_swap, .sections = true },
        { .name = "replace empty", .run = do_replace_empty, .sections = true },
        { .name = "alloc", .run = do_alloc },
        { .name = "free", .run = do_free },
        { .name = "alloc at mark", .run = do_alloc, .at_mark = true },
        { .name = "get", .run = do_alloc, .with_barn = true },
        { .name = "put", .run = do_free, .with_barn = true },
};
static const struct act interruptions[] = {
        { .name = "pop", .run = do_pop },
        { .name = "push", .run = do_push },
        { .name = "pop_n", .run = do_pop_n },
        { .name = "rearm", .run = do_rearm },
        { .name = "swap", .run = do_swap },
        { .name = "alloc", .run = do_alloc },
        { .name = "free", .run = do_free },
        { .name = "evacuate", .run = do_evacuate },
        { .name = "migrate", .run = do_migrate },
};

/* ---- breakpoints and steps ---- */

static uint8_t *volatile breakpoint;
static uint8_t  original;
static volatile bool stepping, trapped, aborted;
static bool (*interruption)(void);
static uint8_t *steps[STEPS_MAX];
static unsigned step_count;
/* Code that is recorded: the operations of section_rseq.c; the two misses. */
static struct text { uintptr_t from, to; } texts[3];

static void record(uint8_t *rip)
{
        bool known = (char *)rip >= __start_inlined && (char *)rip < __stop_inlined;

        for (unsigned i = 0; i < COUNT(texts); i++)
                known |= (uintptr_t)rip >= texts[i].from && (uintptr_t)rip < texts[i].to;
        if (!known || step_count == STEPS_MAX)
                return;
        for (unsigned i = 0; i < step_count; i++)
                if (steps[i] == rip)
                        return;
        steps[step_count++] = rip;
}

static void on_trap(int signal, siginfo_t *info, void *context)
{
        greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;

        (void)signal, (void)info;
        if (stepping) {
                record((uint8_t *)g[REG_RIP]);
                return;
        }
        *breakpoint = original;
        trapped = true;
        aborted = (uint8_t *)g[REG_RIP] != breakpoint + 1;
        if (!aborted)
                g[REG_RIP] = (greg_t)breakpoint;
        breakpoint = NULL;
        interruption();
}

/* ---- a case ---- */

static unsigned to_mark;                 /* pops until sheaves are marked; UNMARKED: many */
#define UNMARKED STOOK_WORD_COUNTS

static struct stook_sheaf *with_mark(struct stook_sheaf *s)
{
        if (!s || s == ZERO || to_mark == UNMARKED)
                return s;
        s->word = stook_word_rearmed(s->word, to_mark ? to_mark : 1);
        if (!to_mark)                   /* one more in count, one less in base */
                s->word += (UINT64_C(1) << STOOK_WORD_COUNT_SHIFT) -
                           (UINT64_C(1) << STOOK_WORD_BASE_SHIFT);
        return s;
}

/* No pop has passed a mark. */
static void look_at_count(struct stook_sheaf *s, void *passed)
{
        *(bool *)passed |= (s->word >> STOOK_WORD_COUNT_SHIFT & 0xffff) > STOOK_WORD_COUNTS;
}

/* Sizes; -1: no sheaf. */
static void set_up(int main, int spare, bool with_barn)
{
        struct stook_sheaf *m = main < 0 ? ZERO : sheaf_of((unsigned)main);
        struct stook_sheaf *s = main < 0 || spare < 0 ? NULL : sheaf_of((unsigned)spare);

        holding = 0;
        while (holding < 6) {
                void *o;

                stook_slab_fill(&slabs, 0, 1, &o, 0);
                hold(o);
        }
        set(with_mark(m), with_mark(s));
        barns.node[0].unasked = 0;      /* or many puts in a row are refused */
        if (with_barn && (!stook_barn_push_full(&barns, 0, sheaf_of(CAPACITY)) ||
                        !stook_barn_push_empty(&barns, 0, sheaf_of(0))))
                exit(1);
        seen_empty = (struct stook_pair){ (uintptr_t)m, (uintptr_t)s };
}

static void check(const char *name, unsigned k)
{
        const char *missing;
        bool passed = false;

        stook_sheaf_for_each(INDEX, look_at_count, &passed);
        if (passed)
                fault("a pop passed the mark", name, k);
        stook_slab_drain(&slabs, holding, held);
        holding = 0;
        missing = slot_missing();
        if (!missing)
                return;
        fault(missing, name, k);
        if (!slot_begin(OBJECTS, CAPACITY, 2))
                exit(1);                /* beyond repair */
}

struct descriptor {
        uint32_t version, flags;
        uint64_t start, bytes, abort;
};

/* Instructions of the operation in this state, and the last section it ran. */
static const struct descriptor *find_instructions(const struct act *act, int main, int spare)
{
        static struct { uint32_t cpu_id_start, cpu_id; uint64_t cs; uint32_t rest[4]; } area
                __attribute__((aligned(32)));
        struct stook_sections real = stook_sections;
        char *real_area = stook_self->rseq;

        set_up(main, spare, act->with_barn);
        area.cs = 0;
        area.rest[2] = *stook_section_index(stook_self);
        stook_self->rseq = (char *)&area;
        stook_sections.index = (uintptr_t)&area.rest[2] - (uintptr_t)stook_self;
        if (real.area)
                stook_sections.area = (intptr_t)&area - (intptr_t)stook_self;
        step_count = 0;
        stepping = true;
        TRAP_FLAG_ON();
        act->run();
        TRAP_FLAG_OFF();
        stepping = false;
        stook_self->rseq = real_area;
        stook_sections = real;
        check(act->name, ~0u);
        return (const struct descriptor *)area.cs;
}

static bool is_inside(const struct descriptor *d, const uint8_t *rip)
{
        return (uintptr_t)rip - d->start < d->bytes;
}

static void check_descriptor(const struct descriptor *d, const char *name)
{
        uint32_t signature;

        memcpy(&signature, (char *)d->abort - 4, 4);
        if ((uintptr_t)d % 32 || d->version || d->flags || signature != 0x53053053u ||
            d->abort - d->start < d->bytes)
                fault("descriptor", name, 0);
}

static void run_case(const struct act *act, const struct act *what, const struct descriptor *d,
                     int main, int spare, unsigned k)
{
        bool done;

        set_up(main, spare, act->with_barn);
        interruption = what->run;
        trapped = aborted = false;
        breakpoint = steps[k];
        original = *breakpoint;
        *breakpoint = 0xcc;
        done = act->run();
        if (breakpoint)
                *breakpoint = original;
        breakpoint = NULL;
        come_home();
        cases++;
        aborts += aborted;
        if (trapped && act->sections && d) {
                if (aborted != is_inside(d, steps[k]))
                        fault(aborted ? "aborted outside of the section" : "not aborted", act->name,
                              k);
                if (aborted && done)
                        fault("aborted, but done", act->name, k);
        }
        if (!act->sections && !done)
                fault("gave up", act->name, k);
        check(act->name, k);
}

static const int sizes[] = { -1, 0, 3, CAPACITY - 1, CAPACITY };

static void run_at(const struct act *act)
{
        unsigned instructions = 0;

        for (unsigned m = 0; m < COUNT(sizes); m++)
                for (unsigned s = 0; s < COUNT(sizes) && (sizes[m] >= 0 || s == 0); s++) {
                        const struct descriptor *d = find_instructions(act, sizes[m], sizes[s]);

                        if (d)
                                check_descriptor(d, act->name);
                        if (step_count > instructions)
                                instructions = step_count;
                        for (unsigned i = 0; i < COUNT(interruptions); i++)
                                for (unsigned k = 0; k < step_count; k++)
                                        run_case(act, &interruptions[i], d, sizes[m], sizes[s], k);
                }
        printf("  %-14s up to %u instructions\n", act->name, instructions);
}

static void run_operation(const struct act *act)
{
        for (to_mark = 0; act->at_mark && to_mark < 3; to_mark++)
                run_at(act);
        to_mark = UNMARKED;
        if (!act->at_mark)
                run_at(act);
}

static bool is_writable(const struct text *text)
{
        uintptr_t page = 4096, from = text->from & -page;

        return !mprotect((void *)from, text->to + page - from, PROT_READ | PROT_WRITE | PROT_EXEC);
}

static int run_all(uint32_t index_offset)
{
        struct sigaction sa = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
        cpu_set_t set;

        sched_getaffinity(0, sizeof(set), &set);
        home_cpu = sched_getcpu();
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
                if (CPU_ISSET((size_t)cpu, &set) && cpu != home_cpu)
                        other_cpu = cpu;
        come_home();
        if (!slot_start(index_offset) || ops != &stook_section_rseq ||
            !slot_begin(OBJECTS, CAPACITY, 2))
                return 77;
        texts[0].from = ~(uintptr_t)0;
        for (unsigned i = 0; i < 7; i++) {
                uintptr_t fn[] = { (uintptr_t)ops->pop,
                                   (uintptr_t)ops->push,
                                   (uintptr_t)ops->pop_n,
                                   (uintptr_t)ops->push_n,
                                   (uintptr_t)ops->pop_if,
                                   (uintptr_t)ops->rearm,
                                   (uintptr_t)ops->exchange };

                texts[0].from = fn[i] < texts[0].from ? fn[i] : texts[0].from;
                texts[0].to = fn[i] + 200 > texts[0].to ? fn[i] + 200 : texts[0].to;
        }
        for (unsigned i = 1; i < 3; i++) {
                texts[i].from = i == 1 ? (uintptr_t)stook_slot_get
                                       : (uintptr_t)stook_slot_put;
                texts[i].to = texts[i].from + MISS_BYTES;
        }
        for (unsigned i = 0; i < 3; i++)
                if (!is_writable(&texts[i]))
                        return 77;
        if (!is_writable(&(struct text){ (uintptr_t)__start_inlined, (uintptr_t)__stop_inlined }))
                return 77;
        sigaction(SIGTRAP, &sa, NULL);
        for (unsigned i = 0; i < COUNT(operations); i++)
                run_operation(&operations[i]);
        printf("%s: %zu cases, %zu aborts, %zu faults\n",
               index_offset == STOOK_RSEQ_MM_CID ? "mm_cid" : "cpu_id", cases, aborts, faults);
        return faults || !aborts;
}

int main(void)
{
        static const uint32_t indices[] = { STOOK_RSEQ_MM_CID, STOOK_RSEQ_CPU_ID };
        bool caught = false;

        setvbuf(stdout, NULL, _IOLBF, 0);
        stook_os_rseq_detect();
        for (unsigned i = stook_os_rseq_has_mm_cid() ? 0 : 1; i < 2; i++) {
                pid_t child = fork();
                int status;

                if (!child) {
                        alarm(100);
                        exit(run_all(indices[i]));
                }
                if (waitpid(child, &status, 0) != child)
                        return 1;
                if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
                        puts("no restartable sequences, or no breakpoints, here");
                        return 77;
                }
                caught |= status != 0;
                if (WIFSIGNALED(status))
                        printf("killed by signal %d\n", WTERMSIG(status));
        }
#ifdef EXPECT_FAULTS
        return caught ? 0 : 1;
#else
        return caught ? 1 : 0;
#endif
}

#endif
