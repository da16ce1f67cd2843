/* What the tests of the C++ headers share: a check, and memory that is made to run out. */
#ifndef TESTS_CPP_CHECK_HPP
#define TESTS_CPP_CHECK_HPP

#include <cstdio>
#include <cstdlib>
#include <stook/stook.hpp>

/* Holds in builds without assertions, too. */
#define CHECK(what) \
        ((what) ? (void)0 : \
                  (std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what), \
                   std::exit(1)))

/* Each allocation of caches made with STOOK_CACHE_MAY_FAIL fails as long as this lives. */
class no_memory
{
public:
        no_memory()
        {
                stook_fail_terms terms{};

                terms.terms_size = sizeof(terms);
                terms.interval = 1;
                terms.probability = 100;
                terms.times = -1;
                CHECK(!stook_set_fail(&terms));
        }

        ~no_memory()
        {
                CHECK(!stook_set_fail(nullptr));
        }
};

inline stook_cache_args may_fail()
{
        stook_cache_args args{};

        args.flags = STOOK_CACHE_MAY_FAIL;
        return args;
}

#endif
