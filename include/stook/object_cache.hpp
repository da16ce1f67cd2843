/*
 * <stook/object_cache.hpp> - caches of objects of one C++ type
 *
 *      stook::object_cache<session> sessions("session");
 *
 *      auto one = sessions.make_unique(socket);        // std::unique_ptr with a deleter
 *      session *other = sessions.construct(socket);
 *      sessions.destroy(other);
 *
 * A constructor that throws loses nothing: the memory goes back, and the exception goes on. The
 * cache outlives its objects: a cache that is destroyed earlier is reported and kept. Any thread
 * may destroy what another constructed.
 */
#ifndef STOOK_OBJECT_CACHE_HPP
#define STOOK_OBJECT_CACHE_HPP

#include <memory>
#include <stook/cache.hpp>
#include <type_traits>

namespace stook
{
namespace detail
{

/* Memory of a cache, until an object stands in it. */
class unbuilt
{
public:
        unbuilt(stook_cache *from, void *memory) noexcept : from_(from), memory_(memory)
        {
        }

        unbuilt(const unbuilt &) = delete;
        unbuilt &operator=(const unbuilt &) = delete;

        ~unbuilt()
        {
                if (memory_)
                        stook_cache_free(from_, memory_);
        }

        template <class T, class... Args> T *build(Args &&...args)
        {
                T *object = ::new (memory_) T(std::forward<Args>(args)...);

                memory_ = nullptr;
                return object;
        }

private:
        stook_cache *from_;
        void *memory_;
};

template <class T, class... Args> T *build_in(stook_cache *from, void *memory, Args &&...args)
{
        if constexpr (std::is_nothrow_constructible_v<T, Args...>)
                return ::new (memory) T(std::forward<Args>(args)...);
        else
                return unbuilt(from, memory).build<T>(std::forward<Args>(args)...);
}

} // namespace detail

/* Destroys an object and gives its memory back to its cache. */
template <class T> class object_deleter : public detail::deleter_of<T, true>
{
public:
        using detail::deleter_of<T, true>::deleter_of;
};

template <class T> using unique_object = std::unique_ptr<T, object_deleter<T>>;

template <class T> class object_cache : public detail::cache_of<T>
{
public:
        object_cache() noexcept = default;

        /* stook_cache_create() for T. @args: align is at least T's; args_size need not be set. */
        explicit object_cache(const char *name, stook_cache_args args = {})
            : detail::cache_of<T>(name, args)
        {
        }

        object_cache(const char *name, stook_cache_args args, std::error_code &error) noexcept
            : detail::cache_of<T>(name, args, error)
        {
        }

        /* A new object, the caller's until destroy(). Throws if there is no memory. */
        template <class... Args> [[nodiscard]] T *construct(Args &&...args)
        {
                return build(this->raw().alloc(), std::forward<Args>(args)...);
        }

        /* The same; nullptr with errno without memory. What T's constructor throws, goes on. */
        template <class... Args>
        [[nodiscard]] T *try_construct(Args &&...args)
                noexcept(std::is_nothrow_constructible_v<T, Args...>)
        {
                void *memory = this->raw().try_alloc();

                return memory ? build(memory, std::forward<Args>(args)...) : nullptr;
        }

        /* Ends an object of this cache; nullptr is fine. */
        void destroy(T *object) noexcept
        {
                if (object)
                        deleter()(object);
        }

        /* Destroys all objects, and the cache. First release pointers that own objects of it. */
        std::error_code destroy_all() noexcept
        {
                return this->raw().destroy_all(
                        [](void *object) { static_cast<T *>(object)->~T(); });
        }

        /* A new object that ends with its pointer. Throws if there is no memory. */
        template <class... Args> [[nodiscard]] unique_object<T> make_unique(Args &&...args)
        {
                return unique_object<T>(construct(std::forward<Args>(args)...), deleter());
        }

        /* The same; an empty pointer with errno if there is no memory. */
        template <class... Args>
        [[nodiscard]] unique_object<T> try_make_unique(Args &&...args)
                noexcept(std::is_nothrow_constructible_v<T, Args...>)
        {
                return unique_object<T>(try_construct(std::forward<Args>(args)...), deleter());
        }

        /* For objects from construct(), object_sheaf<T>::construct() or release() of a pointer. */
        object_deleter<T> deleter() const noexcept
        {
                return object_deleter<T>(this->raw().handle());
        }

        /*
         * Frees an object once its readers have left, without a destructor. On failure it is still
         * the caller's.
         */
        [[nodiscard]] std::error_code free_rcu(T *object) noexcept
        {
                static_assert(std::is_trivially_destructible_v<T>,
                              "no destructor runs after a grace period");
                return this->raw().free_rcu(object);
        }

private:
        template <class... Args> T *build(void *memory, Args &&...args)
        {
                return detail::build_in<T>(this->raw().handle(), memory,
                                           std::forward<Args>(args)...);
        }
};

/*
 * A prefilled sheaf of T: construct() takes no lock, makes no system call and finds memory.
 *
 *      stook::object_sheaf<node> ready(nodes, 2);
 *      node *a = ready.construct(1), *b = ready.construct(2);
 *
 * The objects are those of the cache: they end with its destroy() or its deleter.
 */
template <class T> class object_sheaf
{
public:
        object_sheaf() noexcept = default;

        object_sheaf(object_cache<T> &from, std::size_t n)
            : cache_(from.raw().handle()), raw_(from.raw(), n)
        {
        }

        object_sheaf(object_cache<T> &from, std::size_t n, std::error_code &error) noexcept
            : cache_(from.raw().handle()), raw_(from.raw(), n, 0, error)
        {
        }

        std::size_t available() const noexcept
        {
                return raw_.available();
        }

        [[nodiscard]] std::error_code refill(std::size_t n) noexcept
        {
                return raw_.refill(n);
        }

        /*
         * A new object; nullptr only if available() is 0. If T's constructor throws, the memory
         * goes back to the cache, and the sheaf has one object less.
         */
        template <class... Args>
        [[nodiscard]] T *construct(Args &&...args)
                noexcept(std::is_nothrow_constructible_v<T, Args...>)
        {
                void *memory = raw_.alloc();

                return memory ? detail::build_in<T>(cache_, memory, std::forward<Args>(args)...) :
                                nullptr;
        }

        /* Returns the sheaf now. */
        void reset() noexcept
        {
                raw_.reset();
        }

private:
        stook_cache *cache_ = nullptr;
        sheaf raw_;
};

} // namespace stook

#endif
