/*
 * bench/aspace/aspace.cc - the kernel's address-space workloads on the model of
 * examples/address_space
 *
 * Purpose: the kernel's tables 1.3 to 1.5, one front end (front.h) in a process.
 *   work=mmap2        each thread maps and unmaps 128 MiB in a loop, in an address space of its own
 *                     (processes=1: each in a process of its own, as the kernel's table has it)
 *   work=page_fault3  threads share one: each maps 128 MiB, touches every page of it once, unmaps;
 *                     objects=BYTES: each fault allocates an object, and the unmap frees them all
 *   work=phone        one thread maps one page, reads it, unmaps it
 *   work=replay       one thread replays a recorded program's calls (file=) again and again;
 *                     prealloc=: enum front_preallocation (front.h)
 * Answer: mmap2: "pairs" of map and unmap a second and thread. page_fault3: "faults" a second and
 * thread. phone: "loops" a second. replay: calls a second, and counts of nodes (struct
 * front_counts). "resident_kib" is taken at the end, not of processes. The barn of the sheaves is
 * compiled with a counter (counted/count_retries.h). So the answer has "barn_calls", its gets and
 * puts, and "retries_per_1000_barn_calls", of its compare-and-swaps. In aspace-spin the barn's
 * stacks are under a spinning lock instead (aspace/spin_stack.h), and the retries are its spins.
 * Options: front=NAME, threads=1, seconds=1 or milliseconds=, kib=131072 of a mapping (phone: 4).
 * rounds=N ends mmap2 and page_fault3 when one thread has mapped and unmapped N times, for machines
 * whose clock says little (tools/machines/emulated-machine).
 */
#include <atomic>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <vector>

#include <urcu/urcu-bp.h>

#include "../harness/harness.h"
#include "address_space.h"
#include "front.h"

extern "C" {
uint64_t stook_bench_retries;
}

static uint64_t mapping = uint64_t(128) << 20, rounds;
static bool fault_allocates;

/* What threads, or processes, share: in memory that a fork does not copy. */
struct shared {
        std::atomic<bool> go, stop;
        std::atomic<uint64_t> sum;
        std::atomic<long> ready;
};
static shared *common;

static uint64_t mmap2(struct address_space *space)
{
        uint64_t pairs = 0, at;

        while (!common->stop.load(std::memory_order_relaxed)) {
                if (address_space_map(space, mapping, nullptr, &at) ||
                    address_space_unmap(space, at, mapping))
                        abort();
                if (++pairs == rounds)
                        common->stop = true;
        }
        return pairs;
}

static uint64_t page_fault3(struct address_space *space)
{
        std::vector<unsigned char> pages(mapping / PAGE);
        std::vector<void *> objects(fault_allocates ? mapping / PAGE : 0);
        uint64_t faults = 0, pairs = 0, at;

        while (!common->stop.load(std::memory_order_relaxed)) {
                if (address_space_map(space, mapping, pages.data(), &at))
                        abort();
                for (uint64_t page = 0; page < mapping / PAGE; page++) {
                        urcu_bp_read_lock();
                        if (!address_space_fault(space, at + page * PAGE))
                                abort();
                        urcu_bp_read_unlock();
                        if (fault_allocates && !(objects[page] = front_page_take()))
                                abort();
                }
                faults += mapping / PAGE;
                if (address_space_unmap(space, at, mapping))
                        abort();
                if (fault_allocates)
                        front_pages_give(objects.size(), objects.data());
                if (++pairs == rounds)
                        common->stop = true;
        }
        return faults;
}

static uint64_t phone(struct address_space *space)
{
        unsigned char page = 0;
        uint64_t loops = 0, at;

        for (; !common->stop.load(std::memory_order_relaxed); loops++) {
                if (address_space_map(space, mapping, &page, &at))
                        abort();
                urcu_bp_read_lock();
                if (!address_space_fault(space, at))
                        abort();
                urcu_bp_read_unlock();
                if (address_space_unmap(space, at, mapping))
                        abort();
        }
        return loops;
}

struct call { char what; uint64_t at, bytes; };

static std::vector<call> read_calls(const char *path)
{
        std::vector<call> calls;
        FILE *in = path ? fopen(path, "r") : nullptr;
        char line[256];
        long long at, bytes;

        while (in && fgets(line, sizeof(line), in)) {
                if (sscanf(line, "map %lli %lli", &at, &bytes) == 2)
                        calls.push_back({'m', (uint64_t)at, (uint64_t)bytes});
                else if (sscanf(line, "unmap %lli %lli", &at, &bytes) == 2)
                        calls.push_back({'u', (uint64_t)at, (uint64_t)bytes});
                else if (sscanf(line, "brk %lli", &at) == 1)
                        calls.push_back({'b', (uint64_t)at, 0});
        }
        if (in)
                fclose(in);
        return calls;
}

