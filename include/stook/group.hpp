/*
 * <stook/group.hpp> - accounting groups
 *
 *      stook::group requests("requests", 64 << 20);    // at most 64 MiB
 *      {
 *              stook::group_scope inside(requests);    // what this thread allocates is charged
 *              handle(request);
 *      }
 *
 * See <stook/group.h> for what is charged. stook::group owns a group; the group lives on until its
 * last object is freed, so a stook::group may end before.
 */
#ifndef STOOK_GROUP_HPP
#define STOOK_GROUP_HPP

#include <stook/cache.hpp>
#include <stook/group.h>

namespace stook
{

class group
{
public:
        group() noexcept = default;

        /* Makes a group: stook_group_create(). @limit_bytes: 0: no limit */
        explicit group(const char *name, std::uint64_t limit_bytes = 0)
            : handle_(stook_group_create(name, nullptr, limit_bytes))
        {
                if (!handle_)
                        detail::fail_with_errno("stook::group");
        }

        /* A group below @parent, which is charged all that this one is charged. */
        group(const char *name, group &parent, std::uint64_t limit_bytes = 0)
            : handle_(stook_group_create(name, parent.handle_, limit_bytes))
        {
                if (!handle_)
                        detail::fail_with_errno("stook::group");
        }

        /* @parent: may be null */
        group(const char *name, group *parent, std::uint64_t limit_bytes,
              std::error_code &error) noexcept
            : handle_(stook_group_create(name, parent ? parent->handle_ : nullptr, limit_bytes))
        {
                error = detail::error_unless(handle_);
        }

        group(group &&from) noexcept : handle_(std::exchange(from.handle_, nullptr))
        {
        }

        group &operator=(group &&from) noexcept
        {
                if (this != &from) {
                        stook_group_destroy(handle_);
                        handle_ = std::exchange(from.handle_, nullptr);
                }
                return *this;
        }

        group(const group &) = delete;
        group &operator=(const group &) = delete;

        ~group()
        {
                stook_group_destroy(handle_);
        }

        explicit operator bool() const noexcept
        {
                return handle_ != nullptr;
        }

        stook_group *handle() const noexcept
        {
                return handle_;
        }

        /* An object of a cache made with STOOK_CACHE_ACCOUNT, charged here; nullptr with errno. */
        [[nodiscard]] void *try_alloc(cache &from, unsigned flags = 0) noexcept
        {
                return stook_cache_alloc_group(from.handle(), flags, handle_);
        }

        /* Another limit; 0: none. */
        [[nodiscard]] std::error_code set_limit(std::uint64_t bytes) noexcept
        {
                return error_of(stook_group_set_limit(handle_, bytes));
        }

        /* Bytes of live objects charged to the group and to groups below it. */
        std::uint64_t usage() const noexcept
        {
                return stook_group_usage(handle_);
        }

        stook_group_stats stats() const
        {
                return detail::filled(stook_group_get_stats, handle(), "stook::group::stats");
        }

        /* Has @callback called before an allocation is refused: stook_group_on_limit(). */
        void on_limit(void (*callback)(stook_group *, std::size_t wanted, void *data),
                      void *data) noexcept
        {
                static_cast<void>(stook_group_on_limit(handle_, callback, data));
        }

private:
        stook_group *handle_ = nullptr;
};

/*
 * A stay in a group: from its construction to its end the thread's allocations are charged there.
 * Stays of a thread are nested, and end in the thread that began them.
 */
class group_scope
{
public:
        explicit group_scope(group &entered) noexcept : before_(stook_group_enter(entered.handle()))
        {
        }

        /* A stay in no group of the program's. */
        explicit group_scope(std::nullptr_t) noexcept : before_(stook_group_enter(nullptr))
        {
        }

        group_scope(const group_scope &) = delete;
        group_scope &operator=(const group_scope &) = delete;

        ~group_scope()
        {
                (void)stook_group_enter(before_);
        }

private:
        stook_group *before_;
};

} // namespace stook

#endif
