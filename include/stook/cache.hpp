/*
 * <stook/cache.hpp> - object caches and prefilled sheaves, as C++ types without a type of object
 *
 *      stook::cache points("point", sizeof(point));
 *      void *p = points.alloc();                       // or throws std::bad_alloc
 *      points.free(p);
 *
 * stook::cache owns a cache of <stook/cache.h>, stook::sheaf a sheaf of <stook/sheaf.h>. Both are
 * one or two pointers, can be moved, and cannot be copied. What a call does, and when it may be
 * made, is said in the C headers: all calls that allocate and free are MT-safe and signal-safe.
 * <stook/object_cache.hpp> has caches of one C++ type.
 */
#ifndef STOOK_CACHE_HPP
#define STOOK_CACHE_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stook/cache.h>
#include <stook/error.hpp>
#include <stook/rcu.h>
#include <stook/sheaf.h>
#include <stook/stats.h>
#include <type_traits>
#include <utility>

namespace stook
{

/* The largest object of a cache in bytes. */
inline constexpr std::size_t object_max = STOOK_OBJECT_MAX;

/*
 * A cache of raw objects. A cache that holds nothing (made by default, or moved from) has a null
 * handle; of its calls only handle(), operator bool, destroy() and assignment are allowed.
 */
class cache
{
public:
        cache() noexcept = default;

        /*
         * Makes a cache: stook_cache_create(). args_size of @args need not be set.
         * Fails with the errors of stook_cache_create().
         */
        cache(const char *name, std::size_t size, stook_cache_args args = {})
        {
                std::error_code error;

                *this = cache(name, size, args, error);
                detail::check(error, error == std::errc::result_out_of_range ?
                              "stook::cache: an object has at most 128 KiB" : "stook::cache");
        }

        cache(const char *name, std::size_t size, stook_cache_args args,
              std::error_code &error) noexcept
        {
                args.args_size = sizeof(args);
                handle_ = stook_cache_create(name, size, &args);
                error = detail::error_unless(handle_);
        }

        /* Takes over a cache that stook_cache_create() made. */
        explicit cache(stook_cache *handle) noexcept : handle_(handle)
        {
        }

        cache(cache &&from) noexcept : handle_(from.release())
        {
        }

        cache &operator=(cache &&from) noexcept
        {
                if (this != &from) {
                        (void)destroy();
                        handle_ = from.release();
                }
                return *this;
        }

        cache(const cache &) = delete;
        cache &operator=(const cache &) = delete;

        /*
         * A cache that cannot be destroyed (stook_cache_destroy() has the reasons: objects are in
         * use, most times) is reported on standard error, and lives on without an owner.
         */
        ~cache()
        {
                (void)destroy();
        }

        /* Destroys the cache now. On failure it is still owned and usable. */
        std::error_code destroy() noexcept
        {
                int error = stook_cache_destroy(handle_);

                if (!error)
                        handle_ = nullptr;
                return error_of(error);
        }

        /*
         * Frees all objects, and destroys the cache: stook_cache_destroy_all(), with its errors.
         * @last_look: called with each object (void *) right before it is freed; it may not throw
         */
        template <class Look> std::error_code destroy_all(Look &&last_look) noexcept
        {
                using type = std::remove_reference_t<Look>;
                type *at = std::addressof(last_look);   /* may be const, or a function */
                auto look = [](void *object, void *data) noexcept {
                        (**static_cast<type **>(data))(object);
                };
                int error = stook_cache_destroy_all(handle_, look, &at);

                if (!error)
                        handle_ = nullptr;
                return error_of(error);
        }

        std::error_code destroy_all() noexcept
        {
                return destroy_all([](void *) {});
        }

        /*
         * Calls @visit with each object (void *) that a caller owns, as long as @visit returns
         * true: stook_cache_for_each_object(), with its errors and rules. @visit may not throw.
         */
        template <class Visit> std::error_code for_each_object(Visit &&visit) noexcept
        {
                using type = std::remove_reference_t<Visit>;
                type *at = std::addressof(visit);       /* may be const, or a function */
                auto each = [](void *object, void *data) noexcept -> int {
                        return (**static_cast<type **>(data))(object) ? 0 : 1;
                };
                int error = stook_cache_for_each_object(handle_, each, &at);

                return error_of(error < 0 ? error : 0);
        }

        explicit operator bool() const noexcept
        {
                return handle_ != nullptr;
        }

