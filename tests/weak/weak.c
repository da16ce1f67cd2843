/*
 * Purpose: see weak.h. Not compiled with -fsanitize=thread itself.
 */
#include "weak_inside.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "base/pair.h"

#define WORDS    120                    /* atomic ones, of a run */
#define VALUES   60                     /* of a word in a run */
#define PLAIN    1024                   /* accessed otherwise; power of two */
#define STACK    (128 << 10)
#define CHOICES  4000                   /* of a run */
#define RUNS     2000000ul              /* more are a mistake in the program */
#define OLDER    3                      /* values beside the last that a load chooses from */

/* ---- choices: a walk over the tree of all runs ---- */

static struct choice {
        unsigned char taken, of;
} path[CHOICES];
static unsigned depth, known;

static unsigned choose(unsigned of)
{
        if (of < 2)
                return 0;
        if (depth == known) {
                if (known == CHOICES) {
                        fprintf(stderr, "weak: a run without end\n");
                        exit(1);
                }
                path[known++] = (struct choice){ 0, (unsigned char)of };
        }
        return path[depth++].taken;
}

static bool next_run(void)
{
        known = depth;
        while (known && path[known - 1].taken + 1 == path[known - 1].of)
                known--;
        if (!known)
                return false;
        path[known - 1].taken++;
        return true;
}

/* ---- views ---- */

struct view {
        unsigned short at[WEAK_THREADS + WORDS];        /* threads' clocks, then words' values */
};

static void join(struct view *to, const struct view *from)
{
        for (unsigned i = 0; i < WEAK_THREADS + WORDS; i++)
                if (to->at[i] < from->at[i])
                        to->at[i] = from->at[i];
}

static struct word {
        uintptr_t address;
        unsigned values;
        struct value {
                uint64_t bits;
                struct view view;
        } value[VALUES];
} words[WORDS];
static unsigned words_used;
static struct view in_order;            /* of fences that are sequentially consistent */
static unsigned stores;

static struct thread {
        ucontext_t context;
        char *stack;
        struct view view, released, acquired;
        enum { READY, WAITS, OVER } state;
        unsigned seen;                  /* WAITS: stores until then */
        bool fresh;                     /* sees last values alone */
} threads[WEAK_THREADS];
static ucontext_t between;
static const struct weak_program *program;
static unsigned preemptions, stale;
static const char *failure;
static jmp_buf at_end;                  /* where a run's end is called */

unsigned weak_me = WEAK_THREADS;

/* ---- accesses that are not atomic ---- */

static struct plain {
        uintptr_t address;
        unsigned run;
        unsigned short write, read[WEAK_THREADS];       /* clocks */
        unsigned char writer;
        bool atomic;                    /* the last write */
} plains[PLAIN];
static unsigned run_number;

static struct plain *plain_at(uintptr_t address)
{
        size_t i = (address * UINT64_C(0x9e3779b97f4a7c15)) >> 32;

        for (unsigned tries = 0; tries < PLAIN; tries++, i++) {
                struct plain *p = &plains[i % PLAIN];

                if (p->run != run_number) {
                        memset(p, 0, sizeof(*p));
                        p->run = run_number;
                        p->address = address;
                        p->writer = WEAK_THREADS;
                        return p;
                }
                if (p->address == address)
                        return p;
        }
        fprintf(stderr, "weak: too many accesses\n");
        exit(1);
}

static bool is_local(uintptr_t address)
{
        for (unsigned i = 0; i < WEAK_THREADS; i++)
                if (address - (uintptr_t)threads[i].stack < STACK)
                        return true;
        return false;
}

static void check_write(const struct plain *p, const char *what)
{
        if (p->writer < WEAK_THREADS && threads[weak_me].view.at[p->writer] < p->write)
                weak_fail(what);
}

void weak_plain(const void *at, bool writes)
{
        uintptr_t address = (uintptr_t)at;
        struct thread *me = &threads[weak_me];
        struct plain *p;

        if (weak_me == WEAK_THREADS || is_local(address))
                return;
        p = plain_at(address);
        check_write(p, writes ? "a race of two writes" : "a race of a read with a write before it");
        me->view.at[weak_me]++;
        if (!writes) {
                p->read[weak_me] = me->view.at[weak_me];
                return;
        }
        for (unsigned i = 0; i < WEAK_THREADS; i++)
                if (me->view.at[i] < p->read[i])
                        weak_fail("a race of a write with a read before it");
        p->write = me->view.at[weak_me];
        p->writer = (unsigned char)weak_me;
        p->atomic = false;
}

