/*
 * <stook/error.hpp> - errors of the C++ interface
 *
 * Most calls that can fail have two forms, as those of <filesystem> have. The first throws. The
 * second takes a std::error_code as its last argument, sets or clears it, and never throws.
 *      ENOMEM  std::bad_alloc
 *      others  std::system_error with the error of the C call, in std::generic_category()
 * Calls whose names begin with try_ return nullptr and set errno, as the C calls do.
 *
 * Without exceptions (-fno-exceptions) the first form writes one line and ends the process. The
 * second form and the try_ calls work as always.
 */
#ifndef STOOK_ERROR_HPP
#define STOOK_ERROR_HPP

#if !defined(__cplusplus) || __cplusplus < 201703L
#error "<stook/stook.hpp> needs C++17 or later"
#endif

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <system_error>

namespace stook
{

/* An error number of the C interface, with either sign, as an error_code; 0: no error. */
inline std::error_code error_of(int number) noexcept
{
        return { number < 0 ? -number : number, std::generic_category() };
}

namespace detail
{

/* Ends a call in the way of its first form. @call: its name. */
[[noreturn]] inline void fail(std::error_code error, const char *call)
{
#ifdef __cpp_exceptions
        if (error == std::errc::not_enough_memory)
                throw std::bad_alloc();
        throw std::system_error(error, call);
#else
        std::fprintf(stderr, "%s: %s\n", call, std::strerror(error.value()));
        std::abort();
#endif
}

[[noreturn]] inline void fail_with_errno(const char *call)
{
        fail(error_of(errno), call);
}

inline void check(std::error_code error, const char *call)
{
        if (error)
                fail(error, call);
}

/* A structure that begins with its size, as a call of the C interface fills it. */
template <class Stats, class Of>
Stats filled(int (*get)(const Of *, Stats *), const Of *of, const char *call)
{
        Stats stats;

        stats.stats_size = sizeof(stats);
        check(error_of(get(of, &stats)), call);
        return stats;
}

/* errno, if @got is nothing. */
inline std::error_code error_unless(const void *got) noexcept
{
        return got ? std::error_code() : error_of(errno);
}

} // namespace detail
} // namespace stook

#endif
