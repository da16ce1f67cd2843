/*
 * bench/counted/slab_turns.cc - what threads do to each other at a node's slabs, on CPUs in turn
 *
 * Purpose: contention for the lock of the slab list, counted for any number of CPUs without an
 * emulator. Each thread takes a set of objects in batches, and gives it back in batches in random
 * order, again and again. It does so straight from and to the slabs, without sheaves or a barn, so
 * everything reaches the list.
 * How: each thread stands for a CPU, and single-steps itself (the trap flag of x86-64). The signal
 * handler lets one thread run at a time, in turn, turn=N instructions on average, as CPUs of equal
 * speed do. A thread that sleeps for a lock gets no turn until it is woken or its time is over. So
 * a run does not depend on the host's CPUs, nor on their load. Every instruction takes equally
 * long, except `pause`. The cost of a cache line that moves between CPUs is not measured.
 * Answer, for 1,000 objects taken and given back:
 *   fill_asked, fill_busy, fill_refused   asks for the lock by fills, which wait
 *   give_...                              by gives, which do not wait
 *   again_...                             tries after a push to pending or a drop of the lock
 * For one object:
 *   steps   the instructions of all CPUs, without sleeps
 *   held    those with the list's lock held: steps / held CPUs keep it taken all the time
 *   slow    time of the run, in instructions of one CPU, for an object of each thread
 * Options: threads=2, objects=1000 of each thread's set, batch=32, size=64, rounds=4, of which
 * warm=1 are not counted, crossing=0 (1: a thread gives back what its neighbour took), turn=4.
 */
#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <stook/cache.h>

#include "../harness/harness.h"
#include "slab_turns.h"

#define STEPS_IN_NS    3                /* instructions that a CPU makes meanwhile */
#define STEPS_IN_PAUSE 40               /* likewise */

static std::atomic<int> turn{-1};
static unsigned left_of_turn, quantum = 4;
static uint64_t passes;                 /* of all CPUs, one turn each */
static std::atomic<size_t> arrived;
static bench::rng lengths(7);

struct cpu {
        std::atomic<uint32_t> wake{0};
        bool done = false;
        const uint32_t *asleep = nullptr;       /* the lock's word */
        uint64_t until = 0;                     /* passes */
        size_t meeting = 0;                     /* waits until so many arrived */
        uint64_t steps = 0, held = 0;           /* instructions; those with the lock held */
};
static std::vector<cpu> cpus;
static thread_local int self = -1;

static void *slabs;
static const uint32_t pausing = 0;     /* an address */

static bool runs(cpu &c)
{
        if (c.done || (c.meeting && arrived < c.meeting) || (c.asleep && passes < c.until))
                return false;
        c.asleep = nullptr;
        c.meeting = 0;
        return true;
}

/* Round robin. -1: all are done. */
static int next_of(int from)
{
        for (size_t looked = 0; looked < 1u << 30; looked++) {
                from = (from + 1) % (int)cpus.size();
                if (!from)
                        passes++;
                if (runs(cpus[(size_t)from]))
                        return from;
        }
        return -1;
}

static long futex(std::atomic<uint32_t> &word, int what, uint32_t value)
{
        return syscall(SYS_futex, &word, what, value, nullptr, nullptr, 0);
}

static void hand_to(int next)
{
        left_of_turn = 1 + (unsigned)lengths.below(2 * quantum - 1);
        turn = next;
        cpus[(size_t)next].wake++;
        futex(cpus[(size_t)next].wake, FUTEX_WAKE_PRIVATE, 1);
}

static void await_turn()
{
        cpu &me = cpus[(size_t)self];

        for (;;) {
                uint32_t seen = me.wake;
                if (turn == self)
                        return;
                futex(me.wake, FUTEX_WAIT_PRIVATE, seen);
        }
}

/* The next instruction is a `pause`. */
static bool pauses(void *context)
{
        const uint8_t *at = (const uint8_t *)
                ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];

        return at[0] == 0xf3 && at[1] == 0x90;
}

static void on_trap(int, siginfo_t *, void *context)
{
        cpu &me = cpus[(size_t)self];
        int next;

        me.steps++;
        me.held += slab_turns_holds(slabs);
        if (pauses(context)) {
                me.until = passes + STEPS_IN_PAUSE / quantum;
                me.asleep = &pausing;
        }
        if (left_of_turn-- > 1 && runs(cpus[(size_t)self]))
                return;
        next = next_of(self);
        if (next == self) {
                left_of_turn = 1 + (unsigned)lengths.below(2 * quantum - 1);
                return;
        }
        hand_to(next);
        await_turn();
}

static void step(bool on)
{
        /* The red zone stays as it is. */
        if (on)
                __asm__ volatile("lea -128(%%rsp), %%rsp; pushfq; orq $0x100, (%%rsp); popfq;"
                                 "lea 128(%%rsp), %%rsp" : : : "memory", "cc");
        else
                __asm__ volatile("lea -128(%%rsp), %%rsp; pushfq; andq $~0x100, (%%rsp); popfq;"
                                 "lea 128(%%rsp), %%rsp" : : : "memory", "cc");
}

