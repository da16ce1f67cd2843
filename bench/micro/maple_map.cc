/*
 * bench/micro/maple_map.cc - the maple tree beside ordered maps, one of them in a process
 *
 * Purpose: the time to store ranges, to replace them, to look up any key inside them, and to look
 * up in one thread while another one stores; a step of a walk over all ranges, up and down; and, in
 * trees that track gaps, a search for room.
 * How: map= names the contender:
 *   maple           with RCU and a lock of its own
 *   maple-external  without RCU, the caller locks, as for a std::map
 *   maple-gaps      the same, and the tree keeps track of gaps
 *   std             std::map by first key
 *   btree           absl::btree_map
 * n ranges of 1 to 16 keys are stored in random order, or in order with order=1. With gaps=1 there
 * are gaps of up to 15 keys between them. Gaps take room in a maple tree and none in a map. Then a
 * third as many ranges are erased and stored again. A lookup takes a random key. It must find the
 * range of the key, or none. A walk goes over the whole map as often as makes a million steps. A
 * search for room looks for the lowest gap, or the highest, of 1 to 15 keys from a random key on.
 * "beside": one thread looks up for half a second while another stores
 * and erases without pause. The maple tree's readers take no lock (RCU). Those of the others share
 * a reader-writer lock with the writer.
 * Answer: processor time of the thread: "store_ns", "replace_ns" (a write), "lookup_ns", "up_ns",
 * "down_ns" (a step), "room_ns", "room_rev_ns" (a search; maple-gaps with gaps=1). By the clock
 * on the wall: "beside_per_us" lookups, "beside_writes_per_us". Bytes for an entry once nothing
 * waits for readers: "bytes" resident, and of these "node_bytes" in the tree, "cached_bytes" in
 * sheaves, and "slack_bytes" free in slabs that have other objects in use.
 * Options: map=NAME, n=100000, gaps=0, order=0, lookups=N, beside=1.
 */
#include <algorithm>
#include <atomic>
#include <map>
#include <numeric>
#include <thread>
#include <vector>

#include <malloc.h>
#include <pthread.h>
#include <urcu/urcu-bp.h>

#include <absl/container/btree_map.h>
#include <stook/maple.h>
#include <stook/control.h>
#include <stook/rcu.h>
#include <stook/stats.h>

#include "../harness/harness.h"

struct range { uint64_t first, last; void *entry; };

/* A lock for readers and writers, or none. */
template <bool any> struct shared_lock {
        pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
        void read() { if (any) pthread_rwlock_rdlock(&lock); }
        void write() { if (any) pthread_rwlock_wrlock(&lock); }
        void leave() { if (any) pthread_rwlock_unlock(&lock); }
};

struct sizes { double nodes, cached, slack; };

static int add_sizes(struct stook_cache *cache, void *data)
{
        struct sizes *sum = static_cast<struct sizes *>(data);
        struct stook_cache_stats stats = {};

        stats.stats_size = sizeof(stats);
        if (stook_cache_get_stats(cache, &stats) || strcmp(stats.name, "maple_node"))
                return 0;
        sum->cached = (double)stats.objects_cached * (double)stats.stride;
        sum->slack = (double)stats.slabs * (double)stats.slab_bytes - sum->cached - sum->nodes;
        return 1;
}

