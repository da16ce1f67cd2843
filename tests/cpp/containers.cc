/*
 * Proves that the standard library's containers work on stook::allocator and on the memory
 * resources, take all their memory from Stook, and give all of it back.
 */
#include "check.hpp"
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace
{

template <class T> using alloc = stook::allocator<T>;
using text = std::basic_string<char, std::char_traits<char>, alloc<char>>;

struct alignas(128) wide {
        int number;
};

void containers_hold_their_values()
{
        std::vector<int, alloc<int>> numbers;
        std::map<int, text, std::less<int>, alloc<std::pair<const int, text>>> map;
        std::unordered_map<int, int, std::hash<int>, std::equal_to<int>,
                           alloc<std::pair<const int, int>>>
                hashed;
        std::list<int, alloc<int>> list;
        std::deque<text, alloc<text>> deque;

        for (int i = 0; i < 1000; i++) {
                numbers.push_back(i);
                map.emplace(i, text(static_cast<std::size_t>(i % 90), 'a'));
                hashed[i] = i * i;
                list.push_front(i);
                deque.emplace_back("a string that is longer than what fits into the object");
        }
        CHECK(stook_owns(numbers.data()) && stook_owns(deque[5].data()));
        for (int i = 0; i < 1000; i++) {
                CHECK(numbers[static_cast<std::size_t>(i)] == i && hashed[i] == i * i);
                CHECK(map.at(i).size() == static_cast<std::size_t>(i % 90));
        }
        list.sort();
        CHECK(list.front() == 0 && list.back() == 999);

        auto moved = std::move(numbers);
        auto copied = moved;

        CHECK(copied == moved && copied.get_allocator() == alloc<long>());
        moved.clear();
        moved.shrink_to_fit();
        CHECK(copied.size() == 1000);
}

template <class T> void at_least(std::size_t n)
{
        alloc<T> from;
        auto got = from.allocate_at_least(n);

        CHECK(got.ptr && got.count >= n);
        CHECK(reinterpret_cast<std::uintptr_t>(got.ptr) % alignof(T) == 0);
        CHECK(got.count == stook_usable_size(got.ptr) / sizeof(T));
        std::fill_n(reinterpret_cast<unsigned char *>(got.ptr), got.count * sizeof(T), 1);
        from.deallocate(got.ptr, got.count);
}

void sizes_are_told()
{
        at_least<char>(100);
        at_least<long>(1000);
        at_least<wide>(3);
        at_least<wide>(100000);
}

void alignments_hold()
{
        std::vector<wide, alloc<wide>> wides(50);
        auto shared = std::allocate_shared<wide>(alloc<wide>(), wide{ 7 });

        CHECK(reinterpret_cast<std::uintptr_t>(wides.data()) % alignof(wide) == 0);
        CHECK(reinterpret_cast<std::uintptr_t>(shared.get()) % alignof(wide) == 0);
        CHECK(shared->number == 7);
}

void what_is_too_much_throws()
{
        alloc<wide> from;
        bool length = false, memory = false;

        try {
                (void)from.allocate(std::size_t(-1) / 2);
        } catch (const std::bad_array_new_length &) {
                length = true;
        }
        try {
                (void)from.allocate((std::size_t(1) << 60) / sizeof(wide));
        } catch (const std::bad_array_new_length &) {
        } catch (const std::bad_alloc &) {
                memory = true;
        }
        CHECK(length && memory);
}

void nodes_come_from_the_cache()
{
        stook::cache nodes("nodes", 64);
        stook::cache_resource resource(nodes, 16);

        {
                std::pmr::map<int, int> map(&resource);

                for (int i = 0; i < 500; i++)
                        map[i] = -i;
                CHECK(nodes.stats().objects_live == 500 && map[499] == -499);

                std::pmr::vector<char> large(1000, 'x', &resource);

                CHECK(stook_owns(large.data()) && nodes.stats().objects_live == 500);
                CHECK(stook_object_cache(large.data()) != nodes.handle());
                void *aligned = resource.allocate(64, 32);
                CHECK(stook_object_cache(aligned) != nodes.handle());
                CHECK(reinterpret_cast<std::uintptr_t>(aligned) % 32 == 0);
                resource.deallocate(aligned, 64, 32);
        }
        CHECK(nodes.stats().objects_live == 0);
        CHECK(resource.is_equal(resource) && !resource.is_equal(*resource.behind()));
}

void resources_fail_as_the_standard_says()
{
        stook::cache nodes("failing nodes", 64, may_fail());
        stook::cache_resource resource(nodes);
        bool refused = false;

        try {
                no_memory from_here;

                (void)resource.allocate(64, 8);
        } catch (const std::bad_alloc &) {
                refused = true;
        }
        CHECK(refused && nodes.stats().objects_live == 0);
}

void malloc_serves_all_sizes()
{
        std::pmr::memory_resource *const heap = stook::malloc_resource();
        std::pmr::memory_resource *const before = std::pmr::set_default_resource(heap);

        CHECK(heap == stook::malloc_resource() && heap->is_equal(*stook::malloc_resource()));
        {
                std::pmr::vector<std::pmr::string> strings;

                for (int i = 0; i < 100; i++)
                        strings.emplace_back("a string that needs memory of its own");
                CHECK(stook_owns(strings.data()) && stook_owns(strings[99].data()));
        }
        std::pmr::set_default_resource(before);
        for (std::size_t align = 1; align <= 4096; align *= 2) {
                void *memory = heap->allocate(100, align);

                CHECK(stook_owns(memory) && reinterpret_cast<std::uintptr_t>(memory) % align == 0);
                heap->deallocate(memory, 100, align);
        }
}

} // namespace

int main()
{
        containers_hold_their_values();
        sizes_are_told();
        alignments_hold();
        what_is_too_much_throws();
        nodes_come_from_the_cache();
        resources_fail_as_the_standard_says();
        malloc_serves_all_sizes();
        return 0;
}