static int replay(const char *path, long seconds)
{
        std::vector<call> calls = read_calls(path);
        uint64_t done = 0, start = bench::now_ns(), end = start + (uint64_t)seconds * 1000000000u;

        if (calls.empty()) {
                fprintf(stderr, "no calls to replay: file=\n");
                return 2;
        }
        do {
                struct address_space space;

                if (address_space_init(&space, STOOK_MAPLE_RCU))
                        return 2;
                for (const call &c : calls) {
                        front_height(stook_maple_height(&space.areas));
                        if (c.what == 'm' ? address_space_map_fixed(&space, c.at, c.bytes, nullptr)
                            : c.what == 'u' ? address_space_unmap(&space, c.at, c.bytes)
                                            : address_space_brk(&space, c.at))
                                return 1;
                }
                done += calls.size();
                address_space_end(&space);
        } while (seconds && bench::now_ns() < end);
        uint64_t ns = bench::now_ns() - start;
        front_settle();
        struct front_counts n = front_counts();
        bench::answer answer;
        answer.add("calls", (double)done * 1e9 / (double)ns).add("replayed", (double)done);
        answer.add("taken", (double)n.taken).add("taken_behind", (double)n.taken_behind);
        answer.add("taken_alone", (double)n.taken_alone).add("lent", (double)n.lent);
        answer.add("given", (double)n.given).add("given_behind", (double)n.given_behind);
        answer.add("given_alone", (double)n.given_alone);
        answer.add("resident_kib", (double)bench::resident_kib());
        return 0;
}

/* One pair: older front ends are made by one thread. */
static bool prepare(struct address_space *space)
{
        uint64_t at;

        return !address_space_init(space, STOOK_MAPLE_RCU) &&
               !address_space_map(space, mapping, nullptr, &at) &&
               !address_space_unmap(space, at, mapping);
}

static void wait_for_go()
{
        common->ready++;
        while (!common->go.load())
                std::this_thread::yield();
}

/* Lets all begin at once, and ends them; the time that they had, in ns. */
static uint64_t let_run(long workers, uint64_t length)
{
        while (common->ready.load() < workers)
                usleep(1000);
        uint64_t start = bench::now_ns();
        common->go = true;
        while (rounds ? !common->stop.load() : bench::now_ns() - start < length)
                usleep(2000);
        uint64_t ns = bench::now_ns() - start;
        common->stop = true;
        return ns;
}

typedef uint64_t (*work_function)(struct address_space *space);

static int by_processes(work_function work, long n, uint64_t length, const char *unit)
{
        std::vector<pid_t> children;
        bool good = true;

        for (long i = 0; i < n; i++) {
                pid_t child = fork();
                if (!child) {
                        struct address_space space;
                        if (!prepare(&space))
                                _exit(2);
                        wait_for_go();
                        common->sum += work(&space);
                        _exit(0);
                }
                if (child > 0)
                        children.push_back(child);
        }
        uint64_t ns = let_run((long)children.size(), length);
        for (pid_t child : children) {
                int status;
                good = waitpid(child, &status, 0) == child && !status && good;
        }
        if (!good || (long)children.size() != n)
                return 2;
        bench::answer().add(unit, (double)common->sum * 1e9 / (double)ns / (double)n);
        return 0;
}

static int by_threads(work_function work, long threads, bool shared_space, uint64_t length,
                      const char *unit)
{
        std::vector<struct address_space> spaces(shared_space ? 1 : (size_t)threads);
        std::vector<std::thread> workers;

        for (auto &space : spaces)
                if (!prepare(&space))
                        return 2;
        for (long i = 0; i < threads; i++)
                workers.emplace_back([&, i] {
                        wait_for_go();
                        common->sum += work(&spaces[shared_space ? 0 : (size_t)i]);
                        front_settle();
                });
        uint64_t ns = let_run(threads, length);
        for (auto &worker : workers)
                worker.join();
        bench::answer answer;
        answer.add(unit, (double)common->sum * 1e9 / (double)ns / (double)threads);
        answer.add("resident_kib", (double)bench::resident_kib());
        if (uint64_t barn_calls = front_barn_calls())
                answer.add("barn_calls", (double)barn_calls)
                        .add("retries_per_1000_barn_calls",
                             1000 * (double)stook_bench_retries / (double)barn_calls);
        return 0;
}

int main(int argc, char **argv)
{
        static const struct {
                const char *name, *unit;
                work_function work;
                bool shared_space;
                long kib;
        } works[] = {
                { "mmap2", "pairs", mmap2, false, 128 << 10 },
                { "page_fault3", "faults", page_fault3, true, 128 << 10 },
                { "phone", "loops", phone, false, 4 },
        };
        const char *front = bench::text_option(argc, argv, "front", "sheaves");
        const char *work = bench::text_option(argc, argv, "work", "mmap2");
        long threads = bench::option(argc, argv, "threads", 1),
             seconds = bench::option(argc, argv, "seconds", 1),
             object_bytes = bench::option(argc, argv, "objects", 0);
        bool processes = bench::option(argc, argv, "processes", 0) != 0;
        uint64_t length = (uint64_t)bench::option(argc, argv, "milliseconds", seconds * 1000) *
                          1000000u;

        rounds = (uint64_t)bench::option(argc, argv, "rounds", 0);
        common = (shared *)mmap(nullptr, sizeof(*common), PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (common == MAP_FAILED)
                return 2;
        if (!front_choose(front)) {
                fprintf(stderr, "no front end %s\n", front);
                return 2;
        }
        front_preallocate((enum front_preallocation)bench::option(argc, argv, "prealloc", 0));
        fault_allocates = object_bytes > 0;
        if (fault_allocates && !front_pages_create((size_t)object_bytes))
                return 2;
        if (!strcmp(work, "replay"))
                return replay(bench::text_option(argc, argv, "file", nullptr), seconds);
        for (auto &w : works) {
                if (strcmp(work, w.name))
                        continue;
                mapping = (uint64_t)bench::option(argc, argv, "kib", w.kib) << 10;
                return processes ? by_processes(w.work, threads, length, w.unit)
                                 : by_threads(w.work, threads, w.shared_space, length, w.unit);
        }
        fprintf(stderr, "no work %s\n", work);
        return 2;
}