template <unsigned flags> struct maple {
        struct stook_maple tree;
        shared_lock<!(flags & STOOK_MAPLE_RCU)> lock;
        maple() { stook_rcu_use(&stook_urcu_bp); stook_maple_init(&tree, flags); }
        ~maple() { stook_maple_destroy(&tree); }
        void store(const range &r)
        {
                if (stook_maple_store(&tree, r.first, r.last, r.entry))
                        abort();
        }
        void erase(const range &r) { if (stook_maple_erase(&tree, r.first, nullptr)) abort(); }
        void *lookup(uint64_t key) { return stook_maple_load(&tree, key); }
        void enter_reader()
        {
                if (flags & STOOK_MAPLE_RCU)
                        urcu_bp_read_lock();
                lock.read();
        }
        void leave_reader()
        {
                if (flags & STOOK_MAPLE_RCU)
                        urcu_bp_read_unlock();
                lock.leave();
        }
        void enter_writer() { lock.write(); }
        void leave_writer() { lock.leave(); }
        uint64_t sum(bool up)
        {
                STOOK_MAPLE_CURSOR(cursor, &tree, up ? 0 : UINT64_MAX, UINT64_MAX);
                void *entry;
                uint64_t sum = 0;

                if (up)
                        stook_maple_cursor_for_each(&cursor, entry, UINT64_MAX)
                                sum += cursor.last + (uintptr_t)entry;
                else
                        stook_maple_cursor_for_each_rev(&cursor, entry, 0)
                                sum += cursor.last + (uintptr_t)entry;
                return sum;
        }
        uint64_t room(uint64_t from, uint64_t size, bool up)
        {
                STOOK_MAPLE_CURSOR(cursor, &tree, 0, 0);
                int error = up ? stook_maple_cursor_empty_area(&cursor, size, from, UINT64_MAX)
                               : stook_maple_cursor_empty_area_rev(&cursor, size, 0, from);

                return error ? 0 : cursor.first;
        }
        void settle() { stook_rcu_barrier(); stook_trim(0); }
        struct sizes sizes()
        {
                struct sizes s = {(double)stook_maple_nodes(&tree) * 256, 0, 0};

                stook_cache_for_each(add_sizes, &s);
                return s;
        }
};

struct value { uint64_t last; void *entry; };

template <typename Map> struct ordered {
        Map map;
        shared_lock<true> lock;
        void store(const range &r) { map[r.first] = {r.last, r.entry}; }
        void erase(const range &r) { if (!map.erase(r.first)) abort(); }
        void *lookup(uint64_t key)
        {
                auto at = map.upper_bound(key);
                if (at == map.begin())
                        return nullptr;
                --at;
                return key <= at->second.last ? at->second.entry : nullptr;
        }
        void enter_reader() { lock.read(); }
        void leave_reader() { lock.leave(); }
        void enter_writer() { lock.write(); }
        void leave_writer() { lock.leave(); }
        static uint64_t add(uint64_t sum, const typename Map::value_type &one)
        {
                return sum + one.second.last + (uintptr_t)one.second.entry;
        }
        uint64_t sum(bool up)
        {
                return up ? std::accumulate(map.begin(), map.end(), (uint64_t)0, add)
                          : std::accumulate(map.rbegin(), map.rend(), (uint64_t)0, add);
        }
        uint64_t room(uint64_t, uint64_t, bool) { return 0; }
        void settle() { malloc_trim(0); }
        struct sizes sizes() { return {0, 0, 0}; }
};

template <typename Map>
static void beside(Map &map, std::vector<range> &ranges, uint64_t keys, bench::answer &answer)
{
        std::atomic<bool> stop{false};
        uint64_t writes = 0, reads = 0, found = 0;
        std::thread writer([&] {
                bench::rng r(3);
                while (!stop.load(std::memory_order_relaxed)) {
                        range &one = ranges[r.below((uint32_t)ranges.size())];
                        map.enter_writer();
                        map.erase(one);
                        map.leave_writer();
                        map.enter_writer();
                        map.store(one);
                        map.leave_writer();
                        writes += 2;
                }
        });
        bench::rng r(4);
        uint64_t start = bench::now_ns(), ns;
        do {
                for (int i = 0; i < 256; i++) {
                        map.enter_reader();
                        found += map.lookup(r.next() % keys) != nullptr;
                        map.leave_reader();
                }
                reads += 256;
                ns = bench::now_ns() - start;
        } while (ns < 500000000u);
        stop = true;
        writer.join();
        bench::keep(found);
        answer.add("beside_per_us", (double)reads * 1e3 / (double)ns)
                .add("beside_writes_per_us", (double)writes * 1e3 / (double)ns);
}

struct options {
        size_t n, lookups;
        bool gaps, in_order, beside, room;
};

static std::vector<range> make_ranges(const options &o, bench::rng &r, uint64_t *keys)
{
        std::vector<range> ranges(o.n);
        uint64_t key = 1;

        for (auto &one : ranges) {
                one.first = key += 1 + (o.gaps ? r.below(16) : 0);
                one.last = key += r.below(16);
        }
        *keys = key + 16;
        for (size_t i = o.in_order ? 0 : o.n; i > 1; i--)
                std::swap(ranges[i - 1], ranges[r.below((uint32_t)i)]);
        for (auto &one : ranges)
                one.entry = &one;
        return ranges;
}

