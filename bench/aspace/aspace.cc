/*
 * bench/aspace/aspace.cc - the kernel's address-space workloads on the model of
 * examples/address_space
 *
 * Purpose: the kernel's tables 1.3 to 1.5, one front end (front.h) in a process.
 *   work=mmap2        each thread maps and unmaps 128 MiB in a loop, in an address space of its own
 *   work=page_fault3  threads share one: each maps 128 MiB, touches every page of it once, unmaps
 *   work=replay       one thread replays a recorded program's calls (file=) again and again;
 *                     prealloc=0|1|2: exactly what a write needs; the worst case, in bulk; the
 *                     worst case, in a loop
 * Answer: mmap2: "pairs" of map and unmap a second and thread. page_fault3: "faults" a second and
 * thread. replay: calls a second, and counts of nodes taken and given, at the array or sheaf and at
 * the layer behind it. "resident_kib" is taken at the end. The barn of the sheaves is compiled with
 * a counter (micro/count_retries.h). So the answer has "barn_calls", its gets and puts, and
 * "retries_per_1000_barn_calls", of its compare-and-swaps.
 * Options: front=NAME, threads=1, seconds=1 or milliseconds=, kib=131072 of a mapping. rounds=N
 * ends mmap2 and page_fault3 when one thread has mapped and unmapped N times, for machines whose
 * clock says little (tools/emulated-machine).
 */
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <urcu/urcu-bp.h>

#include "../harness.h"
#include "address_space.h"
#include "front.h"

extern "C" {
uint64_t stook_bench_retries;
}

static uint64_t mapping = uint64_t(128) << 20, rounds;
static std::atomic<bool> go{false}, stop{false};

static uint64_t mmap2(struct address_space *space)
{
        uint64_t pairs = 0, at;

        while (!stop.load(std::memory_order_relaxed)) {
                if (address_space_map(space, mapping, nullptr, &at) ||
                    address_space_unmap(space, at, mapping))
                        abort();
                if (++pairs == rounds)
                        stop = true;
        }
        return pairs;
}

static uint64_t page_fault3(struct address_space *space)
{
        std::vector<unsigned char> pages(mapping / PAGE);
        uint64_t faults = 0, pairs = 0, at;

        while (!stop.load(std::memory_order_relaxed)) {
                if (address_space_map(space, mapping, pages.data(), &at))
                        abort();
                for (uint64_t page = 0; page < mapping / PAGE; page++) {
                        urcu_bp_read_lock();
                        if (!address_space_fault(space, at + page * PAGE))
                                abort();
                        urcu_bp_read_unlock();
                }
                faults += mapping / PAGE;
                if (address_space_unmap(space, at, mapping))
                        abort();
                if (++pairs == rounds)
                        stop = true;
        }
        return faults;
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
        answer.add("given", (double)n.given).add("given_behind", (double)n.given_behind);
        answer.add("resident_kib", (double)bench::resident_kib());
        return 0;
}

int main(int argc, char **argv)
{
        const char *front = bench::text_option(argc, argv, "front", "sheaves");
        const char *work = bench::text_option(argc, argv, "work", "mmap2");
        long threads = bench::option(argc, argv, "threads", 1),
             seconds = bench::option(argc, argv, "seconds", 1);
        uint64_t length = (uint64_t)bench::option(argc, argv, "milliseconds", seconds * 1000) *
                          1000000u;
        bool shared = !strcmp(work, "page_fault3");
        mapping = (uint64_t)bench::option(argc, argv, "kib", 128 << 10) << 10;
        rounds = (uint64_t)bench::option(argc, argv, "rounds", 0);
        std::vector<struct address_space> spaces(shared ? 1 : (size_t)threads);
        std::vector<std::thread> workers;
        std::atomic<uint64_t> sum{0};

        if (!front_choose(front)) {
                fprintf(stderr, "no front end %s\n", front);
                return 2;
        }
        front_preallocate((enum front_preallocation)bench::option(argc, argv, "prealloc", 0));
        if (!strcmp(work, "replay"))
                return replay(bench::text_option(argc, argv, "file", nullptr), seconds);
        if (!shared && strcmp(work, "mmap2")) {
                fprintf(stderr, "no work %s\n", work);
                return 2;
        }
        /* One pair from here: the older front ends are made by one thread. */
        for (auto &space : spaces) {
                uint64_t at;
                if (address_space_init(&space, STOOK_MAPLE_RCU) ||
                    address_space_map(&space, mapping, nullptr, &at) ||
                    address_space_unmap(&space, at, mapping))
                        return 2;
        }
        for (long i = 0; i < threads; i++)
                workers.emplace_back([&, i] {
                        while (!go.load())
                                std::this_thread::yield();
                        sum += shared ? page_fault3(&spaces[0]) : mmap2(&spaces[(size_t)i]);
                        front_settle();
                });
        uint64_t start = bench::now_ns();
        go = true;
        while (rounds ? !stop.load() : bench::now_ns() - start < length)
                usleep(2000);
        uint64_t ns = bench::now_ns() - start;
        stop = true;
        for (auto &worker : workers)
                worker.join();
        bench::answer answer;
        answer.add(shared ? "faults" : "pairs", (double)sum * 1e9 / (double)ns / (double)threads);
        answer.add("resident_kib", (double)bench::resident_kib());
        if (uint64_t barn_calls = front_barn_calls())
                answer.add("barn_calls", (double)barn_calls)
                        .add("retries_per_1000_barn_calls",
                             1000 * (double)stook_bench_retries / (double)barn_calls);
        return 0;
}
