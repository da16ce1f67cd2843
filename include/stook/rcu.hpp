/*
 * <stook/rcu.hpp> - read sections, and the wait for them
 *
 *      std::atomic<route *> now;
 *
 *      {
 *              stook::read_section reading;            // takes no lock
 *              send(now.load(std::memory_order_acquire));
 *      }
 *
 *      route *old = now.exchange(next);                // a writer
 *      (void)routes.free_rcu(old);                     // routes: an object_cache<route>
 *
 * stook_rcu_epoch of <stook/rcu.h> is the library's own implementation, and needs no other library.
 * Frees by RCU, and maps with readers, use the one that stook_rcu_use() names:
 *
 *      stook_rcu_use(&stook_rcu_epoch);                // once, before the first free by RCU
 */
#ifndef STOOK_RCU_HPP
#define STOOK_RCU_HPP

#include <stook/error.hpp>
#include <stook/rcu.h>

namespace stook
{

/*
 * A read section of an implementation. An object that a reader may have found in it is freed by RCU
 * only after its end. It ends in the thread that began it. Sections of one thread nest.
 */
class [[nodiscard]] read_section
{
public:
        explicit read_section(const stook_rcu &rcu = stook_rcu_epoch) noexcept : rcu_(rcu)
        {
                if (rcu_.read_lock)
                        rcu_.read_lock();
        }

        read_section(const read_section &) = delete;
        read_section &operator=(const read_section &) = delete;

        ~read_section()
        {
                if (rcu_.read_unlock)
                        rcu_.read_unlock();
        }

private:
        const stook_rcu &rcu_;
};

/*
 * Waits until all sections of stook_rcu_epoch that there are have ended, and its callbacks that
 * wait have returned: stook_epoch_synchronize(), with its errors.
 */
inline void epoch_synchronize(std::error_code &error) noexcept
{
        error = error_of(stook_epoch_synchronize());
}

inline void epoch_synchronize()
{
        detail::check(error_of(stook_epoch_synchronize()), "stook::epoch_synchronize");
}

} // namespace stook

#endif