template <typename Map> static bool look_up(Map &map, size_t lookups, uint64_t keys, bench::rng &r)
{
        size_t found = 0;

        for (size_t i = 0; i < lookups; i++) {
                uint64_t wanted = r.next() % keys;
                range *one = static_cast<range *>(map.lookup(wanted));
                if (one) {
                        if (wanted < one->first || wanted > one->last)
                                return false;
                        found++;
                }
        }
        return found >= lookups / 4;
}

/* The first walk warms up; all of them give the same sum. */
template <typename Map> static bool walk(Map &map, size_t n, bool up, bench::answer &answer)
{
        map.enter_reader();
        uint64_t wanted = map.sum(!up), found = map.sum(up);
        size_t rounds = n < 1000000 ? 1000000 / n : 1;
        double start = bench::thread_ns();

        for (size_t i = 0; i < rounds; i++)
                found |= map.sum(up) ^ wanted;
        answer.add(up ? "up_ns" : "down_ns", (bench::thread_ns() - start) /
                   (double)(rounds * n));
        map.leave_reader();
        return found == wanted;
}

template <typename Map>
static void look_for_room(Map &map, uint64_t keys, bench::rng &r, bench::answer &answer)
{
        for (bool up : {true, false}) {
                const size_t searches = 500000;
                double start = bench::thread_ns();
                uint64_t sum = 0;

                for (size_t i = 0; i < searches; i++)
                        sum += map.room(r.next() % keys, 1 + r.below(15), up);
                bench::keep(sum);
                answer.add(up ? "room_ns" : "room_rev_ns",
                           (bench::thread_ns() - start) / (double)searches);
        }
}

template <typename Map> static int measure(const options &o)
{
        bench::rng r(1);
        uint64_t keys;
        std::vector<range> ranges = make_ranges(o, r, &keys);
        bench::answer answer;
        double n = (double)o.n;
        long before = bench::resident_kib();
        static Map map;
        double start = bench::thread_ns();

        for (auto &one : ranges)
                map.store(one);
        answer.add("store_ns", (bench::thread_ns() - start) / n);
        map.settle();
        long after = bench::resident_kib();
        struct sizes sizes = map.sizes();
        answer.add("bytes", (double)(after - before) * 1024 / n).add("node_bytes", sizes.nodes / n);
        answer.add("cached_bytes", sizes.cached / n).add("slack_bytes", sizes.slack / n);

        start = bench::thread_ns();
        for (size_t i = 0; i < o.n / 3; i++) {
                range &one = ranges[r.below((uint32_t)o.n)];
                map.erase(one);
                map.store(one);
        }
        answer.add("replace_ns", (bench::thread_ns() - start) / (double)(o.n / 3 * 2));
        map.settle();
        start = bench::thread_ns();
        if (!look_up(map, o.lookups, keys, r))
                return 1;
        answer.add("lookup_ns", (bench::thread_ns() - start) / (double)o.lookups);
        if (!walk(map, o.n, true, answer) || !walk(map, o.n, false, answer))
                return 1;
        if (o.room)
                look_for_room(map, keys, r, answer);
        if (o.beside)
                beside(map, ranges, keys, answer);
        return 0;
}

int main(int argc, char **argv)
{
        const char *map = bench::text_option(argc, argv, "map", "maple");
        options o = {};

        o.n = (size_t)bench::option(argc, argv, "n", 100000);
        o.lookups = (size_t)bench::option(argc, argv, "lookups", o.n < 1000000 ? 2000000 : 4000000);
        o.gaps = bench::option(argc, argv, "gaps", 0);
        o.in_order = bench::option(argc, argv, "order", 0);
        o.beside = bench::option(argc, argv, "beside", 1);
        if (!strcmp(map, "maple"))
                return measure<maple<STOOK_MAPLE_RCU>>(o);
        if (!strcmp(map, "maple-external"))
                return measure<maple<STOOK_MAPLE_EXTERNAL_LOCK>>(o);
        o.room = o.gaps;
        if (!strcmp(map, "maple-gaps"))
                return measure<maple<STOOK_MAPLE_EXTERNAL_LOCK | STOOK_MAPLE_GAPS>>(o);
        o.room = false;
        if (!strcmp(map, "std"))
                return measure<ordered<std::map<uint64_t, value>>>(o);
        if (!strcmp(map, "btree"))
                return measure<ordered<absl::btree_map<uint64_t, value>>>(o);
        fprintf(stderr, "no map %s\n", map);
        return 2;
}
