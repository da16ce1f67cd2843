/*
 * <stook/heap.hpp> - heaps: objects of any size that end together
 *
 *      stook::heap request("request", 64 << 20);       // at most 64 MiB
 *      stook::heap_resource memory(request);
 *      std::pmr::vector<std::pmr::string> words(&memory);
 *
 *      std::list<int, stook::heap_allocator<int>> numbers{stook::heap_allocator<int>(request)};
 *
 * See <stook/heap.h>. The end of a stook::heap, and its reset(), run no destructor of what lives in
 * it: a container on a heap ends before, or is one whose memory is all that it has (as
 * monotonic_buffer_resource has it).
 */
#ifndef STOOK_HEAP_HPP
#define STOOK_HEAP_HPP

#include <stook/group.hpp>
#include <stook/heap.h>
#include <stook/memory.hpp>

namespace stook
{
namespace detail
{

inline void *try_heap_bytes(stook_heap *heap, std::size_t bytes, std::size_t align) noexcept
{
        return align > malloc_align ? stook_heap_aligned_alloc(heap, align, bytes) :
                                      stook_heap_alloc(heap, bytes);
}

inline void *heap_bytes(stook_heap *heap, std::size_t bytes, std::size_t align)
{
        void *memory = try_heap_bytes(heap, bytes, align);

        if (!memory)
                fail(error_of(ENOMEM), "stook_heap_alloc");
        return memory;
}

} // namespace detail

class heap
{
public:
        heap() noexcept = default;

        /* Makes a heap: stook_heap_create(). @limit_bytes: 0: no limit */
        explicit heap(const char *name, std::uint64_t limit_bytes = 0)
            : handle_(make(name, limit_bytes, nullptr))
        {
                if (!handle_)
                        detail::fail_with_errno("stook::heap");
        }

        /* A heap whose memory is charged to @charged. */
        heap(const char *name, group &charged, std::uint64_t limit_bytes = 0)
            : handle_(make(name, limit_bytes, charged.handle()))
        {
                if (!handle_)
                        detail::fail_with_errno("stook::heap");
        }

        /* @charged: may be null */
        heap(const char *name, group *charged, std::uint64_t limit_bytes,
             std::error_code &error) noexcept
            : handle_(make(name, limit_bytes, charged ? charged->handle() : nullptr))
        {
                error = detail::error_unless(handle_);
        }

        heap(heap &&from) noexcept : handle_(std::exchange(from.handle_, nullptr))
        {
        }

        heap &operator=(heap &&from) noexcept
        {
                if (this != &from) {
                        (void)stook_heap_destroy(handle_);
                        handle_ = std::exchange(from.handle_, nullptr);
                }
                return *this;
        }

        heap(const heap &) = delete;
        heap &operator=(const heap &) = delete;

        /* With all that is alive. A heap that a thread is inside of is reported, and stays. */
        ~heap()
        {
                (void)stook_heap_destroy(handle_);
        }

        explicit operator bool() const noexcept
        {
                return handle_ != nullptr;
        }

        stook_heap *handle() const noexcept
        {
                return handle_;
        }

        /* @align: a power of two. nullptr with errno: no memory, or a limit is met. */
        [[nodiscard]] void *try_alloc(std::size_t bytes,
                                      std::size_t align = detail::malloc_align) noexcept
        {
                return detail::try_heap_bytes(handle_, bytes, align);
        }

        /* The same, which fails as <stook/error.hpp> says. */
        [[nodiscard]] void *alloc(std::size_t bytes, std::size_t align = detail::malloc_align)
        {
                return detail::heap_bytes(handle_, bytes, align);
        }

        void free(void *object) noexcept
        {
                stook_heap_free(handle_, object);
        }

        /* Is the object of this heap? */
        bool owns(const void *object) const noexcept
        {
                return handle_ && stook_heap_of(object) == handle_;
        }

        /* Frees all objects at once. */
        [[nodiscard]] std::error_code reset() noexcept
        {
                return error_of(stook_heap_reset(handle_));
        }

        /* Gives back what the heap keeps for objects to come. */
        std::error_code shrink() noexcept
        {
                return error_of(stook_heap_shrink(handle_));
        }

        /* Another limit; 0: none. */
        [[nodiscard]] std::error_code set_limit(std::uint64_t bytes) noexcept
        {
                return error_of(stook_heap_set_limit(handle_, bytes));
        }

        stook_heap_stats stats() const
        {
                stook_heap_stats stats;

                stats.stats_size = sizeof(stats);
                detail::check(error_of(stook_heap_get_stats(handle_, &stats)),
                              "stook::heap::stats");
                return stats;
        }

private:
        static stook_heap *make(const char *name, std::uint64_t limit_bytes,
                                stook_group *charged) noexcept
        {
                stook_heap_args args = {};

                args.args_size = sizeof(args);
                args.limit_bytes = limit_bytes;
                args.group = charged;
                return stook_heap_create(name, &args);
        }

        stook_heap *handle_ = nullptr;
};

/*
 * A standard allocator on a heap, which outlives it. Two are equal if they are on the same heap.
 * Containers take their allocator along when they are moved and swapped.
 */
template <class T> class heap_allocator
{
public:
        using value_type = T;
        using propagate_on_container_move_assignment = std::true_type;
        using propagate_on_container_swap = std::true_type;

        explicit heap_allocator(heap &from) noexcept : handle_(from.handle())
        {
        }

        template <class U>
        heap_allocator(const heap_allocator<U> &other) noexcept : handle_(other.handle())
        {
        }

        [[nodiscard]] T *allocate(std::size_t n)
        {
                if (n > std::numeric_limits<std::size_t>::max() / sizeof(T))
                        detail::fail_length();
                return static_cast<T *>(detail::heap_bytes(handle_, n * sizeof(T), alignof(T)));
        }

        void deallocate(T *objects, std::size_t) noexcept
        {
                stook_heap_free(handle_, objects);
        }

        stook_heap *handle() const noexcept
        {
                return handle_;
        }

private:
        stook_heap *handle_;
};

template <class T, class U>
bool operator==(const heap_allocator<T> &a, const heap_allocator<U> &b) noexcept
{
        return a.handle() == b.handle();
}

template <class T, class U>
bool operator!=(const heap_allocator<T> &a, const heap_allocator<U> &b) noexcept
{
        return a.handle() != b.handle();
}

#if __has_include(<memory_resource>)

/* A memory resource on a heap, which outlives it. Resources on the same heap are equal. */
class heap_resource final : public std::pmr::memory_resource
{
public:
        explicit heap_resource(heap &from) noexcept : handle_(from.handle())
        {
        }

        heap_resource(const heap_resource &) = delete;
        heap_resource &operator=(const heap_resource &) = delete;

private:
        void *do_allocate(std::size_t bytes, std::size_t align) override
        {
                return detail::heap_bytes(handle_, bytes, align);
        }

        void do_deallocate(void *memory, std::size_t, std::size_t) override
        {
                stook_heap_free(handle_, memory);
        }

        bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override
        {
#ifdef __cpp_rtti
                const heap_resource *same = dynamic_cast<const heap_resource *>(&other);

                return same && same->handle_ == handle_;
#else
                return this == &other;
#endif
        }

        stook_heap *handle_;
};

#endif

} // namespace stook

#endif
