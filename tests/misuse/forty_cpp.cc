/* The same in C++: marks as in forty.c. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

static volatile int sum;

static void adopted(void)
{
        char *text = strdup("text of a C library");             /* born */

        delete text;                                            /* fault */
}

static void one_of_many(void)
{
        int *numbers = new int[10];                             /* born */

        delete numbers;                                         /* fault */
}

static void owners(void)
{
        std::string *name = new std::string("name");            /* born */
        std::unique_ptr<std::string> one(name), two(name);

        one.reset();                                            /* freed */
        two.reset();                                            /* fault */
}

static void view(void)
{
        std::string *text = new std::string(100, 'x');          /* born */
        std::string_view view = *text;

        delete text;                                            /* freed */
        sum += view[50];                                        /* fault */
}

static void erased(void)
{
        std::unordered_map<int, long> counts;
        long *count = &counts[7];                               /* born */

        counts.erase(7);                                        /* freed */
        ++*count;                                               /* fault */
}

int main(int argc, char **argv)
{
        static const struct { const char *name; void (*run)(); } bugs[] = {
                { "adopted", adopted }, { "one_of_many", one_of_many }, { "owners", owners },
                { "view", view }, { "erased", erased },
        };

        for (auto &bug : bugs)
                if (argc == 2 && !strcmp(bug.name, argv[1])) {
                        bug.run();
                        return 0;
                }
        return 2;
}
