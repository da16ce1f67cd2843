/*
 * <stook/object_pool.hpp> - objects that are used again as they are, and callbacks of caches
 *
 *      stook::object_pool<buffer> buffers("buffer");
 *
 *      auto one = buffers.get();                       // std::unique_ptr, back into the pool
 *      one->clear();                                   // what an earlier user left
 *
 * An object of a pool is constructed when its memory is first handed out, and destroyed when its
 * memory leaves the pool: in a shrink, a trim, under memory pressure, and when the pool ends. In
 * between it stays as its users leave it. T's destructor may run in any thread, also in one of the
 * library's, and must not use the pool.
 */
#ifndef STOOK_OBJECT_POOL_HPP
#define STOOK_OBJECT_POOL_HPP

#include <memory>
#include <stook/cache.hpp>
#include <type_traits>

namespace stook
{
namespace detail
{

template <class T, class = void> struct has_low : std::false_type {
};
template <class T>
struct has_low<T, std::void_t<decltype(std::declval<T &>().low(std::size_t{}))>> : std::true_type {
};
template <class T, class = void> struct has_reclaim : std::false_type {
};
template <class T>
struct has_reclaim<T, std::void_t<decltype(std::declval<T &>().reclaim(std::size_t{}))>>
    : std::true_type {
};

} // namespace detail

/*
 * @args, with the callbacks on_low and reclaim of <stook/cache.h>: calls of what @watch has of
 *      void low(std::size_t left) noexcept;
 *      std::size_t reclaim(std::size_t wanted) noexcept;
 * The rules for them are those of the C header. @watch outlives the cache. An exception in a
 * callback ends the process.
 */
template <class Watch> stook_cache_args watched(Watch &watch, stook_cache_args args = {}) noexcept
{
        static_assert(detail::has_low<Watch>::value || detail::has_reclaim<Watch>::value,
                      "a watch has low(left) or reclaim(wanted)");
        args.limit_data = std::addressof(watch);
        if constexpr (detail::has_low<Watch>::value)
                args.on_low = [](stook_cache *, std::size_t left, void *data) noexcept {
                        static_cast<Watch *>(data)->low(left);
                };
        if constexpr (detail::has_reclaim<Watch>::value)
                args.reclaim = [](stook_cache *, std::size_t wanted,
                                  void *data) noexcept -> std::size_t {
                        return static_cast<Watch *>(data)->reclaim(wanted);
                };
        return args;
}

/* Gives an object back to its pool as it is. */
template <class T> class pool_deleter : public detail::deleter_of<T, false>
{
public:
        using detail::deleter_of<T, false>::deleter_of;
};

template <class T> using pooled = std::unique_ptr<T, pool_deleter<T>>;

template <class T> class object_pool : public detail::cache_of<T>
{
        static_assert(std::is_nothrow_default_constructible_v<T> &&
                      std::is_nothrow_destructible_v<T>,
                      "the library calls T's default constructor and destructor: neither throws");

public:
        object_pool() noexcept = default;

        /* stook_cache_create() for T. @args: ctor, dtor and ctor_data are the pool's. */
        explicit object_pool(const char *name, stook_cache_args args = {})
            : detail::cache_of<T>(name, constructing(args))
        {
        }

        object_pool(const char *name, stook_cache_args args, std::error_code &error) noexcept
            : detail::cache_of<T>(name, constructing(args), error)
        {
        }

        /* An object, new or used. Throws if there is no memory. */
        [[nodiscard]] pooled<T> get()
        {
                return owned(this->raw().alloc());
        }

        /* The same; an empty pointer with errno without memory. */
        [[nodiscard]] pooled<T> try_get() noexcept
        {
                return owned(this->raw().try_alloc());
        }

private:
        pooled<T> owned(void *object) noexcept
        {
                return pooled<T>(static_cast<T *>(object), pool_deleter<T>(this->raw().handle()));
        }

        static stook_cache_args constructing(stook_cache_args args) noexcept
        {
                args.ctor = [](void *object, void *) noexcept { ::new (object) T(); };
                args.dtor = [](void *object, void *) noexcept { static_cast<T *>(object)->~T(); };
                return args;
        }
};

} // namespace stook

#endif