/* ---- steps ---- */

void weak_fail(const char *what)
{
        failure = what;
        if (weak_me == WEAK_THREADS)
                longjmp(at_end, 1);
        setcontext(&between);
        abort();
}

static void leave(unsigned to)
{
        unsigned from = weak_me;

        weak_me = to;
        swapcontext(&threads[from].context, to == WEAK_THREADS ? &between : &threads[to].context);
}

static bool is_ready(unsigned i)
{
        return threads[i].state == READY ||
               (threads[i].state == WAITS && threads[i].seen != stores);
}

/* The @k-th of the others that could run. */
static unsigned other(unsigned k)
{
        for (unsigned i = 0; i < WEAK_THREADS; i++)
                if (i != weak_me && is_ready(i) && !k--)
                        return i;
        return WEAK_THREADS;
}

static unsigned others(void)
{
        unsigned n = 0;

        for (unsigned i = 0; i < WEAK_THREADS; i++)
                n += i != weak_me && is_ready(i);
        return n;
}

static void step(void)
{
        unsigned k;

        if (!preemptions || !(k = choose(1 + others())))
                return;
        preemptions--;
        leave(other(k - 1));
}

void weak_wait(void)
{
        struct thread *me = &threads[weak_me];

        me->state = WAITS;
        me->seen = stores;
        leave(WEAK_THREADS);
        me->state = READY;
}

/* ---- atomic accesses ---- */

static struct word *word_at(uintptr_t address)
{
        uint64_t bits;
        struct word *w;

        address &= ~(uintptr_t)7;
        bits = *(uint64_t *)address;
        for (w = words; w < words + words_used; w++)
                if (w->address == address)
                        break;
        if (w == words + words_used) {
                if (words_used == WORDS) {
                        fprintf(stderr, "weak: too many words\n");
                        exit(1);
                }
                words_used++;
                w->address = address;
                w->values = 1;
                w->value[0] = (struct value){ .bits = bits };
        } else if (w->value[w->values - 1].bits != bits) {
                /* It was written otherwise; who may see that is what plain accesses ask. */
                w->value[w->values] = (struct value){ .bits = bits };
                w->values++;
        }
        if (w->values >= VALUES - 1) {
                fprintf(stderr, "weak: too many values\n");
                exit(1);
        }
        return w;
}

static unsigned index_of(const struct word *w)
{
        return WEAK_THREADS + (unsigned)(w - words);
}

static unsigned shift_of(uintptr_t address)
{
        return (unsigned)(address & 7) * 8;
}

static uint64_t mask_of(unsigned bytes)
{
        return bytes == 8 ? ~UINT64_C(0) : (UINT64_C(1) << bytes * 8) - 1;
}

static bool acquires(int order)
{
        return order == __ATOMIC_ACQUIRE || order == __ATOMIC_CONSUME ||
               order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
}

static bool releases(int order)
{
        return order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
}

static void see(struct word *w, unsigned at, int order)
{
        struct thread *me = &threads[weak_me];

        me->view.at[index_of(w)] = (unsigned short)at;
        join(&me->acquired, &w->value[at].view);
        if (acquires(order))
                join(&me->view, &w->value[at].view);
}

/* @before: the value that it takes the place of in one step; or NULL. */
static void put(struct word *w, uintptr_t address, uint64_t bits, int order,
                const struct value *before)
{
        struct thread *me = &threads[weak_me];
        struct value *v = &w->value[w->values];
        struct plain *p = plain_at(address);

        if (!p->atomic)
                check_write(p, "a race of a store with a write before it");
        me->view.at[weak_me]++;
        p->write = me->view.at[weak_me];
        p->writer = (unsigned char)weak_me;
        p->atomic = true;
        me->view.at[index_of(w)] = (unsigned short)w->values++;
        v->bits = bits;
        v->view = releases(order) ? me->view : me->released;
        v->view.at[index_of(w)] = (unsigned short)(w->values - 1);
        if (before)
                join(&v->view, &before->view);
        if (order == __ATOMIC_SEQ_CST)
                in_order.at[index_of(w)] = (unsigned short)(w->values - 1);
        *(uint64_t *)w->address = bits;
        stores++;
}

