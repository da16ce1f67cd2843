/*
 * Proves operator new and delete on the drop-in, in all forms, as a C++ compiler calls them. Pairs
 * work, and alignment holds. A failure throws, returns a null pointer or runs the new handler, as
 * the language says, although the drop-in is written in C. A sized delete with a wrong size does no
 * harm.
 */
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>
extern "C" {
#include <cmocka.h>
#include <malloc.h>
}

static volatile std::size_t too_large = static_cast<std::size_t>(PTRDIFF_MAX) - 4096;

struct alignas(256) Wide {
        char text[300];
};

static void test_every_form(void **)
{
        const auto align = std::align_val_t{512};

        for (std::size_t size = 0; size < 400000; size = size * 3 + 1) {
                void *plain[] = {
                        operator new(size),
                        operator new[](size),
                        operator new(size, std::nothrow),
                        operator new[](size, std::nothrow),
                };
                void *aligned[] = {
                        operator new(size, align),
                        operator new[](size, align),
                        operator new(size, align, std::nothrow),
                        operator new[](size, align, std::nothrow),
                };

                for (void *p : plain) {
                        assert_non_null(p);
                        assert_int_equal(reinterpret_cast<std::uintptr_t>(p) % 16, 0);
                        assert_true(malloc_usable_size(p) >= size);
                        std::memset(p, 1, size);
                }
                for (void *p : aligned) {
                        assert_non_null(p);
                        assert_int_equal(reinterpret_cast<std::uintptr_t>(p) % 512, 0);
                        std::memset(p, 1, size);
                }
                operator delete(plain[0]);
                operator delete[](plain[1]);
                operator delete(plain[2], std::nothrow);
                operator delete[](plain[3], std::nothrow);
                operator delete(aligned[0], align);
                operator delete[](aligned[1], align);
                operator delete(aligned[2], align, std::nothrow);
                operator delete[](aligned[3], align, std::nothrow);

                operator delete(operator new(size), size);
                operator delete[](operator new[](size), size);
                operator delete(operator new(size, align), size, align);
                operator delete[](operator new[](size, align), size, align);
                operator delete(operator new(size), size * 9 + 5);      /* wrong, and not trusted */
        }
        operator delete(nullptr);
        operator delete[](nullptr, std::size_t{5});
        operator delete(nullptr, align);
}

static void test_types(void **)
{
        auto wide = std::make_unique<Wide>();
        std::vector<Wide> wides(10);
        std::map<std::string, std::vector<std::string>> map;

        assert_int_equal(reinterpret_cast<std::uintptr_t>(wide.get()) % alignof(Wide), 0);
        assert_int_equal(reinterpret_cast<std::uintptr_t>(wides.data()) % alignof(Wide), 0);
        for (int i = 0; i < 5000; i++)
                map[std::to_string(i % 700)].push_back(
                        std::string(static_cast<std::size_t>(i % 90), 'x'));
        assert_int_equal(map.size(), 700);
}

static void test_failure_throws(void **)
{
        int caught = 0;

#define THROWS(call) try { (void)(call); } catch (const std::bad_alloc &) { caught++; }
        THROWS(operator new(too_large));
        THROWS(operator new[](too_large));
        THROWS(operator new(too_large, std::align_val_t{64}));
        THROWS(operator new[](too_large, std::align_val_t{64}));
        assert_int_equal(caught, 4);
        assert_null(operator new(too_large, std::nothrow));
        assert_null(operator new[](too_large, std::nothrow));
        assert_null(operator new(too_large, std::align_val_t{64}, std::nothrow));
        assert_null(operator new[](too_large, std::align_val_t{64}, std::nothrow));
}

static int handler_runs;

static void test_the_new_handler_runs(void **)
{
        int caught = 0;

        std::set_new_handler([] {
                if (++handler_runs == 3)
                        std::set_new_handler(nullptr);
        });
        THROWS(operator new(too_large));
        assert_int_equal(handler_runs, 3);
        assert_int_equal(caught, 1);
}

static void test_across_threads(void **)
{
        for (int i = 0; i < 50; i++) {
                std::vector<std::string> *made = nullptr;
                std::thread maker(
                        [&] { made = new std::vector<std::string>(100, std::string(50, 'y')); });

                maker.join();
                assert_int_equal(made->size(), 100);
                delete made;
        }
}

int main()
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_every_form),
                cmocka_unit_test(test_types),
                cmocka_unit_test(test_failure_throws),
                cmocka_unit_test(test_the_new_handler_runs),
                cmocka_unit_test(test_across_threads),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
