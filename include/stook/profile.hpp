/*
 * <stook/profile.hpp> - the heap profile of this process, and samples for it
 *
 *      stook::sampling samples;                begins, and ends with `samples`
 *      stook::mark_profile();                  growth begins here
 *      stook::write_profile("heap.%p.pb");
 *
 * The process has a profile once there was a session of samples, or if STOOK_PROFILE or
 * STOOK_SAMPLE was set when it started (see stook-env(7)). @path is
 * as for stook_profile_write(): nullptr stands for the file that STOOK_PROFILE names. Errors are
 * those of that call; without a profile it is std::errc::not_supported.
 */
#ifndef STOOK_PROFILE_HPP
#define STOOK_PROFILE_HPP

#include <stook/error.hpp>
#include <stook/sampling.h>
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

/*
 * A session of samples, as stook_sampling_start() begins one; the destructor ends it. A process has
 * one: another one ends the first.
 */
class sampling {
public:
        /* @args: args_size is set here; zeros are as usual. */
        explicit sampling(stook_sampling_args args = {})
        {
                std::error_code error = begin(args);

                detail::check(error, "stook::sampling");
        }

        sampling(stook_sampling_args args, std::error_code &error) noexcept
        {
                error = begin(args);
        }

        sampling(const sampling &) = delete;
        sampling &operator=(const sampling &) = delete;

        ~sampling()
        {
                if (began)
                        stook_sampling_stop();
        }

        static stook_sampling_stats stats()
        {
                stook_sampling_stats stats{};

                stats.stats_size = sizeof stats;
                detail::check(error_of(stook_sampling_get_stats(&stats)), "stook::sampling::stats");
                return stats;
        }

private:
        std::error_code begin(stook_sampling_args args) noexcept
        {
                args.args_size = sizeof args;

                int error = stook_sampling_start(&args);

                began = !error;
                return error_of(error);
        }

        bool began = false;
};

} // namespace stook

#endif
