/*
 * bench/threads/handover.cc - two threads in turn: one allocates a batch, the other frees it
 *
 * Purpose: what an object costs each of the two, apart. The threads of prodcons run freely, so how
 * often they meet decides. Here one waits while the other works: what differs between one node and
 * two is the allocator's own work.
 * Answer: producer_ns and consumer_ns, processor time of an object allocated and of one freed.
 * Options: size=BYTES, batch=N, batches=N.
 */
#include <semaphore.h>
#include <thread>
#include <vector>

#include "../harness/harness.h"

static std::vector<void *> objects;
static sem_t full, empty;

/* Processor time of all batches on the CPU. */
template <typename Work>
static void in_turn(int cpu, long batches, sem_t *mine, sem_t *other, double *ns, Work work)
{
        bench::pin_to(cpu);
        for (long i = 0; i < batches; i++) {
                while (sem_wait(mine) != 0)
                        continue;
                double start = bench::thread_ns();
                work();
                *ns += bench::thread_ns() - start;
                sem_post(other);
        }
}

static void allocate(size_t size)
{
        for (void *&o : objects) {
                o = malloc(size);
                if (!o)
                        abort();
                *(volatile char *)o = 1;
        }
}

static void free_all()
{
        for (void *o : objects)
                free(o);
}

int main(int argc, char **argv)
{
        size_t size = (size_t)bench::option(argc, argv, "size", 64);
        long batch = bench::option(argc, argv, "batch", 2048);
        long batches = bench::option(argc, argv, "batches", 2000);
        double produce_ns = 0, consume_ns = 0;

        if (!size || batch < 1 || batches < 1) {
                fprintf(stderr, "handover: bad options\n");
                return 2;
        }
        bench::answer answer;
        objects.resize((size_t)batch);
        sem_init(&empty, 0, 1);
        sem_init(&full, 0, 0);
        std::thread consumer([&] { in_turn(1, batches, &full, &empty, &consume_ns, free_all); });
        std::thread producer([&] {
                in_turn(0, batches, &empty, &full, &produce_ns, [size] { allocate(size); });
        });
        producer.join();
        consumer.join();
        double count = (double)batch * (double)batches;
        answer.add("producer_ns", produce_ns / count).add("consumer_ns", consume_ns / count);
        return 0;
}
