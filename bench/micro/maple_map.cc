/*
 * bench/micro/maple_map.cc - the maple tree beside ordered maps, one of them in a process
 *
 * Purpose: ranges stored, looked up by any key inside, and looked up by one thread while another stores.
 * How: map=maple, map=std (std::map by first key) or map=btree (absl::btree_map). n ranges of 1 to 16 keys (with
 * gaps=1: and gaps of up to 15 between them, which take room in a maple tree and none in a map) are stored in random order; a lookup takes a random key and must find the range it lies in, or none.
 * "beside": one thread looks up for half a second while another stores and erases without pause: the maple tree's readers
 * take no lock (RCU); the others' share a reader-writer lock with the writer.
 * Answer: "store_ns", "lookup_ns", "beside_per_us" lookups, "beside_writes_per_us", "bytes" resident for an entry,
 * "node_bytes" of them in the tree's nodes (what is left lies free in slabs that readers kept from being given back).
 * Options: map=NAME, n=100000, gaps=0.
 */
#include <algorithm>
#include <atomic>
#include <map>
#include <thread>
#include <vector>

#include <malloc.h>
#include <pthread.h>
#include <urcu/urcu-bp.h>

#include <absl/container/btree_map.h>
#include <stook/maple.h>
#include <stook/control.h>
#include <stook/rcu.h>

#include "../harness.h"

struct range { uint64_t first, last; void *entry; };

struct maple {
        struct stook_maple tree;
        maple() { stook_rcu_use(&stook_urcu_bp); stook_maple_init(&tree, STOOK_MAPLE_RCU); }
        ~maple() { stook_maple_destroy(&tree); }
        void store(const range &r) { if (stook_maple_store(&tree, r.first, r.last, r.entry)) abort(); }
        void erase(const range &r) { stook_maple_erase(&tree, r.first); }
        void *lookup(uint64_t key) { return stook_maple_load(&tree, key); }
        void *lookup_beside(uint64_t key)
        {
                urcu_bp_read_lock();
                void *entry = lookup(key);
                urcu_bp_read_unlock();
                return entry;
        }
        size_t node_bytes() { return stook_maple_nodes(&tree) * 256; }
        void settle() { stook_rcu_barrier(); stook_trim(0); }
        void store_beside(const range &r) { store(r); }
        void erase_beside(const range &r) { erase(r); }
};

struct value { uint64_t last; void *entry; };

template <typename Map> struct ordered {
        Map map;
        pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
        void store(const range &r) { map[r.first] = {r.last, r.entry}; }
        void erase(const range &r) { map.erase(r.first); }
        void *lookup(uint64_t key)
        {
                auto at = map.upper_bound(key);
                if (at == map.begin())
                        return nullptr;
                --at;
                return key <= at->second.last ? at->second.entry : nullptr;
        }
        void *lookup_beside(uint64_t key)
        {
                pthread_rwlock_rdlock(&lock);
                void *entry = lookup(key);
                pthread_rwlock_unlock(&lock);
                return entry;
        }
        size_t node_bytes() { return 0; }
        void settle() { malloc_trim(0); }
        void store_beside(const range &r)
        {
                pthread_rwlock_wrlock(&lock);
                store(r);
                pthread_rwlock_unlock(&lock);
        }
        void erase_beside(const range &r)
        {
                pthread_rwlock_wrlock(&lock);
                erase(r);
                pthread_rwlock_unlock(&lock);
        }
};

template <typename Map> static void beside(Map &map, std::vector<range> &ranges, uint64_t keys, bench::answer &answer)
{
        std::atomic<bool> stop{false};
        uint64_t writes = 0, reads = 0, found = 0;
        std::thread writer([&] {
                bench::rng r(3);
                while (!stop.load(std::memory_order_relaxed)) {
                        range &one = ranges[r.below((uint32_t)ranges.size())];
                        map.erase_beside(one);
                        map.store_beside(one);
                        writes += 2;
                }
        });
        bench::rng r(4);
        uint64_t start = bench::now_ns(), ns;
        do {
                for (int i = 0; i < 256; i++)
                        found += map.lookup_beside(r.next() % keys) != nullptr;
                reads += 256;
                ns = bench::now_ns() - start;
        } while (ns < 500000000u);
        stop = true;
        writer.join();
        bench::keep(found);
        answer.add("beside_per_us", (double)reads * 1e3 / (double)ns).add("beside_writes_per_us", (double)writes * 1e3 / (double)ns);
}

template <typename Map> static int measure(size_t n, bool gaps)
{
        std::vector<range> ranges(n);
        bench::rng r(1);
        uint64_t key = 1;

        for (auto &one : ranges) {
                one.first = key += 1 + (gaps ? r.below(16) : 0);
                one.last = key += r.below(16);
                one.entry = &one;
        }
        uint64_t keys = key + 16;
        for (size_t i = n; i > 1; i--)
                std::swap(ranges[i - 1], ranges[r.below((uint32_t)i)]);
        for (auto &one : ranges)
                one.entry = &one;
        bench::answer answer;
        long before = bench::resident_kib();
        static Map map;
        uint64_t start = bench::now_ns();
        for (auto &one : ranges)
                map.store(one);
        answer.add("store_ns", (double)(bench::now_ns() - start) / (double)n);
        map.settle();
        answer.add("node_bytes", (double)map.node_bytes() / (double)n);
        answer.add("bytes", (double)(bench::resident_kib() - before) * 1024 / (double)n);

        size_t lookups = n < 1000000 ? 2000000 : 4000000;
        uint64_t found = 0;
        start = bench::now_ns();
        for (size_t i = 0; i < lookups; i++) {
                uint64_t wanted = r.next() % keys;
                range *one = static_cast<range *>(map.lookup(wanted));
                if (one) {
                        if (wanted < one->first || wanted > one->last)
                                return 1;
                        found++;
                }
        }
        answer.add("lookup_ns", (double)(bench::now_ns() - start) / (double)lookups);
        if (found < lookups / 4)
                return 1;
        beside(map, ranges, keys, answer);
        return 0;
}

int main(int argc, char **argv)
{
        const char *map = bench::text_option(argc, argv, "map", "maple");
        size_t n = (size_t)bench::option(argc, argv, "n", 100000);

        bool gaps = bench::option(argc, argv, "gaps", 0);

        if (!strcmp(map, "maple"))
                return measure<maple>(n, gaps);
        if (!strcmp(map, "std"))
                return measure<ordered<std::map<uint64_t, value>>>(n, gaps);
        if (!strcmp(map, "btree"))
                return measure<ordered<absl::btree_map<uint64_t, value>>>(n, gaps);
        fprintf(stderr, "no map %s\n", map);
        return 2;
}