uint64_t weak_load(const volatile void *at, unsigned bytes, int order)
{
        uintptr_t address = (uintptr_t)at;
        struct thread *me = &threads[weak_me];
        unsigned oldest, last, older = 0;
        const struct plain *p;
        struct word *w;

        step();
        w = word_at(address);
        p = plain_at(address);
        if (!p->atomic)
                check_write(p, "a race of a load with a write before it");
        last = w->values - 1;
        oldest = me->view.at[index_of(w)];
        if (order == __ATOMIC_SEQ_CST && oldest < in_order.at[index_of(w)])
                oldest = in_order.at[index_of(w)];
        if (stale && !me->fresh && last > oldest) {
                older = choose(1 + (last - oldest < OLDER ? last - oldest : OLDER));
                stale -= older != 0;
        }
        see(w, last - older, order);
        return w->value[last - older].bits >> shift_of(address) & mask_of(bytes);
}

void weak_store(volatile void *at, unsigned bytes, uint64_t bits, int order)
{
        uintptr_t address = (uintptr_t)at;
        uint64_t mask = mask_of(bytes) << shift_of(address);
        struct word *w;

        step();
        w = word_at(address);
        put(w, address, (w->value[w->values - 1].bits & ~mask) |
                        (bits << shift_of(address) & mask), order, NULL);
}

uint64_t weak_change(volatile void *at, unsigned bytes, enum weak_how how, uint64_t by, int order)
{
        uintptr_t address = (uintptr_t)at;
        uint64_t mask = mask_of(bytes), was;
        unsigned shift = shift_of(address);
        struct word *w;
        struct value *v;

        step();
        w = word_at(address);
        v = &w->value[w->values - 1];
        see(w, w->values - 1, order);
        was = v->bits >> shift & mask;
        put(w, address, (v->bits & ~(mask << shift)) |
                        ((weak_changed(was, how, by) & mask) << shift), order, v);
        return was;
}

bool weak_exchange_if(volatile void *at, unsigned bytes, uint64_t *expected, uint64_t desired,
                      int order, int failing)
{
        uintptr_t address = (uintptr_t)at;
        uint64_t mask = mask_of(bytes), was;
        unsigned shift = shift_of(address);
        struct word *w;
        struct value *v;

        step();
        w = word_at(address);
        v = &w->value[w->values - 1];
        was = v->bits >> shift & mask;
        see(w, w->values - 1, was == (*expected & mask) ? order : failing);
        if (was != (*expected & mask)) {
                *expected = was;
                return false;
        }
        put(w, address, (v->bits & ~(mask << shift)) | (desired & mask) << shift, order, v);
        return true;
}

static void fence(struct thread *me, int order)
{
        if (acquires(order))
                join(&me->view, &me->acquired);
        if (order == __ATOMIC_SEQ_CST) {
                join(&me->view, &in_order);
                in_order = me->view;
        }
        if (releases(order))
                me->released = me->view;
}

void weak_fence(int order)
{
        step();
        fence(&threads[weak_me], order);
}

void weak_membarrier(void)
{
        step();
        fence(&threads[weak_me], __ATOMIC_SEQ_CST);
        for (unsigned i = 0; i < WEAK_THREADS; i++)
                if (i != weak_me)
                        fence(&threads[i], __ATOMIC_SEQ_CST);
        fence(&threads[weak_me], __ATOMIC_SEQ_CST);
}

/* ---- a pair: base/pair.h with STOOK_PAIR_BY_LOCK ---- */

