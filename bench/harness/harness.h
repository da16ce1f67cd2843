/*
 * bench/harness/harness.h - what every benchmark program needs
 *
 * Purpose: clock, random numbers, the process's own memory as the kernel counts it, and one line of
 * JSON as the answer. A benchmark program runs one contender in a process of its own. bench/run.py
 * starts the contenders in turn and compares.
 * Place: included by bench/micro (Google Benchmark), and by bench/macro and bench/threads (programs
 * of one figure).
 * Invariants:
 *  I1 nothing here allocates between two readings of the process's memory. Files are read with
 *     plain read() into the stack, so the allocator under test is seen undisturbed.
 *  I2 each answer names the file that malloc came from. So run.py notices a preload that silently
 *     failed.
 */
#ifndef BENCH_HARNESS_H
#define BENCH_HARNESS_H

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

namespace bench {

inline uint64_t now_ns()
{
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Processor time of all threads of this process: leaves out what other processes took. */
inline uint64_t processor_ns()
{
        struct timespec t;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Processor time of the calling thread. */
inline double thread_ns()
{
        struct timespec t;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* The compiler may neither drop the pointer nor keep memory in registers across this. */
template <typename T> inline void keep(T &value)
{
        __asm__ volatile("" : "+r"(value) : : "memory");
}

/* xorshift64*: a generator of its own for each thread; libc's rand() takes a lock. */
struct rng {
        uint64_t state;
        explicit rng(uint64_t seed) : state(seed * 0x9e3779b97f4a7c15u + 1) {}
        uint64_t next()
        {
                state ^= state >> 12;
                state ^= state << 25;
                state ^= state >> 27;
                return state * 0x2545f4914f6cdd1du;
        }
        /* uniform in [0, n) for n < 2^32 */
        uint32_t below(uint32_t n) { return (uint32_t)(((next() >> 32) * n) >> 32); }
};

/* Sizes as programs ask for them: mostly small, a tail up to 1 KiB; mean about 110 bytes. */
inline uint32_t mixed_size(rng &r)
{
        uint32_t pick = r.below(100);
        if (pick < 45)
                return 16 + r.below(48);
        if (pick < 80)
                return 64 + r.below(64);
        if (pick < 95)
                return 128 + r.below(128);
        return 256 + r.below(768);
}

/* The number behind `key` in a file of /proc, or -1. */
inline long proc_number(const char *path, const char *key)
{
        char text[8192];
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -1;
        size_t have = 0;
        for (ssize_t n;
             have < sizeof(text) - 1 && (n = read(fd, text + have, sizeof(text) - 1 - have)) > 0;)
                have += (size_t)n;
        close(fd);
        text[have] = 0;
        const char *at = strstr(text, key);
        return at ? strtol(at + strlen(key), nullptr, 10) : -1;
}

/*
 * Resident KiB now: smaps_rollup counts pages one by one; /proc/self/statm is off by up to 64 pages
 * for each CPU that has touched the process.
 */
inline long resident_kib()
{
        long kib = proc_number("/proc/self/smaps_rollup", "\nRss:");
        return kib >= 0 ? kib : proc_number("/proc/self/status", "VmRSS:");
}

/* Most that was ever resident, KiB. */
inline long peak_kib()
{
        return proc_number("/proc/self/status", "VmHWM:");
}

/* The file the malloc we call lies in. */
inline const char *malloc_from()
{
        Dl_info info;
        void *at = dlsym(RTLD_DEFAULT, "malloc");
        return at && dladdr(at, &info) && info.dli_fname ? info.dli_fname : "?";
}

/* Runs the calling thread on the n-th CPU it may use, where there are that many. */
inline void pin_to(int n)
{
        cpu_set_t all, one;
        if (sched_getaffinity(0, sizeof(all), &all) != 0 || CPU_COUNT(&all) <= n)
                return;
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
                if (CPU_ISSET(cpu, &all) && n-- == 0) {
                        CPU_ZERO(&one);
                        CPU_SET(cpu, &one);
                        sched_setaffinity(0, sizeof(one), &one);
                        return;
                }
        }
}

/* An argument "key=NUMBER" of the program, or the default. */
inline long option(int argc, char **argv, const char *key, long otherwise)
{
        size_t length = strlen(key);
        for (int i = 1; i < argc; i++)
                if (!strncmp(argv[i], key, length) && argv[i][length] == '=')
                        return strtol(argv[i] + length + 1, nullptr, 0);
        return otherwise;
}

/* An argument "key=TEXT" of the program, or the default. */
inline const char *text_option(int argc, char **argv, const char *key, const char *otherwise)
{
        size_t length = strlen(key);
        for (int i = 1; i < argc; i++)
                if (!strncmp(argv[i], key, length) && argv[i][length] == '=')
                        return argv[i] + length + 1;
        return otherwise;
}

/* The answer of a macro benchmark: {"malloc_from": ..., "name": number, ...} on standard output. */
class answer {
public:
        answer() { printf("{\"malloc_from\": \"%s\"", malloc_from()); }
        answer &add(const char *name, double value)
        {
                printf(", \"%s\": %.6g", name, value);
                return *this;
        }
        ~answer()
        {
                printf("}\n");
                fflush(stdout);
        }
        answer(const answer &) = delete;
        answer &operator=(const answer &) = delete;
};

} // namespace bench

#endif
