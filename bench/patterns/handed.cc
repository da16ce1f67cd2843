/*
 * bench/patterns/handed.cc - objects that another thread frees, and threads that come and go
 *
 * Purpose: what it costs when memory changes threads: in batches, in lists, as the heritage of a
 * thread that ended, or as two objects in one line of the processor's cache.
 * Place: see pattern.h. Threads that wait for each other sleep: waiting is hardly any processor
 * time.
 */
#include <atomic>

#include "pattern.h"

namespace patterns {
namespace {

constexpr const char *usual = "1,2,16", *several = "2,16";

/* The entries of one worker's table, handed from a thread to the next. */
struct heritage {
        worker *of;
        size_t operations;
        size_t generations;
};

void *larson_life(void *argument)
{
        heritage *mine = (heritage *)argument;
        worker &w = *mine->of;
        for (size_t n = mine->operations; n > 0; n--)
                replace(w, w.any_entry(), 8 + w.random.below(993));
        if (mine->generations-- > 1) {
                pthread_t next = started(larson_life, mine);
                pthread_join(next, nullptr);
        }
        return nullptr;
}

/*
 * The server of connections: each thread replaces at random, then leaves everything to a new
 * thread.
 */
void larson(worker &w)
{
        heritage h = {&w, w.share(100000), 8};
        pthread_join(started(larson_life, &h), nullptr);
}

void fill_larson(worker &w)
{
        for (size_t i = 0; i < w.entries; i++)
                w.table[i] = make(8 + w.random.below(993));
}

/* A batch of objects; batches wait for a taker in a queue with an end. */
struct batch {
        uint64_t head[2];
        batch *next;
        size_t count;
        char *object[256];
};

struct batch_queue {
        pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
        pthread_cond_t more = PTHREAD_COND_INITIALIZER, room = PTHREAD_COND_INITIALIZER;
        batch *first = nullptr;
        size_t length = 0, makers = 0;
        void put(batch *b)
        {
                pthread_mutex_lock(&lock);
                while (length >= 64)
                        pthread_cond_wait(&room, &lock);
                b->next = first;
                first = b;
                length++;
                pthread_cond_signal(&more);
                pthread_mutex_unlock(&lock);
        }
        /* NULL when all makers are done. */
        batch *take()
        {
                pthread_mutex_lock(&lock);
                while (!first && makers)
                        pthread_cond_wait(&more, &lock);
                batch *b = first;
                if (b) {
                        first = b->next;
                        length--;
                        pthread_cond_signal(&room);
                }
                pthread_mutex_unlock(&lock);
                return b;
        }
        void add_makers(size_t number)
        {
                pthread_mutex_lock(&lock);
                makers += number;
                pthread_cond_broadcast(&more);
                pthread_mutex_unlock(&lock);
        }
};
batch_queue batches;

/* Even workers allocate batches, odd ones free them. */
void xmalloc(worker &w)
{
        constexpr size_t size = 256;
        if (w.me == 0)
                batches.add_makers((w.all->threads + 1) / 2);
        w.all->meet();
        if (w.me % 2 == 0) {
                for (size_t n = 2 * w.share(4000); n > 0; n--) {
                        batch *b = (batch *)(void *)stamped(malloc(sizeof(batch)), head_bytes);
                        b->count = size;
                        for (size_t i = 0; i < size; i++)
                                b->object[i] = make(bench::mixed_size(w.random));
                        w.ops += size + 1;
                        batches.put(b);
                }
                batches.add_makers((size_t)-1);
        } else {
                while (batch *b = batches.take()) {
                        for (size_t i = 0; i < b->count; i++)
                                drop(b->object[i]);
                        drop((char *)b);
                }
        }
}

/* Lists that wait for whichever worker takes them; all NULL between two repeats. */
constexpr size_t lists = 256;
std::atomic<char *> waiting[lists];

size_t stress_size(worker &w)
{
        uint32_t pick = w.random.below(10000);
        if (pick == 0)
                return 64 * 1024 + w.random.below(256 * 1024);
        if (pick < 50)
                return 4096 + w.random.below(28 * 1024);
        return 16 + w.random.below(pick < 5000 ? 48 : 496);
}

/* The worker's list, a list of 16 to 64 objects in exchange for one that waits. */
void *mstress_life(void *argument)
{
        heritage *mine = (heritage *)argument;
        worker &w = *mine->of;
        for (size_t n = mine->operations; n > 0; n--) {
                char *list = nullptr;
                for (size_t length = 16 + w.random.below(48); length > 0; length--, w.ops++) {
                        char *object = make(stress_size(w));
                        link_of(object) = list;
                        list = object;
                }
                /* Pairs with itself: the taker sees what the maker wrote into the objects. */
                list = waiting[w.random.below(lists)].exchange(list, std::memory_order_acq_rel);
                drop_list(list);
                char *&kept = w.table[w.any_entry()];
                drop(kept);
                kept = make(stress_size(w));
                w.ops++;
        }
        return nullptr;
}

/* Every part of the work is done by a thread of its own. */
void mstress(worker &w)
{
        heritage h = {&w, w.share(1500), 0};
        for (int life = 0; life < 8; life++)
                pthread_join(started(mstress_life, &h), nullptr);
        w.all->meet();
        for (size_t i = w.me; i < lists; i += w.all->threads)
                drop_list(waiting[i].exchange(nullptr, std::memory_order_acq_rel));
}

/*
 * Random sizes up to 16,000 bytes: a block of objects is allocated, half of it freed at once, the
 * other half left to the next worker as a list, and what others left is freed.
 */
void rptest(worker &w)
{
        constexpr size_t block = 128;
        for (size_t n = w.share(3000); n > 0; n--) {
                char *object[block], *list = nullptr;
                for (size_t i = 0; i < block; i++)
                        object[i] = make(16 + w.random.below(w.random.below(2) ? 500 : 16000));
                w.ops += block;
                for (size_t i = 0; i < block; i++) {
                        if (i % 2) {
                                drop(object[i]);
                        } else {
                                link_of(object[i]) = list;
                                list = object[i];
                        }
                }
                size_t next = (w.me + 1) % w.all->threads % lists;
                drop_list(waiting[next].exchange(list, std::memory_order_acq_rel));
                drop_list(waiting[w.me % lists].exchange(nullptr, std::memory_order_acq_rel));
        }
        w.all->meet();
        drop_list(waiting[w.me % lists].exchange(nullptr, std::memory_order_acq_rel));
}

/* A list turned round: it is freed in the order in which it was allocated. */
char *reversed(char *list)
{
        char *turned = nullptr;
        while (list) {
                char *next = link_of(list);
                link_of(list) = turned;
                turned = list;
                list = next;
        }
        return turned;
}

/* Runs of one size, small ones more often, each freed by the worker that finds it: every other one
 * last first. */
void sh8(worker &w)
{
        constexpr size_t run = 50;
        for (size_t n = w.share(20000); n > 0; n--, w.ops += run) {
                size_t size = 16 + w.random.below(1 + w.random.below(500));
                char *list = nullptr;
                for (size_t i = 0; i < run; i++) {
                        char *object = make(size);
                        link_of(object) = list;
                        list = object;
                }
                list = waiting[w.random.below(lists)].exchange(list, std::memory_order_acq_rel);
                drop_list(n % 2 ? list : reversed(list));
        }
        w.all->meet();
        for (size_t i = w.me; i < lists; i += w.all->threads)
                drop_list(waiting[i].exchange(nullptr, std::memory_order_acq_rel));
}

void *drop_all(void *argument)
{
        drop_table(*(worker *)argument);
        return nullptr;
}

void freed_by_other(worker &w)
{
        for (size_t i = 0; i < w.entries; i++)
                w.table[i] = make(64);
        w.ops += w.entries;
        pthread_join(started(drop_all, &w), nullptr);
}

void *short_life(void *)
{
        char *object[64];
        for (size_t i = 0; i < 64; i++)
                object[i] = make(16 + i * 13);
        for (char *o : object)
                drop(o);
        return nullptr;
}

void threads_short(worker &w)
{
        for (size_t n = w.share(1000); n > 0; n--, w.ops++)
                pthread_join(started(short_life, nullptr), nullptr);
}

/* Writes of one object that no other thread should be slowed by. */
void write_often(char *object)
{
        for (int i = 0; i < 200; i++)
                ((volatile char *)object)[8 + i % 8]++;
}

void cache_thrash(worker &w)
{
        for (size_t n = w.share(100000); n > 0; n--, w.ops++) {
                char *object = make(16);
                write_often(object);
                drop(object);
        }
}

constexpr size_t most_threads = 256;
char *given[most_threads];

/* The same, but each worker's first object came from the first worker, beside the others'. */
void cache_scratch(worker &w)
{
        if (w.me == 0)
                for (size_t i = 0; i < w.all->threads && i < most_threads; i++, w.ops++)
                        given[i] = make(16);
        w.all->meet();
        if (w.me < most_threads) {
                write_often(given[w.me]);
                drop(given[w.me]);
        }
        cache_thrash(w);
}

} // namespace

pattern_list handed_patterns()
{
        static constexpr pattern all[] = {
                {"larson", usual, 16000, fill_larson, larson, drop_table,
                 "16,000 of 8 to 1,000 bytes, replaced at random; threads end, others inherit"},
                {"xmalloc", several, 0, nullptr, xmalloc, nullptr,
                 "half of the threads free what the others allocate, in batches of 256"},
                {"mstress", usual, 4096, nullptr, mstress, drop_table,
                 "lists of 16 to 64 objects, some large, handed between short threads"},
                {"rptest", usual, 0, nullptr, rptest, nullptr,
                 "16 to 16,000 bytes; half is left to the next thread"},
                {"sh8", usual, 0, nullptr, sh8, nullptr,
                 "runs of one size up to 516 bytes, freed by the next thread in either order"},
                {"freed_by_other", usual, 500000, nullptr, freed_by_other, nullptr,
                 "500,000 of 64 bytes, freed by a new thread"},
                {"threads_short", usual, 0, nullptr, threads_short, nullptr,
                 "threads that allocate and free 64 objects; for each thread"},
                {"cache_thrash", usual, 0, nullptr, cache_thrash, nullptr,
                 "an object is written 200 times and freed"},
                {"cache_scratch", several, 0, nullptr, cache_scratch, nullptr,
                 "the same; the first objects come from one thread"},
        };
        return {all, sizeof(all) / sizeof(*all)};
}

} // namespace patterns
