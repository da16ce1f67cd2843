/*
 * <stook/memory.hpp> - the standard library's containers on Stook's memory
 *
 *      std::vector<int, stook::allocator<int>> numbers;
 *
 *      stook::cache nodes("map node", 64);
 *      stook::cache_resource resource(nodes);
 *      std::pmr::map<int, int> map(&resource);         // its nodes are objects of the cache
 *
 *      std::pmr::set_default_resource(stook::malloc_resource());
 *
 * All of it may be used by several threads at once, and freed by others than those that allocated.
 * Where exceptions are off, memory that is not there ends the process with one line.
 */
#ifndef STOOK_MEMORY_HPP
#define STOOK_MEMORY_HPP

#include <cstddef>
#include <limits>
#include <memory>
#include <stook/cache.hpp>
#include <stook/malloc.h>
#include <type_traits>
#if __has_include(<memory_resource>)
#include <memory_resource>
#endif

namespace stook
{
namespace detail
{

/* What stook_malloc() aligns every object to. */
inline constexpr std::size_t malloc_align = 16;

inline void *malloc_bytes(std::size_t bytes, std::size_t align)
{
        void *memory = align > malloc_align ? stook_aligned_alloc(align, bytes) :
                                              stook_malloc(bytes);

        if (!memory)
                fail(error_of(ENOMEM), "stook_malloc");
        return memory;
}

inline void free_bytes(void *memory, std::size_t bytes, std::size_t align) noexcept
{
        if (align > malloc_align)
                stook_free_aligned_sized(memory, align, bytes);
        else
                stook_free_sized(memory, bytes);
}

[[noreturn]] inline void fail_length()
{
#ifdef __cpp_exceptions
        throw std::bad_array_new_length();
#else
        fail(error_of(ENOMEM), "stook::allocator::allocate");
#endif
}

} // namespace detail

/* What allocate_at_least() returns: C++23's std::allocation_result, where the library has it. */
#ifdef __cpp_lib_allocate_at_least
template <class T> using allocation_result = std::allocation_result<T *, std::size_t>;
#else
template <class T> struct allocation_result {
        T *ptr;
        std::size_t count;
};
#endif

/* A standard allocator on stook_malloc(). All are equal: any frees what another allocated. */
template <class T> class allocator
{
public:
        using value_type = T;
        using is_always_equal = std::true_type;
        using propagate_on_container_move_assignment = std::true_type;

        constexpr allocator() noexcept = default;

        template <class U> constexpr allocator(const allocator<U> &) noexcept
        {
        }

        [[nodiscard]] T *allocate(std::size_t n)
        {
                if (n > std::numeric_limits<std::size_t>::max() / sizeof(T))
                        detail::fail_length();
                return static_cast<T *>(detail::malloc_bytes(n * sizeof(T), alignof(T)));
        }

        /* Room for @n or more: as many as the memory has. Any number in between frees it. */
        [[nodiscard]] allocation_result<T> allocate_at_least(std::size_t n)
        {
                T *objects = allocate(n);

                return { objects, stook_usable_size(objects) / sizeof(T) };
        }

        void deallocate(T *objects, std::size_t n) noexcept
        {
                detail::free_bytes(objects, n * sizeof(T), alignof(T));
        }
};

template <class T, class U>
constexpr bool operator==(const allocator<T> &, const allocator<U> &) noexcept
{
        return true;
}

template <class T, class U>
constexpr bool operator!=(const allocator<T> &, const allocator<U> &) noexcept
{
        return false;
}

#if __has_include(<memory_resource>)

namespace detail
{

class malloc_resource_type final : public std::pmr::memory_resource
{
private:
        void *do_allocate(std::size_t bytes, std::size_t align) override
        {
                return malloc_bytes(bytes, align);
        }

        void do_deallocate(void *memory, std::size_t bytes, std::size_t align) override
        {
                free_bytes(memory, bytes, align);
        }

        bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override
        {
                return this == &other;
        }
};

} // namespace detail

/* The memory resource of stook_malloc(). It lasts as long as the process. */
inline std::pmr::memory_resource *malloc_resource() noexcept
{
        using type = detail::malloc_resource_type;
        alignas(type) static unsigned char memory[sizeof(type)];
        static std::pmr::memory_resource *const resource = ::new (memory) type;

        return resource;
}

/*
 * A memory resource on a cache, for containers that allocate nodes of one size. What does not fit
 * into an object of the cache, by its size or its alignment, comes from the resource behind it.
 */
class cache_resource final : public std::pmr::memory_resource
{
public:
        /*
         * @objects: outlives the resource
         * @align: bytes that the cache's objects are aligned to, as given at its creation; 8 holds
         *         for all caches
         * @behind: for larger requests; outlives the resource
         */
        explicit cache_resource(cache &objects, std::size_t align = 8,
                                std::pmr::memory_resource *behind = malloc_resource()) noexcept
            : objects_(objects.handle()), size_(objects.object_size()), align_(align),
              behind_(behind)
        {
        }

        cache_resource(const cache_resource &) = delete;
        cache_resource &operator=(const cache_resource &) = delete;

        std::pmr::memory_resource *behind() const noexcept
        {
                return behind_;
        }

private:
        bool fits(std::size_t bytes, std::size_t align) const noexcept
        {
                return bytes <= size_ && align <= align_;
        }

        void *do_allocate(std::size_t bytes, std::size_t align) override
        {
                void *object;

                if (!fits(bytes, align))
                        return behind_->allocate(bytes, align);
                object = stook_cache_alloc(objects_);
                if (!object)
                        detail::fail_with_errno("stook::cache_resource");
                return object;
        }

        void do_deallocate(void *memory, std::size_t bytes, std::size_t align) override
        {
                if (fits(bytes, align))
                        stook_cache_free(objects_, memory);
                else
                        behind_->deallocate(memory, bytes, align);
        }

        bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override
        {
                return this == &other;
        }

        stook_cache *objects_;
        std::size_t size_, align_;
        std::pmr::memory_resource *behind_;
};

#endif

} // namespace stook

#endif
