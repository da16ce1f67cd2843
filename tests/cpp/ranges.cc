/*
 * Proves that stook::range_map and its cursors find, walk, store and refuse as the tree does, that
 * its guards keep writers out or, under RCU, entries alive, and that it can be used by threads at
 * once. What would dangle does not compile.
 */
#include "check.hpp"
#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

namespace
{

struct entry {
        int number;
};

using map = stook::range_map<entry>;

/* A temporary guard has no between(): the loop over it would begin after the guard's end. */
template <class Guard, class = void> constexpr bool has_between = false;
template <class Guard>
constexpr bool
        has_between<Guard, std::void_t<decltype(std::declval<Guard>().between(0, 1))>> = true;
using read_guard = decltype(std::declval<const map &>().read());
using write_guard = decltype(std::declval<map &>().write());
static_assert(has_between<read_guard &> && has_between<const write_guard &>);
static_assert(!has_between<read_guard> && !has_between<write_guard>);

/* Nor has it a cursor(). */
template <class Guard, class = void> constexpr bool has_cursor = false;
template <class Guard>
constexpr bool has_cursor<Guard, std::void_t<decltype(std::declval<Guard>().cursor(0))>> = true;
static_assert(has_cursor<read_guard &> && has_cursor<const write_guard &>);
static_assert(!has_cursor<read_guard> && !has_cursor<write_guard>);

/* An implementation of RCU: readers share a lock, and a grace period takes it alone. */
std::shared_mutex readers;
std::mutex waiting_lock;
std::vector<std::pair<stook_rcu_head *, void (*)(stook_rcu_head *)>> waiting;
std::atomic<unsigned> sections;

void rcu_call(stook_rcu_head *head, void (*done)(stook_rcu_head *))
{
        std::lock_guard<std::mutex> guard(waiting_lock);

        waiting.emplace_back(head, done);
}

void rcu_barrier()
{
        decltype(waiting) ready;

        {
                std::lock_guard<std::mutex> guard(waiting_lock);
                ready.swap(waiting);
        }
        std::unique_lock<std::shared_mutex> alone(readers);
        alone.unlock();
        for (auto [head, done] : ready)
                done(head);
}

void rcu_read_lock()
{
        readers.lock_shared();
        sections++;
}

void rcu_read_unlock()
{
        readers.unlock_shared();
}

const stook_rcu rcu = {
        sizeof(stook_rcu), rcu_call, rcu_barrier, rcu_read_lock, rcu_read_unlock, nullptr, nullptr,
};

void simple_calls()
{
        entry a{ 1 }, b{ 2 };
        map m(STOOK_MAPLE_GAPS);
        std::error_code error;

        CHECK(m.empty() && !m.load(5));
        m.store(10, 19, &a);
        CHECK(m.load(10) == &a && m.load(19) == &a && !m.load(20) && !m.empty());
        CHECK(!m.insert(15, 25, &b) && m.insert(20, 25, &b) && m.load(25) == &b);
        m.store(9, 3, &b, error);
        CHECK(error == std::errc::invalid_argument);
        CHECK(!m.insert(9, 3, &b, error) && error == std::errc::invalid_argument);
        CHECK(m.alloc(&a, 5, 10, 100) == 26u);
        CHECK(!m.alloc(&a, 90, 10, 100));
        CHECK(m.erase(27) == &a && !m.erase(27) && !m.load(26));
        m.store(12, 14, nullptr);
        CHECK(!m.load(13) && m.load(11) == &a && m.load(15) == &a);
        m.clear();
        CHECK(m.empty());
}

void ranges_are_told()
{
        entry a{ 1 };
        map m(STOOK_MAPLE_GAPS);
        std::error_code error;

        m.store(10, 19, &a);
        auto at = m.load_range(12);
        CHECK(at.first == 10 && at.last == 19 && at.entry == &a);
        at = m.load_range(20);
        CHECK(at.first == 20 && at.last == UINT64_MAX && !at.entry);
        CHECK(m.overlaps(5, 10) && !m.overlaps(0, 9) && !m.overlaps(19, 10));
        CHECK(m.find_gap(5) == 0u && m.find_gap(5, 7, 30) == 20u && !m.find_gap(5, 7, 22));
        CHECK(m.find_gap_top(5, 0, 30) == 26u && !m.find_gap_top(11, 0, 19));
        CHECK(!m.find_gap(0, 0, 9, error) && error == std::errc::invalid_argument);
        CHECK(!map().find_gap_top(1, 0, 9, error) && error == std::errc::invalid_argument);
        CHECK(m.alloc_top(&a, 5, 0, 30) == 26u && !m.alloc_top(&a, 30, 0, 30));
}

void keys_go_round()
{
        entry a{ 1 };
        map m(STOOK_MAPLE_GAPS);
        std::uint64_t next = 3;

        auto at = m.alloc_cyclic(&a, next, 1, 3);
        CHECK(at && at->key == 3 && !at->wrapped && next == 4);
        at = m.alloc_cyclic(&a, next, 1, 3);
        CHECK(at && at->key == 1 && at->wrapped && next == 2);
        at = m.alloc_cyclic(&a, next, 1, 3);
        CHECK(at && at->key == 2 && !at->wrapped);
        CHECK(!m.alloc_cyclic(&a, next, 1, 3));
}

void held_ranges_are_not_found()
{
        entry a{ 1 }, b{ 2 };
        map m;

        CHECK(m.hold(10, 19) && !m.hold(19, 20) && !m.insert(5, 10, &a));
        CHECK(!m.load(15) && m.overlaps(15, 15) && !m.empty());
        for (const auto &r : m.read())
                CHECK(!r.entry);
        CHECK(!m.exchange(10, 19, &a) && m.load(15) == &a);
        CHECK(m.exchange(10, 12, &b) == &a && m.load(12) == &b && m.load(13) == &a);
        CHECK(m.hold(30, 39) && !m.erase(35) && !m.overlaps(30, 39));
}

void sorted_ranges_are_loaded()
{
        std::vector<entry> entries(1000);
        std::vector<stook::range<entry>> ranges;
        std::error_code error;
        map m;
        std::uint64_t met = 0;

        for (std::uint64_t i = 0; i < 1000; i++)
                ranges.push_back({ i * 10, i * 10 + i % 10, &entries[i] });
        m.load_sorted(ranges.begin(), ranges.end());
        for (auto [first, last, e] : m.read()) {
                CHECK(first == met * 10 && last == first + met % 10 && e == &entries[met]);
                met++;
        }
        CHECK(met == 1000 && !stook_maple_validate(m.handle()));
        m.load_sorted(ranges.begin(), ranges.end(), error);
        CHECK(error == std::errc::invalid_argument);
        std::swap(ranges[500], ranges[501]);
        m.clear();
        m.load_sorted(ranges.begin(), ranges.end(), error);
        CHECK(error == std::errc::invalid_argument && m.load(5010) && !m.load(5000));
}

void errors_are_told()
{
        entry a{ 1 };
        bool refused = false;

        try {
                map wrong(1u << 30);
        } catch (const std::system_error &error) {
                refused = error.code() == std::errc::invalid_argument;
        }
        CHECK(refused);
        refused = false;
        try {
                map().store(9, 3, &a);
        } catch (const std::system_error &) {
                refused = true;
        }
        CHECK(refused);
}

void walks()
{
        entry entries[50];
        map m;
        std::uint64_t met = 0;
        long sum = 0;

        for (const auto &r : m.read())
                CHECK(!r.entry);
        for (int i = 0; i < 50; i++) {
                auto first = static_cast<std::uint64_t>(i) * 100;

                entries[i].number = i;
                m.store(first, first + 9, &entries[i]);
        }
        for (auto [first, last, e] : m.read()) {
                CHECK(first == met * 100 && last == first + 9);
                CHECK(e == &entries[met++]);
        }
        CHECK(met == 50);
        {
                auto reading = m.read();

                for (const auto &r : reading.between(1005, 1250))
                        sum += r.entry->number;
                CHECK(sum == 10 + 11 + 12 && reading.load(1103) == &entries[11]);
        }
        {
                auto writing = m.write();

                for (auto [first, last, e] : writing)
                        if (e->number % 2)
                                CHECK(m.erase(first) == e);
                        else
                                m.store(last, last, nullptr);
                met = 0;
                for (const auto &r : writing) {
                        CHECK(r.entry->number % 2 == 0 && r.last - r.first == 8);
                        met++;
                }
        }
        CHECK(met == 25);
}

void constants_are_entries_too()
{
        static const int number = 5;
        stook::range_map<const int> m;

        m.store(0, UINT64_MAX, &number);
        CHECK(*m.load(7) == 5);
        int met = 0;
        for (const auto &r : m.read())
                met += r.last == UINT64_MAX;
        CHECK(met == 1);
}

void prepared_stores_are_all_or_nothing()
{
        entry a{ 1 };
        map m;
        std::error_code error;

        {
                auto writing = m.write();
                map::prepared_store store(writing, 5, 500, &a);
        }
        CHECK(m.empty());
        {
                auto writing = m.write();
                map::prepared_store store(writing, 5, 500, &a);

                store.commit();
                map::prepared_store wrong(writing, 5, 4, &a, error);
                CHECK(error == std::errc::invalid_argument);
        }
        CHECK(m.load(500) == &a && !m.load(501));
}

/* Each thread has its own keys; all see the whole map. */
void threads_share_a_map()
{
        static entry entries[4][100];
        map m;
        std::vector<std::thread> threads;

        for (unsigned t = 0; t < 4; t++)
                threads.emplace_back([&m, t] {
                        for (unsigned i = 0; i < 100; i++) {
                                m.store(i * 4 + t, i * 4 + t, &entries[t][i]);
                                if (i % 10)
                                        continue;
                                std::uint64_t before = 0;
                                for (const auto &r : m.read()) {
                                        CHECK(r.first >= before);
                                        before = r.last + 1;
                                }
                        }
                });
        for (auto &thread : threads)
                thread.join();
        for (unsigned key = 0; key < 400; key++)
                CHECK(m.load(key) == &entries[key % 4][key / 4]);
}

/* The entries change places all the time; a reader always finds one of the two. */
void readers_under_rcu()
{
        static entry a{ 1 }, b{ 2 };
        map m(0, rcu);
        std::atomic<bool> end{ false };

        for (unsigned key = 0; key < 100; key++)
                m.store(key * 10, key * 10 + 9, &a);
        std::thread reader([&] {
                unsigned key = 0;

                do {
                        auto reading = m.read();
                        entry *found = reading.load(key);

                        CHECK(found == &a || found == &b);
                        key = (key + 7) % 1000;
                        unsigned met = 0;
                        for (const auto &r : reading.between(0, 99)) {
                                CHECK(r.entry == &a || r.entry == &b);
                                met++;
                        }
                        CHECK(met >= 10);
                } while (!end);
        });
        for (unsigned round = 0; round < 20; round++)
                for (unsigned key = 0; key < 1000; key += 9)
                        m.store(key, key + 3, round % 2 ? &a : &b);
        end = true;
        reader.join();
        CHECK(sections > 0);
        m.clear();
        stook_rcu_barrier();
}

void cursors_go_both_ways()
{
        entry a{ 1 }, b{ 2 }, c{ 3 };
        map m(STOOK_MAPLE_GAPS);

        m.store(10, 19, &a);
        m.store(30, 39, &b);
        m.store(50, 59, &c);
        m.hold(70, 79);
        {
                auto reading = m.read();
                auto cursor = reading.cursor(35);

                auto gap = reading.cursor(45).walk();
                CHECK(gap.first == 40 && gap.last == 49 && !gap.entry);
                CHECK(!reading.cursor(75).walk().entry && reading.cursor(75).walk().last == 79);
                CHECK(cursor.find()->entry == &b && cursor.next()->entry == &c);
                CHECK(!cursor.next() && !cursor.find());
                cursor.move(35);
                CHECK(cursor.prev()->first == 10 && !cursor.prev());
                cursor.move(49);
                CHECK(cursor.find_down()->entry == &b && cursor.find_down(20) == std::nullopt);
        }
        auto writing = m.write();
        auto editor = writing.cursor();
        unsigned met = 0;

        while (auto found = editor.find()) {
                met++;
                if (found->entry == &a)
                        editor.replace(&b);
                else
                        CHECK(editor.erase() == found->entry);
        }
        CHECK(met == 3 && m.load(15) == &b && !m.load(35) && !m.load(55));
        CHECK(editor.find_gap(5, 12, 100) == 20 && editor.find_gap_top(5, 0, 79) == 65);
        editor.replace(&c);
        CHECK(m.load_range(65).last == 69 && m.load(69) == &c);
        CHECK(!editor.find_gap(1000, 0, 100));

        std::error_code error;
        errno = ENOTTY;
        editor.move(90);
        CHECK(!editor.erase(error) && !error && errno == ENOTTY);
        editor.store(9, 8, &a, error);
        CHECK(error == std::errc::invalid_argument);
}

/* As a process without STOOK_PROFILE is. */
void a_profile_needs_to_be_asked_for()
{
        std::error_code error;

        stook::write_profile("profile", error);
        CHECK(error == std::errc::not_supported);
        stook::mark_profile(error);
        CHECK(error == std::errc::not_supported);
}

} // namespace

int main()
{
        simple_calls();
        ranges_are_told();
        keys_go_round();
        held_ranges_are_not_found();
        sorted_ranges_are_loaded();
        errors_are_told();
        walks();
        constants_are_entries_too();
        prepared_stores_are_all_or_nothing();
        threads_share_a_map();
        readers_under_rcu();
        cursors_go_both_ways();
        a_profile_needs_to_be_asked_for();
        return 0;
}
