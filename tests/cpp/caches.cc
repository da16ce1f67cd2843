/*
 * Proves that caches, sheaves and objects of one type end when their owners do: after moves, after
 * constructors that throw, and when there is no memory. A cache in use is kept.
 */
#include "check.hpp"
#include <array>
#include <cstring>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace
{

/* Counts those that live, and throws when told to. */
struct counted {
        static int alive;
        static bool refuses;
        int number;
        std::string text;

        explicit counted(int n = 0) : number(n), text(100, 'x')
        {
                if (refuses)
                        throw std::runtime_error("refused");
                alive++;
        }

        counted(const counted &) = delete;
        counted &operator=(const counted &) = delete;

        ~counted()
        {
                alive--;
        }
};

int counted::alive;
bool counted::refuses;

struct alignas(256) wide {
        char bytes[300];
};

struct plain {
        int a, b;
};

std::uint64_t live(const stook::cache &of)
{
        return of.stats().objects_live;
}

template <class Error, class Call> bool throws(Call call)
{
        try {
                call();
        } catch (const Error &) {
                return true;
        }
        return false;
}

void owners_move()
{
        stook::cache empty, first("first", 40);
        stook_cache *handle = first.handle();

        CHECK(!empty && first && handle == stook_cache_find("first"));
        empty = std::move(first);
        CHECK(!first && empty.handle() == handle && empty.object_size() == 40);

        stook::cache second(std::move(empty));
        void *object = second.alloc();

        CHECK(object && stook_object_cache(object) == handle && live(second) == 1);
        second.free(object);
        second.free(nullptr);
        second = stook::cache("other", 64);
        CHECK(!stook_cache_find("first") && stook_cache_find("other"));
        second = stook::cache();
        CHECK(!stook_cache_find("other"));

        stook::cache taken(stook_cache_create("taken", 16, nullptr));
        stook_cache *given = taken.release();

        CHECK(!taken && !stook_cache_destroy(given));
}

void errors_are_told()
{
        std::error_code error;
        stook::cache none("", 40, {}, error);

        CHECK(!none && error == std::errc::invalid_argument);
        none = stook::cache("huge", stook::object_max + 1, {}, error);
        CHECK(!none && error == std::errc::result_out_of_range);
        bool said = false;
        try {
                stook::cache large("x", static_cast<std::size_t>(-1));
        } catch (const std::system_error &e) {
                said = std::strstr(e.what(), "an object has at most 128 KiB") != nullptr;
        }
        CHECK(said);
        CHECK(throws<std::system_error>([] { stook::cache("", 40); }));
        none = stook::cache("good", 40, {}, error);
        CHECK(none && !error);
        CHECK(throws<std::system_error>([] { (void)stook::cache().stats(); }));
        static_assert(stook::object_max == STOOK_OBJECT_MAX, "the same in both languages");

        /* Most objects of the first slabs go: those that are left there should move. */
        {
                stook_cache_args slow = {};
                slow.flags = STOOK_CACHE_NO_SHEAVES;
                stook::cache occupied("occupied", 100, slow);
                std::vector<void *> all(4000);
                for (void *&object : all)
                        object = occupied.alloc();
                CHECK(stook::occupancy(all[0]) && !stook::worth_moving(all[0]));
                for (std::size_t i = 1; i < all.size() / 2; i++)
                        occupied.free(all[i]);
                auto found = stook::occupancy(all[0]);
                CHECK(found && found->slab_out < found->slab_objects && found->cache_slabs > 1);
                CHECK(stook::worth_moving(all[0]) && !stook::worth_moving(all[2500]));
                CHECK(!stook::occupancy(nullptr) && !stook::worth_moving(&found));
                CHECK(!occupied.destroy_all());
        }

        stook::cache failing("failing", 40, may_fail());
        void *objects[4];

        {
                no_memory from_here;

                CHECK(throws<std::bad_alloc>([&] { (void)failing.alloc(); }));
                CHECK(throws<std::bad_alloc>([&] { (void)failing.alloc(STOOK_ALLOC_ZERO); }));
                errno = 0;
                CHECK(!failing.try_alloc() && errno == ENOMEM);
                CHECK(failing.alloc_bulk(4, objects) == std::errc::not_enough_memory);
                CHECK(throws<std::bad_alloc>([&] { stook::sheaf(failing, 4); }));
        }
        CHECK(!failing.alloc_bulk(4, objects) && live(failing) == 4);
        failing.free_bulk(4, objects);
        CHECK(live(failing) == 0);
}

void in_use_is_kept()
{
        stook::cache used("used", 48);
        void *object = used.alloc();

        CHECK(used.destroy() == std::errc::device_or_resource_busy && used);
        used.free(object);
        CHECK(!used.destroy() && !used);
        CHECK(!used.destroy());
}

void settings_are_passed()
{
        stook_cache_args args{};
        stook_tuning tuning{};

        args.align = 128;
        args.sheaf_capacity = 200;
        stook::cache set("set", 100, args);

        CHECK(set.stats().sheaf_capacity >= 200 && set.stats().stride % 128 == 0);
        tuning.sheaf_capacity = 30;
        CHECK(!set.tune(tuning) && set.stats().sheaf_capacity == 30);
        CHECK(!set.reserve(100) && set.shrink() >= 1 && !set.reserve(0) && set.shrink() == 0);
}

void sheaves_hold_what_they_promise()
{
        stook::cache from("from", 64, may_fail());
        stook::sheaf sheaf(from, 20);
        std::set<void *> objects;

        CHECK(sheaf && sheaf.available() >= 20);
        {
                no_memory from_here;
                stook::sheaf moved(std::move(sheaf));

                CHECK(!sheaf && sheaf.available() == 0);
                while (moved.available())
                        CHECK(objects.insert(moved.alloc()).second);
                CHECK(!moved.alloc() && objects.size() >= 20);
                sheaf = std::move(moved);
        }
        CHECK(!sheaf.refill(5, STOOK_ALLOC_ZERO) && sheaf.available() >= 5);
        for (void *object : objects)
                from.free(object);
        sheaf.reset();
        CHECK(!sheaf && live(from) == 0);
}

void objects_are_constructed_and_destroyed()
{
        stook::object_cache<counted> things("counted", may_fail());
        counted *one = things.construct(1);

        CHECK(one->number == 1 && counted::alive == 1 && live(things.raw()) == 1);
        {
                auto two = things.make_unique(2);
                stook::unique_object<counted> empty;

                empty = std::move(two);
                CHECK(empty->number == 2 && counted::alive == 2);
                std::shared_ptr<counted> shared = things.make_unique(3);
                CHECK(counted::alive == 3 && live(things.raw()) == 3);
        }
        things.destroy(one);
        things.destroy(nullptr);
        CHECK(counted::alive == 0 && live(things.raw()) == 0);

        no_memory from_here;
        CHECK(throws<std::bad_alloc>([&] { (void)things.construct(4); }));
        CHECK(!things.try_construct(4) && !things.try_make_unique(4) && counted::alive == 0);
}

void throwing_constructors_lose_nothing()
{
        stook::object_cache<counted> things("throwing");
        stook::object_sheaf<counted> ready(things, 3);
        std::size_t before = ready.available();

        counted::refuses = true;
        CHECK(throws<std::runtime_error>([&] { (void)things.construct(1); }));
        CHECK(throws<std::runtime_error>([&] { (void)things.try_construct(1); }));
        CHECK(throws<std::runtime_error>([&] { (void)things.make_unique(1); }));
        CHECK(throws<std::runtime_error>([&] { (void)ready.construct(1); }));
        counted::refuses = false;
        CHECK(counted::alive == 0 && live(things.raw()) == 0 && ready.available() == before - 1);
        counted *last = ready.construct(7);
        CHECK(last->number == 7 && counted::alive == 1);
        things.destroy(last);
        ready.reset();
        CHECK(!things.raw().destroy());
}

void all_objects_are_met_and_ended()
{
        stook::object_cache<counted> things("things");
        stook::cache raw("raw", 32);
        unsigned met = 0;

        for (int i = 0; i < 10; i++)
                (void)things.construct(i);
        auto count = [&met](void *) { return ++met < 4; };
        CHECK(!things.raw().for_each_object(count) && met == 4);
        met = 0;
        CHECK(!things.raw().for_each_object([&](void *) { return ++met > 0; }) && met == 10);
        CHECK(counted::alive == 10 && !things.destroy_all() && counted::alive == 0 && !things);
        (void)raw.alloc();
        CHECK(!raw.destroy_all() && !raw);
}

void limits_are_kept()
{
        stook_cache_args args{};
        args.limit_objects = 2;
        stook::cache few("few", 64, args), any("any", 64);
        void *one = few.alloc(), *two = few.alloc();

        CHECK(!few.try_alloc() && !few.set_limit(3));
        void *three = few.try_alloc();
        CHECK(three && !few.try_alloc());
        CHECK(!few.set_limit(0));
        CHECK(any.set_limit(5) == std::errc::operation_not_supported ||
              any.set_limit(5) == std::errc::not_supported);
        few.free(one);
        few.free(two);
        few.free(three);
        CHECK(!few.destroy());
}

struct kept {
        static inline int made, ended;
        int uses = 0;
        kept() noexcept { made++; }
        ~kept() { ended++; }
};

void pools_use_objects_again()
{
        stook_cache_args args{};
        args.flags = STOOK_CACHE_NO_SHEAVES;    /* the CPU of the thread makes no difference */
        stook::object_pool<kept> pool("kept", args);
        std::array<stook::pooled<kept>, 500> many;
        int used = 0;

        for (auto &one : many)
                one = pool.get();
        CHECK(kept::made >= 500 && live(pool.raw()) == 500);
        for (auto &one : many)
                one->uses++;
        for (auto &one : many)
                one.reset();
        for (auto &one : many)
                used += (one = pool.try_get())->uses;
        CHECK(used > 0);                        /* one slab stays at least */
        for (auto &one : many)
                one.reset();
        CHECK(!pool.raw().destroy() && !pool && kept::ended == kept::made);
}

struct watch {
        stook::cache *of = nullptr;
        std::array<void *, 10> spare{};
        std::size_t kept = 0, left = 0, asked = 0;

        void low(std::size_t now) noexcept
        {
                left = now;
        }

        std::size_t reclaim(std::size_t wanted) noexcept
        {
                std::size_t freed = 0;

                for (asked++; freed < wanted && kept; freed++)
                        of->free(spare[--kept]);
                return freed;
        }
};

struct only_low {
        void low(std::size_t) noexcept {}
};

void watches_are_called()
{
        stook_cache_args args{};
        args.limit_objects = 5;
        args.low_objects = 2;
        watch seen;
        only_low other;
        stook::cache few("few", 64, stook::watched(seen, args));

        seen.of = &few;
        for (int i = 0; i < 3; i++)
                seen.spare[seen.kept++] = few.alloc();
        CHECK(seen.left == 2 && seen.asked == 0);
        for (int i = 0; i < 20; i++) {
                void *object = few.alloc();
                seen.spare[seen.kept++] = object;
        }
        CHECK(seen.kept == 5 && seen.asked == 18);
        CHECK(!stook::watched(other).reclaim && stook::watched(other).on_low);
        while (seen.kept)
                few.free(seen.spare[--seen.kept]);
        CHECK(!few.destroy());
}

void types_are_aligned()
{
        stook::object_cache<wide> wides("wide");
        stook::object_cache<plain> plains("plain");
        stook::object_sheaf<plain> ready(plains, 2);
        std::array<stook::unique_object<wide>, 20> many;

        for (auto &w : many) {
                w = wides.make_unique();
                CHECK(reinterpret_cast<std::uintptr_t>(w.get()) % alignof(wide) == 0);
        }
        static_assert(noexcept(ready.construct()), "a plain type cannot throw");
        static_assert(!noexcept(std::declval<stook::object_sheaf<counted> &>().construct()),
                      "this one can");
        plains.destroy(ready.construct());
        CHECK(live(plains.raw()) == 0);
}

} // namespace

int main()
{
        owners_move();
        errors_are_told();
        in_use_is_kept();
        settings_are_passed();
        sheaves_hold_what_they_promise();
        objects_are_constructed_and_destroyed();
        throwing_constructors_lose_nothing();
        all_objects_are_met_and_ended();
        limits_are_kept();
        pools_use_objects_again();
        watches_are_called();
        types_are_aligned();
        return 0;
}
