/*
 * Proves of stook::heap, its allocator and its memory resource that containers on them take all
 * their memory from the heap, that limits are told as the standard says, and that a heap ends with
 * all that is alive.
 */
#include "check.hpp"
#include <list>
#include <map>
#include <string>
#include <vector>

namespace
{

struct alignas(128) wide {
        int number;
};

void containers_are_in_their_heap()
{
        stook::heap one("one"), other("other");

        {
                stook::heap_allocator<int> in_one(one), in_other(other);
                std::vector<int, stook::heap_allocator<int>> numbers(in_one), more(in_other);
                std::list<wide, stook::heap_allocator<wide>> list{
                        stook::heap_allocator<wide>(one)};

                for (int i = 0; i < 5000; i++)
                        numbers.push_back(i);
                list.push_back({ 7 });
                CHECK(one.owns(numbers.data()) && stook_heap_of(&list.front()));
                CHECK(reinterpret_cast<std::uintptr_t>(&list.front()) % 128 == 0);
                CHECK(in_one != in_other && in_one == stook::heap_allocator<wide>(one));
                more = std::move(numbers);
                CHECK(more.size() == 5000 && one.owns(more.data()));
                CHECK(more.get_allocator() == in_one);
                CHECK(!stook::heap().owns(nullptr));
        }
        CHECK(one.stats().objects_live == 0 && one.stats().large_bytes == 0);
        CHECK(other.stats().bytes == 0 && std::string("other") == other.stats().name);
}

void resources_are_of_their_heap()
{
        stook::heap heap("resource");
        stook::heap_resource memory(heap), same(heap);

        {
                std::pmr::map<int, std::pmr::string> words(&memory);

                for (int i = 0; i < 1000; i++)
                        words.emplace(i, "a word that does not fit into the string itself");
                CHECK(heap.owns(words.at(7).data()));
        }
        CHECK(heap.stats().objects_live == 0);
        CHECK(memory.is_equal(same) && !memory.is_equal(*stook::malloc_resource()));
}

void what_is_alive_ends_with_the_heap()
{
        stook::heap heap("ends");
        void *object = heap.alloc(100);

        CHECK(heap.owns(object) && heap.stats().objects_live == 1);
        for (int i = 0; i < 10000; i++)
                (void)heap.alloc(static_cast<std::size_t>(i));
        CHECK(!heap.reset() && heap.stats().bytes == 0);
        object = heap.try_alloc(10, 4096);
        CHECK(reinterpret_cast<std::uintptr_t>(object) % 4096 == 0);
        heap.free(object);
        CHECK(!heap.shrink() && heap.stats().bytes == 0);
        heap = stook::heap("another");
        CHECK(heap && std::string("another") == heap.stats().name);
}

template <class Call> bool has_no_memory(Call call)
{
        try {
                call();
        } catch (const std::bad_alloc &) {
                return true;
        }
        return false;
}

void limits_are_told()
{
        stook::group group("group", 1 << 20);
        stook::heap limited("limited", 1 << 16), charged("charged", group);
        stook::heap_resource memory(limited);
        std::error_code error;

        CHECK(limited.try_alloc(1 << 17) == nullptr);
        CHECK(has_no_memory([&] { (void)limited.alloc(1 << 17); }));
        CHECK(has_no_memory([&] { (void)memory.allocate(1 << 17, 8); }));
        CHECK(has_no_memory(
                [&] { (void)stook::heap_allocator<wide>(limited).allocate(SIZE_MAX / 2); }));
        CHECK(!limited.set_limit(0) && limited.try_alloc(1 << 17) != nullptr);
        CHECK(charged.try_alloc(2 << 20) == nullptr && charged.try_alloc(1000) != nullptr);
        CHECK(group.usage() >= charged.stats().bytes);
        stook::heap refused("", nullptr, 0, error);
        CHECK(!refused && error == std::errc::invalid_argument);
        bool told = false;
        try {
                stook::heap none("");
        } catch (const std::system_error &) {
                told = true;
        }
        CHECK(told);
}

} // namespace

int main()
{
        containers_are_in_their_heap();
        resources_are_of_their_heap();
        what_is_alive_ends_with_the_heap();
        limits_are_told();
        return 0;
}