bool stook_pair_cas(struct stook_pair *p, struct stook_pair *expected, struct stook_pair desired)
{
        struct word *lo, *hi;
        struct stook_pair seen;
        struct value *old_lo, *old_hi;

        if (weak_me == WEAK_THREADS) {
                seen = *p;
                if (seen.lo == expected->lo && seen.hi == expected->hi)
                        return *p = desired, true;
                return *expected = seen, false;
        }
        step();
        lo = word_at((uintptr_t)&p->lo);
        hi = word_at((uintptr_t)&p->hi);
        old_lo = &lo->value[lo->values - 1];
        old_hi = &hi->value[hi->values - 1];
        see(lo, lo->values - 1, __ATOMIC_SEQ_CST);
        see(hi, hi->values - 1, __ATOMIC_SEQ_CST);
        seen = (struct stook_pair){ .lo = old_lo->bits, .hi = old_hi->bits };
        if (seen.lo != expected->lo || seen.hi != expected->hi) {
                *expected = seen;
                return false;
        }
        put(lo, (uintptr_t)&p->lo, desired.lo, __ATOMIC_SEQ_CST, old_lo);
        put(hi, (uintptr_t)&p->hi, desired.hi, __ATOMIC_SEQ_CST, old_hi);
        return true;
}

/* ---- runs ---- */

static void body(void)
{
        program->thread[weak_me]();
        threads[weak_me].state = OVER;
        leave(WEAK_THREADS);
}

static void begin_run(void)
{
        run_number++;
        words_used = depth = stores = 0;
        failure = NULL;
        memset(&in_order, 0, sizeof(in_order));
        preemptions = program->preemptions;
        stale = program->stale;
        weak_me = WEAK_THREADS;
        program->reset();
        for (unsigned i = 0; i < WEAK_THREADS; i++) {
                struct thread *t = &threads[i];

                memset(&t->view, 0, sizeof(t->view));
                memset(&t->released, 0, sizeof(t->released));
                memset(&t->acquired, 0, sizeof(t->acquired));
                t->fresh = false;
                t->state = program->thread[i] ? READY : OVER;
                if (!t->stack && !(t->stack = malloc(STACK)))
                        abort();
                getcontext(&t->context);
                t->context.uc_stack.ss_sp = t->stack;
                t->context.uc_stack.ss_size = STACK;
                t->context.uc_link = &between;
                makecontext(&t->context, body, 0);
        }
}

/* All that is left waits: in the end each sees the last values. False: that does not help. */
static bool wake_all(void)
{
        static unsigned last;
        static unsigned last_run;
        bool any = false;

        for (unsigned i = 0; i < WEAK_THREADS; i++)
                if (threads[i].state == WAITS) {
                        any = true;
                        threads[i].seen = stores + 1;
                        threads[i].fresh = true;
                }
        if (any && last_run == run_number && last == stores)
                return false;
        last_run = run_number;
        last = stores;
        return any;
}

/* False: it failed. */
static bool run(void)
{
        begin_run();
        for (;;) {
                unsigned ready;

                weak_me = WEAK_THREADS;
                ready = others();
                if (ready) {
                        weak_me = other(choose(ready));
                        swapcontext(&between, &threads[weak_me].context);
                        if (failure)
                                break;
                        continue;
                }
                if (wake_all())
                        continue;
                for (unsigned i = 0; i < WEAK_THREADS; i++)
                        if (threads[i].state != OVER)
                                failure = "threads wait for one another";
                break;
        }
        weak_me = WEAK_THREADS;
        if (!failure && program->end && !setjmp(at_end))
                program->end();
        return !failure;
}

static void print_path(void)
{
        fprintf(stderr, "weak: %s: run", program->name);
        for (unsigned i = 0; i < depth; i++)
                fprintf(stderr, " %u/%u", path[i].taken, path[i].of);
        fprintf(stderr, "\nweak: %s: %s\n", program->name, failure);
}

/* 0: one failed. */
static unsigned long run_all(const struct weak_program *what)
{
        unsigned long runs = 0;

        program = what;
        known = 0;
        do {
                if (!run())
                        return 0;
                if (++runs == RUNS) {
                        fprintf(stderr, "weak: %s: too many runs\n", program->name);
                        exit(1);
                }
        } while (next_run());
        return runs;
}

unsigned long weak_hold(const struct weak_program *what)
{
        unsigned long runs = run_all(what);

        if (!runs) {
                print_path();
                exit(1);
        }
        printf("%s: %lu runs\n", what->name, runs);
        return runs;
}

void weak_break(const struct weak_program *what)
{
        if (run_all(what)) {
                fprintf(stderr, "weak: %s: its mistake is not found\n", what->name);
                exit(1);
        }
        printf("%s: found: %s\n", what->name, failure);
}
