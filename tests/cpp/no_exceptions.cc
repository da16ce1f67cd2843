/*
 * Proves that the headers work without exceptions and run-time types: errors are error codes and
 * null pointers, and a call of the throwing form ends the process with a line that says why.
 */
#include "check.hpp"
#include <csignal>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__cpp_exceptions) || defined(__cpp_rtti)
#error "this is to be compiled with -fno-exceptions -fno-rtti"
#endif

namespace
{

struct point {
        double x, y;
};

void errors_are_codes()
{
        std::error_code error;
        stook::cache none("", 8, {}, error);
        stook::object_cache<point> points("point", may_fail(), error);
        stook::range_map<point> map;
        no_memory from_here;

        CHECK(!none && points && !error);
        CHECK(!points.try_construct() && !points.try_make_unique() && errno == ENOMEM);
        stook::object_sheaf<point> ready(points, 4, error);
        CHECK(error == std::errc::not_enough_memory && ready.available() == 0);
        map.store(5, 4, nullptr, error);
        CHECK(error == std::errc::invalid_argument);
}

/* What @call writes to standard error in a child that it ends by SIGABRT. */
template <class Call> bool aborts(Call call, const char *line)
{
        char text[4096] = "";
        std::size_t length = 0;
        int ends[2], status = 0;
        pid_t child;

        CHECK(!pipe(ends));
        child = fork();
        CHECK(child >= 0);
        if (!child) {
                dup2(ends[1], 2);
                close(ends[0]);
                call();
                _exit(0);
        }
        close(ends[1]);
        while (ssize_t got = read(ends[0], text + length, sizeof(text) - 1 - length)) {
                CHECK(got > 0);
                length += static_cast<std::size_t>(got);
        }
        close(ends[0]);
        CHECK(waitpid(child, &status, 0) == child);
        return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && std::strstr(text, line);
}

void the_throwing_form_aborts()
{
        CHECK(aborts([] { stook::cache("", 8); }, "stook::cache: Invalid argument\n"));
        CHECK(aborts([] { stook::object_cache<point> points("point", may_fail());
                          no_memory from_here;
                          (void)points.construct(); },
                     "stook::cache::alloc: Cannot allocate memory\n"));
}

} // namespace

int main()
{
        errors_are_codes();
        the_throwing_form_aborts();
        return 0;
}
