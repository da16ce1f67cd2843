/*
 * Proves that a stay in a group charges what it should, ends with its scope, by an exception, too,
 * and that a limit is told as the standard library tells it; and that a session of samples ends
 * with its object.
 */
#include "check.hpp"
#include <stdexcept>
#include <string>
#include <vector>

namespace
{

stook_cache_args accounted()
{
        stook_cache_args args{};

        args.flags = STOOK_CACHE_ACCOUNT;
        return args;
}

void stays_are_nested()
{
        stook::group outer("outer"), inner("inner", outer);
        std::vector<char, stook::allocator<char>> one, two, three;

        {
                stook::group_scope in_outer(outer);

                one.resize(1000);
                CHECK(outer.usage() >= 1000 && inner.usage() == 0);
                try {
                        stook::group_scope in_inner(inner);

                        two.resize(3000);
                        throw std::runtime_error("on the way");
                } catch (const std::runtime_error &) {
                }
                CHECK(inner.usage() >= 3000 && outer.usage() >= 4000);
                std::uint64_t before = outer.usage();
                {
                        stook::group_scope outside(nullptr);

                        three.resize(5000);
                }
                CHECK(outer.usage() == before);
        }
        CHECK(stook_group_enter(nullptr) == nullptr);
        one = two = three = {};
        one.shrink_to_fit();
        two.shrink_to_fit();
        three.shrink_to_fit();
}

void limits_are_told()
{
        stook::cache objects("accounted", 1000, accounted());
        stook::group tight("tight", 16 << 10);
        std::vector<void *> all;
        unsigned asked = 0;

        tight.on_limit([](stook_group *, std::size_t, void *data) {
                ++*static_cast<unsigned *>(data);
        }, &asked);
        while (void *object = tight.try_alloc(objects))
                all.push_back(object);
        CHECK(errno == ENOMEM && all.size() >= 8 && all.size() <= 16 && asked > 0);
        CHECK(tight.stats().refusals > 0 && tight.usage() <= 16 << 10);
        CHECK(!tight.set_limit(64 << 10));
        all.push_back(tight.try_alloc(objects));
        CHECK(all.back());
        for (void *object : all)
                objects.free(object);

        bool refused = false;

        CHECK(!tight.set_limit(1));
        try {
                stook::group_scope inside(tight);

                (void)objects.alloc();
        } catch (const std::bad_alloc &) {
                refused = true;
        }
        CHECK(refused && tight.usage() == 0);
}

void owners_move()
{
        std::error_code error;
        stook::group none("", nullptr, 0, error);

        CHECK(!none && error == std::errc::invalid_argument);
        none = stook::group("some");

        stook::group moved(std::move(none));

        CHECK(moved && !none && moved.stats().name == std::string("some"));
}

void samples_end_with_their_session()
{
        stook_sampling_args args{};
        std::error_code error;

        {
                args.interval = 1;
                args.most = 1000000;
                stook::sampling samples(args);
                std::vector<char, stook::allocator<char>> bytes(100);

                CHECK(stook::sampling::stats().interval == 1 && stook::sampling::stats().kept > 0);
        }
        CHECK(stook::sampling::stats().interval == 0);
        args.most = 1000001;
        stook::sampling none(args, error);
        CHECK(error == std::errc::invalid_argument && stook::sampling::stats().interval == 0);
}

} // namespace

int main()
{
        samples_end_with_their_session();
        stays_are_nested();
        limits_are_told();
        owners_move();
        return 0;
}
