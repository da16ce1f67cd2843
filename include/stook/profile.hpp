/*
 * <stook/profile.hpp> - the heap profile of this process
 *
 *      stook::mark_profile();                  growth begins here
 *      stook::write_profile("heap.%p.pb");
 *
 * The process has a profile if STOOK_PROFILE was set when it started (see stook-env(7)). @path is
 * as for stook_profile_write(): nullptr stands for the file that STOOK_PROFILE names. Errors are
 * those of that call; without a profile it is std::errc::not_supported.
 */
#ifndef STOOK_PROFILE_HPP
#define STOOK_PROFILE_HPP

#include <stook/error.hpp>
#include <stook/stats.h>

namespace stook
{

inline void write_profile(const char *path, std::error_code &error) noexcept
{
        error = error_of(stook_profile_write(path));
}

inline void write_profile(const char *path = nullptr)
{
        std::error_code error;

        write_profile(path, error);
        detail::check(error, "stook::write_profile");
}

inline void mark_profile(std::error_code &error) noexcept
{
        error = error_of(stook_profile_mark());
}

inline void mark_profile()
{
        std::error_code error;

        mark_profile(error);
        detail::check(error, "stook::mark_profile");
}

} // namespace stook

#endif