        /* For the C interface; the cache stays owned. */
        stook_cache *handle() const noexcept
        {
                return handle_;
        }

        /* Gives the cache to the caller, which destroys it. */
        stook_cache *release() noexcept
        {
                return std::exchange(handle_, nullptr);
        }

        /* One object; throws. @flags: allocation flags of <stook/cache.h>. */
        [[nodiscard]] void *alloc()
        {
                void *object = try_alloc();

                if (!object)
                        detail::fail_with_errno("stook::cache::alloc");
                return object;
        }

        [[nodiscard]] void *alloc(unsigned flags)
        {
                void *object = try_alloc(flags);

                if (!object)
                        detail::fail_with_errno("stook::cache::alloc");
                return object;
        }

        /* One object, or nullptr with errno. */
        [[nodiscard]] void *try_alloc() noexcept
        {
                return stook_cache_alloc(handle_);
        }

        [[nodiscard]] void *try_alloc(unsigned flags) noexcept
        {
                return stook_cache_alloc_flags(handle_, flags);
        }

        [[nodiscard]] void *try_alloc_node(unsigned flags, int node) noexcept
        {
                return stook_cache_alloc_node(handle_, flags, node);
        }

        /* An object of this cache; nullptr is fine. */
        void free(void *object) noexcept
        {
                stook_cache_free(handle_, object);
        }

        /* @n objects, or none. */
        [[nodiscard]] std::error_code alloc_bulk(std::size_t n, void **objects,
                                                 unsigned flags = 0) noexcept
        {
                return error_of(stook_cache_alloc_bulk(handle_, flags, n, objects));
        }

        /* The content of @objects is unspecified afterwards. */
        void free_bulk(std::size_t n, void **objects) noexcept
        {
                stook_cache_free_bulk(handle_, n, objects);
        }

        /* Frees an object once its readers have left; on failure it is still the caller's. */
        [[nodiscard]] std::error_code free_rcu(void *object) noexcept
        {
                return error_of(stook_cache_free_rcu(handle_, object));
        }

        /*
         * free_rcu() of @n objects. On failure the caller still owns those whose pointers in the
         * array are not null.
         */
        [[nodiscard]] std::error_code free_rcu_bulk(std::size_t n, void **objects) noexcept
        {
                return error_of(stook_cache_free_rcu_bulk(handle_, n, objects));
        }

        /* Waits until all objects given to free_rcu() before are free. */
        void rcu_barrier() noexcept
        {
                stook_cache_rcu_barrier(handle_);
        }

        /* Gives back what is cached. Returns how many slabs are still in use. */
        std::size_t shrink()
        {
                int slabs = stook_cache_shrink(handle_);

                if (slabs < 0)
                        detail::fail(error_of(slabs), "stook::cache::shrink");
                return static_cast<std::size_t>(slabs);
        }

        /* Changes a live cache. tuning_size of @tuning need not be set. */
        [[nodiscard]] std::error_code tune(stook_tuning tuning) noexcept
        {
                tuning.tuning_size = sizeof(tuning);
                return error_of(stook_cache_tune(handle_, &tuning));
        }

        /* How many objects callers may own, in a cache that was made with a limit. */
        [[nodiscard]] std::error_code set_limit(std::size_t limit_objects) noexcept
        {
                return error_of(stook_cache_set_limit(handle_, limit_objects));
        }

        /* Keeps @n objects ready on each node; 0 ends that. */
        [[nodiscard]] std::error_code reserve(std::size_t n) noexcept
        {
                return error_of(stook_cache_reserve(handle_, n));
        }

        std::size_t object_size() const noexcept
        {
                return stook_cache_object_size(handle_);
        }

        stook_cache_stats stats() const
        {
                return detail::filled(stook_cache_get_stats, handle(), "stook::cache::stats");
        }

private:
        stook_cache *handle_ = nullptr;
};

/*
 * How full an object's slab is, and those of its cache: for programs that defragment. Nothing where
 * no object of a slab starts. MT-safe and signal-safe.
 */
inline std::optional<stook_occupancy> occupancy(const void *object) noexcept
{
        stook_occupancy found = {};

        found.occupancy_size = sizeof(found);
        if (stook_object_get_occupancy(object, &found) < 0)
                return std::nullopt;
        return found;
}

/* Would it help to move this object? Its slab is emptier than those of its cache are on average. */
inline bool worth_moving(const void *object) noexcept
{
        stook_occupancy found = {};

        found.occupancy_size = sizeof(found);
        return stook_object_get_occupancy(object, &found) == 1;
}

/*
 * A prefilled sheaf: its allocations cannot fail, take no lock and make no system call.
 *
 *      stook::sheaf nodes_ready(nodes, 5);             // all that can fail
 *      std::lock_guard<std::mutex> guard(mutex);
 *      void *a = nodes_ready.alloc();                  // up to 5 of them
 *
 * The cache outlives the sheaf. One thread uses a sheaf at a time. The destructor returns the
 * sheaf with what is left in it.
 */
class sheaf
{
public:
        sheaf() noexcept = default;

