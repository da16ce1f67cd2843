/*
 * Purpose: a plugin of qemu-system-*. The emulated CPUs take turns of some instructions each, so
 * any number of them contend on a host of two. Without it each CPU is a thread of the host that
 * runs for milliseconds while the others stand still. Then a CPU is hardly ever stopped between a
 * load and its compare-and-swap. With it the CPUs in user space run in turn, as CPUs of equal speed
 * do: `instructions=N` of one, then of the next. The number of each turn is drawn from 1 to 2N - 1,
 * so that the CPUs do not run in step.
 * Place: built and named to qemu by tools/machines/emulated-machine --turns. Debian has no header
 * of the interface (version 1, https://www.qemu.org/docs/master/devel/tcg-plugins.html). What is
 * used of it is declared here.
 * Invariants:
 *  I1 `turn` is a CPU that is in user space, or none. A CPU that enters the kernel gives its turn
 *     away.
 *  I2 No CPU waits without end: after PATIENCE it takes the turn. Qemu stops all CPUs at times
 *     (after a flush of translations), wherever they are. Then the holder of the turn waits for a
 *     CPU that waits here. `taken` counts these.
 * Concurrency: each callback runs in the thread of its CPU; all that is shared is atomic.
 */
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

typedef uint64_t plugin_id;
struct qemu_plugin_tb;
struct qemu_plugin_insn;

void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, void (*)(plugin_id, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_idle_cb(plugin_id, void (*)(plugin_id, unsigned));
void qemu_plugin_register_atexit_cb(plugin_id, void (*)(plugin_id, void *), void *);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, void (*)(unsigned, void *),
                                          int flags, void *);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, void (*)(unsigned, void *),
                                            int flags, void *);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);

int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv);
int qemu_plugin_version = 1;

#define CPUS 256
#define NO_CPU (-1)
#define PATIENCE 1000000                /* ns */

static _Atomic int turn = NO_CPU;
static _Atomic unsigned left;           /* instructions of this turn; the holder's */
static struct {
        _Atomic int inside;             /* in user space */
        _Atomic unsigned wake;          /* futex */
        char own_line[56];
} cpus[CPUS];
static unsigned quantum = 4;
static _Atomic bool booted; /* a kernel runs: what is below it now is user space, not its loader */
static _Atomic unsigned highest;        /* CPU seen in user space */
static _Atomic uint64_t turns, taken, drawn = 88172645463325252u;

static unsigned draw(void)
{
        uint64_t x = atomic_load_explicit(&drawn, memory_order_relaxed);

        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        atomic_store_explicit(&drawn, x, memory_order_relaxed);
        return 1 + (unsigned)((x >> 32) % (2 * quantum - 1));
}

static void give(unsigned to)
{
        atomic_store(&left, draw());
        atomic_store(&turn, (int)to);
        atomic_fetch_add(&turns, 1);
        atomic_fetch_add(&cpus[to].wake, 1);
        syscall(SYS_futex, &cpus[to].wake, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* To the next in user space after `cpu`; if it is the only one, it goes on. */
static void pass(unsigned cpu, bool stays)
{
        unsigned n = atomic_load(&highest) + 1;

        for (unsigned i = 1; i < n; i++) {
                unsigned next = (cpu + i) % n;

                if (atomic_load(&cpus[next].inside)) {
                        give(next);
                        return;
                }
        }
        atomic_store(&left, draw());
        if (!stays)
                atomic_store(&turn, NO_CPU);
}

static void wait_turn(unsigned cpu)
{
        for (;;) {
                unsigned seen = atomic_load(&cpus[cpu].wake);
                struct timespec patience = { 0, PATIENCE };
                int no_cpu = NO_CPU;

                if (atomic_load(&turn) == (int)cpu)
                        return;
                if (atomic_compare_exchange_strong(&turn, &no_cpu, (int)cpu)) {
                        atomic_store(&left, draw());
                        return;
                }
                if (syscall(SYS_futex, &cpus[cpu].wake, FUTEX_WAIT_PRIVATE, seen, &patience, NULL,
                            0) &&
                    atomic_load(&cpus[cpu].wake) == seen) {
                        atomic_fetch_add(&taken, 1);
                        atomic_store(&left, draw());
                        atomic_store(&turn, (int)cpu);
                        return;
                }
        }
}

static void on_instruction(unsigned cpu, void *unused)
{
        unsigned most = atomic_load_explicit(&highest, memory_order_relaxed);

        (void)unused;
        while (most < cpu && !atomic_compare_exchange_weak(&highest, &most, cpu))
                ;
        if (!atomic_load_explicit(&cpus[cpu].inside, memory_order_relaxed))
                atomic_store(&cpus[cpu].inside, 1);
        if (atomic_load(&turn) == (int)cpu) {
                unsigned now = atomic_load_explicit(&left, memory_order_relaxed);

                if (now) {
                        atomic_store_explicit(&left, now - 1, memory_order_relaxed);
                        return;
                }
                pass(cpu, true);
        }
        wait_turn(cpu);
}

static void on_kernel(unsigned cpu, void *unused)
{
        (void)unused;
        if (!atomic_load_explicit(&cpus[cpu].inside, memory_order_relaxed))
                return;
        atomic_store(&cpus[cpu].inside, 0);
        if (atomic_load(&turn) == (int)cpu)
                pass(cpu, false);
}

static void on_idle(plugin_id id, unsigned cpu)
{
        (void)id;
        on_kernel(cpu, NULL);
}

static void on_translate(plugin_id id, struct qemu_plugin_tb *tb)
{
        size_t n = qemu_plugin_tb_n_insns(tb);

        (void)id;
        if (qemu_plugin_tb_vaddr(tb) >> 63) {
                atomic_store(&booted, true);
                qemu_plugin_register_vcpu_tb_exec_cb(tb, on_kernel, 0, NULL);
                return;
        }
        for (size_t i = 0; i < n && atomic_load(&booted); i++)
                qemu_plugin_register_vcpu_insn_exec_cb(qemu_plugin_tb_get_insn(tb, i),
                                                       on_instruction, 0, NULL);
}

static void on_end(plugin_id id, void *unused)
{
        (void)id;
        (void)unused;
        fprintf(stderr, "%llu turns, %llu of them taken\n", (unsigned long long)turns,
                (unsigned long long)taken);
}

int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv)
{
        (void)info;
        for (int i = 0; i < argc; i++)
                if (!strncmp(argv[i], "instructions=", 13))
                        quantum = (unsigned)atoi(argv[i] + 13);
        if (!quantum)
                return -1;
        qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
        qemu_plugin_register_vcpu_idle_cb(id, on_idle);
        qemu_plugin_register_atexit_cb(id, on_end, NULL);
        return 0;
}