extern "C" void slab_turns_sleep(uint32_t *word, uint32_t value, uint64_t ns)
{
        cpu &me = cpus[(size_t)self];

        if (__atomic_load_n(word, __ATOMIC_RELAXED) != value)
                return;
        me.until = passes + ns * STEPS_IN_NS / quantum;
        me.asleep = word;               /* the next trap takes the turn away */
}

extern "C" void slab_turns_wake(uint32_t *word)
{
        for (cpu &c : cpus)
                if (c.asleep == word) {
                        c.until = 0;
                        return;
                }
}

static void meet(size_t meeting)
{
        cpu &me = cpus[(size_t)self];

        arrived++;
        me.meeting = meeting * cpus.size();
        __asm__ volatile("nop");
}

struct set {
        std::vector<void *> objects, order;
};

static size_t batch;

static void shuffle(set &s, bench::rng &r)
{
        s.order = s.objects;
        for (uint32_t i = (uint32_t)s.order.size(); i > 1; i--)
                std::swap(s.order[i - 1], s.order[r.below(i)]);
}

static uint64_t began;

static void run(int number, std::vector<set> &sets, size_t rounds, size_t warm, bool crossing)
{
        bench::rng r((uint64_t)number + 1);
        size_t threads = sets.size(), meeting = 0;
        set &mine = sets[(size_t)number], &given = sets[((size_t)number + crossing) % threads];

        self = number;
        await_turn();
        step(true);
        for (size_t round = 0; round < rounds; round++) {
                if (round == warm) {
                        meet(++meeting);
                        if (!number) {
                                slab_turns_counted = {};
                                began = passes;
                                for (cpu &c : cpus)
                                        c.steps = c.held = 0;
                        }
                        meet(++meeting);
                }
                for (size_t i = 0; i < mine.objects.size(); i += batch)
                        if (slab_turns_fill(slabs, batch, &mine.objects[i]) != batch)
                                exit(1);
                step(false);
                shuffle(mine, r);
                step(true);
                if (crossing)
                        meet(++meeting);
                for (size_t i = 0; i < given.order.size(); i += batch)
                        slab_turns_give(slabs, batch, &given.order[i]);
                if (crossing)
                        meet(++meeting);
        }
        meet(++meeting);
        step(false);
        cpus[(size_t)self].done = true;
        for (cpu &c : cpus)
                if (!c.done) {
                        hand_to(next_of(self));
                        break;
                }
}

int main(int argc, char **argv)
{
        size_t threads = (size_t)bench::option(argc, argv, "threads", 2);
        size_t objects = (size_t)bench::option(argc, argv, "objects", 1000);
        size_t rounds = (size_t)bench::option(argc, argv, "rounds", 4);
        size_t warm = (size_t)bench::option(argc, argv, "warm", 1);
        size_t size = (size_t)bench::option(argc, argv, "size", 64);
        bool crossing = bench::option(argc, argv, "crossing", 0) != 0;
        struct sigaction action = {};

        batch = (size_t)bench::option(argc, argv, "batch", 32);
        quantum = (unsigned)bench::option(argc, argv, "turn", 4);
        if (!threads || !batch || objects < batch || rounds <= warm || !quantum) {
                fprintf(stderr, "slab_turns: bad options\n");
                return 2;
        }
        objects -= objects % batch;
        struct stook_cache *cache = stook_cache_create("turns", size, nullptr);
        if (!cache) {
                perror("stook_cache_create");
                return 2;
        }
        slabs = slab_turns_begin(cache);
        std::vector<set> sets(threads);
        for (set &s : sets)
                s.objects.resize(objects);
        cpus = std::vector<cpu>(threads);
        action.sa_sigaction = on_trap;
        action.sa_flags = SA_SIGINFO;
        sigfillset(&action.sa_mask);
        sigaction(SIGTRAP, &action, nullptr);
        std::vector<std::thread> running;
        for (size_t i = 0; i < threads; i++)
                running.emplace_back(run, (int)i, std::ref(sets), rounds, warm, crossing);
        hand_to(0);
        for (std::thread &t : running)
                t.join();
        double per = 1000.0 / (double)(threads * objects * (rounds - warm));
        bench::answer answer;
        const char *const kinds[] = { "fill", "give", "again" };
        for (size_t i = 0; i < 3; i++) {
                const struct slab_turns_lock &lock = slab_turns_counted.of[i];
                std::string name = kinds[i];
                answer.add((name + "_asked").c_str(), (double)lock.asked * per);
                answer.add((name + "_busy").c_str(), (double)lock.busy * per);
                answer.add((name + "_refused").c_str(), (double)lock.refused * per);
        }
        uint64_t steps = 0, held = 0;
        for (cpu &c : cpus) {
                steps += c.steps;
                held += c.held;
        }
        answer.add("steps", (double)steps * per / 1000);
        answer.add("held", (double)held * per / 1000);
        answer.add("slow", (double)(passes - began) * quantum /
                           (double)(objects * (rounds - warm)));
        return 0;
}