        /* Borrows a sheaf with at least @n objects, 0 to 65534: stook_sheaf_prefill(). */
        sheaf(cache &from, std::size_t n, unsigned flags = 0)
        {
                std::error_code error;

                *this = sheaf(from, n, flags, error);
                detail::check(error, "stook::sheaf");
        }

        sheaf(cache &from, std::size_t n, unsigned flags, std::error_code &error) noexcept
            : cache_(from.handle()), handle_(stook_sheaf_prefill(cache_, flags, n))
        {
                error = detail::error_unless(handle_);
        }

        sheaf(sheaf &&from) noexcept
            : cache_(from.cache_), handle_(std::exchange(from.handle_, nullptr))
        {
        }

        sheaf &operator=(sheaf &&from) noexcept
        {
                if (this != &from) {
                        reset();
                        cache_ = from.cache_;
                        handle_ = std::exchange(from.handle_, nullptr);
                }
                return *this;
        }

        sheaf(const sheaf &) = delete;
        sheaf &operator=(const sheaf &) = delete;

        ~sheaf()
        {
                reset();
        }

        /* Returns the sheaf now. */
        void reset() noexcept
        {
                stook_sheaf_return(cache_, std::exchange(handle_, nullptr));
        }

        explicit operator bool() const noexcept
        {
                return handle_ != nullptr;
        }

        /* So many calls of alloc() succeed. */
        std::size_t available() const noexcept
        {
                return stook_sheaf_available(handle_);
        }

        /* One object; nullptr only if available() is 0. The sheaf must be there. */
        [[nodiscard]] void *alloc() noexcept
        {
                return stook_sheaf_alloc(cache_, handle_);
        }

        /* At least @n objects again. On failure the sheaf has what it had, perhaps more. */
        [[nodiscard]] std::error_code refill(std::size_t n, unsigned flags = 0) noexcept
        {
                return error_of(stook_sheaf_refill(cache_, flags, &handle_, n));
        }

private:
        stook_cache *cache_ = nullptr;
        stook_sheaf *handle_ = nullptr;
};

namespace detail
{

/* What the caches of one C++ type are made of: a cache of raw objects that fit a T. */
template <class T> class cache_of
{
        static_assert(std::is_object_v<T> && !std::is_array_v<T>, "a cache is of one object type");
        static_assert(sizeof(T) <= object_max, "an object of a cache has at most 128 KiB");

public:
        using value_type = T;

        cache_of() noexcept = default;

        cache_of(const char *name, const stook_cache_args &args)
            : raw_(name, sizeof(T), aligned(args))
        {
        }

        cache_of(const char *name, const stook_cache_args &args, std::error_code &error) noexcept
            : raw_(name, sizeof(T), aligned(args), error)
        {
        }

        /* The cache without the type: shrink(), stats(), tune() and so on. */
        cache &raw() noexcept
        {
                return raw_;
        }

        const cache &raw() const noexcept
        {
                return raw_;
        }

        explicit operator bool() const noexcept
        {
                return static_cast<bool>(raw_);
        }

private:
        /* Eight bytes every cache has. */
        static stook_cache_args aligned(stook_cache_args args) noexcept
        {
                if (alignof(T) > 8 && args.align < alignof(T))
                        args.align = alignof(T);
                return args;
        }

        cache raw_;
};

/* What std::unique_ptr calls. `ends`: the object is destroyed before its memory goes back. */
template <class T, bool ends> class deleter_of
{
public:
        deleter_of() noexcept = default;

        explicit deleter_of(stook_cache *from) noexcept : from_(from)
        {
        }

        void operator()(T *object) const noexcept
        {
                if constexpr (ends)
                        object->~T();
                stook_cache_free(from_, object);
        }

private:
        stook_cache *from_ = nullptr;
};

} // namespace detail
} // namespace stook

#endif
