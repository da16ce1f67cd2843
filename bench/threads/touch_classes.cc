/*
 * bench/threads/touch_classes.cc - every thread touches every size class
 *
 * Purpose: run by bench/run.py in a memory control group of 64 MiB. 128 threads, all at the same
 * time, go through all sizes from 16 bytes to 128 KiB, four for each doubling; each holds one
 * object of a size at a time, writes one byte in each of its pages, frees it and goes on. All
 * threads stay alive to the end. The objects themselves need little; an allocator with a page of
 * each class for each thread needs gigabytes.
 * Answer: resident_KiB with all threads parked, peak_KiB. (Killed by the kernel: no answer.)
 * Options: threads=N.
 */
#include <pthread.h>
#include <vector>

#include "../harness/harness.h"

static pthread_barrier_t start, parked, leave;

static void touch(size_t size)
{
        volatile char *object = (volatile char *)malloc(size);
        if (!object)
                abort();
        for (size_t at = 0; at < size; at += 4096)
                object[at] = 1;
        free((void *)object);
}

static void *work(void *)
{
        pthread_barrier_wait(&start);
        for (int round = 0; round < 2; round++) {
                for (size_t size = 16; size < 128; size += 16)
                        touch(size);
                for (size_t doubling = 128; doubling < (size_t)128 << 10; doubling *= 2)
                        for (size_t quarter = 0; quarter < 4; quarter++)
                                touch(doubling + quarter * doubling / 4);
        }
        pthread_barrier_wait(&parked);
        pthread_barrier_wait(&leave);
        return nullptr;
}

int main(int argc, char **argv)
{
        unsigned threads = (unsigned)bench::option(argc, argv, "threads", 128);
        bench::answer answer;
        std::vector<pthread_t> thread(threads);
        pthread_barrier_init(&start, nullptr, threads);
        pthread_barrier_init(&parked, nullptr, threads + 1);
        pthread_barrier_init(&leave, nullptr, threads + 1);
        for (pthread_t &t : thread)
                if (pthread_create(&t, nullptr, work, nullptr) != 0)
                        return 1;
        pthread_barrier_wait(&parked);
        answer.add("resident_KiB", (double)bench::resident_kib())
                .add("peak_KiB", (double)bench::peak_kib());
        pthread_barrier_wait(&leave);
        for (pthread_t t : thread)
                pthread_join(t, nullptr);
        return 0;
}
