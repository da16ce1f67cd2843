/*
 * Proves that read sections of the library's own RCU keep what they found, that objects are freed
 * after them, one by one and many at once, and that a map has readers from start_readers() on.
 */
#include "check.hpp"
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

namespace
{

struct pair {
        unsigned one, two;
};

unsigned live(const stook::cache &of)
{
        return static_cast<unsigned>(of.stats().objects_live);
}

/* A writer replaces the pair all the time; a reader finds whole ones. */
void sections_keep_what_they_found()
{
        stook::object_cache<pair> pairs("pair");
        std::atomic<pair *> now{ pairs.construct(pair{ 0, 0 }) };
        std::atomic<bool> end{ false };

        std::thread reader([&] {
                do {
                        stook::read_section reading;
                        stook::read_section nested;
                        pair *found = now.load(std::memory_order_acquire);

                        CHECK(found->one == found->two);
                } while (!end);
        });
        for (unsigned i = 1; i <= 2000; i++) {
                pair *next = pairs.construct(pair{ i, i });
                pair *old = now.exchange(next, std::memory_order_acq_rel);

                while (pairs.free_rcu(old))
                        stook::epoch_synchronize();
        }
        end = true;
        reader.join();
        pairs.raw().rcu_barrier();
        CHECK(live(pairs.raw()) == 1);
        pairs.destroy(now);
        CHECK(!pairs.raw().destroy());
}

void many_are_freed_at_once()
{
        stook::cache objects("bulk", 64);
        std::vector<void *> many(500);
        std::error_code error;

        CHECK(!objects.alloc_bulk(many.size(), many.data()));
        void *kept = std::exchange(many[7], nullptr);
        CHECK(!objects.free_rcu_bulk(many.size(), many.data()));
        CHECK(!objects.free_rcu_bulk(0, nullptr));
        CHECK(objects.free_rcu_bulk(1, nullptr) == std::errc::invalid_argument);
        objects.rcu_barrier();
        stook::epoch_synchronize(error);
        CHECK(!error && live(objects) == 1);
        objects.free(kept);
        CHECK(!objects.destroy());
}

void readers_start_and_stop()
{
        static pair a{ 1, 1 }, b{ 2, 2 };
        stook::range_map<pair> m;
        std::atomic<bool> end{ false };

        for (unsigned key = 0; key < 200; key++)
                m.store(key, key, &a);
        m.start_readers(stook_rcu_epoch);
        std::thread reader([&] {
                do {
                        auto reading = m.read();
                        unsigned met = 0;

                        for (auto [first, last, entry] : reading.between(50, 149)) {
                                CHECK(entry->one == entry->two && first == last);
                                met++;
                        }
                        CHECK(met == 100 && reading.load(199));
                } while (!end);
        });
        for (unsigned round = 0; round < 20; round++)
                for (unsigned key = 0; key < 200; key++)
                        m.store(key, key, round % 2 ? &a : &b);
        end = true;
        reader.join();
        m.stop_readers();
        m.store(0, UINT64_MAX, &b);
        CHECK(m.read().load(77) == &b);
}

} // namespace

int main()
{
        CHECK(!stook_rcu_use(&stook_rcu_epoch));
        sections_keep_what_they_found();
        many_are_freed_at_once();
        readers_start_and_stop();
        return 0;
}
