/* Stook in C++: objects of a type, a container on a cache, allocations that cannot fail, ranges. */
#include <cstdio>
#include <map>
#include <stook/stook.hpp>
#include <string>

namespace
{

struct session {
        std::string user;
        explicit session(std::string name) : user(std::move(name))
        {
        }
};

struct region {
        const char *name;
};

/* Objects that end with their pointers. */
void use_objects()
{
        stook::object_cache<session> sessions("session");
        auto one = sessions.make_unique("ada");

        std::printf("%s, one of %u\n", one->user.c_str(),
                    static_cast<unsigned>(sessions.raw().stats().objects_live));
}

/* The map's nodes are objects of a cache; what is larger comes from stook_malloc(). */
void use_container()
{
        stook::cache nodes("map node", 64);
        stook::cache_resource resource(nodes);
        std::pmr::map<int, int> squares(&resource);

        for (int i = 0; i < 100; i++)
                squares[i] = i * i;
        std::printf("%d is the square of 9\n", squares[9]);
}

/* All that can fail is done before the place where nothing may. */
void use_sheaf()
{
        stook::object_cache<region> regions("region");
        stook::object_sheaf<region> ready(regions, 2);

        region *one = ready.construct(region{ "one" });
        region *two = ready.construct(region{ "two" });
        std::printf("%s and %s\n", one->name, two->name);
        regions.destroy(one);
        regions.destroy(two);
}

void use_ranges()
{
        region code{ "code" }, data{ "data" };
        stook::range_map<region> map;

        map.store(0x1000, 0x1fff, &code);
        map.store(0x4000, 0x7fff, &data);
        for (auto [first, last, found] : map.read())
                std::printf("%#llx to %#llx: %s\n", static_cast<unsigned long long>(first),
                            static_cast<unsigned long long>(last), found->name);
}

} // namespace

int main()
{
        use_objects();
        use_container();
        use_sheaf();
        use_ranges();
        return 0;
}
