/* The same in C++: see guarded.c. */
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "guarded.h"

static volatile int sum, three = 3;

static void view_kept(void)
{
        std::string *name = new std::string(50, 'x');
        std::string_view view = *name;

        delete name;
        sum = sum + view[1];                                    /* fault */
}

static void iterator_kept(void)
{
        std::vector<int> numbers(20, 1);
        int *first = &numbers[0];

        numbers.resize(100);
        sum = sum + first[2];                                   /* fault */
}

static void erased(void)
{
        std::map<int, int> ages = { { 1, 2 }, { 3, 4 } };
        auto found = ages.find(3);

        ages.erase(found);
        sum = sum + found->second;                              /* fault */
}

struct shape {
        virtual ~shape() { }
        virtual int sides() { return 0; }
        char pad[40];
};

static void deleted_called(void)
{
        shape *made = new shape;                                /* born */

        delete made;                                            /* freed */
        sum = sum + made->sides();                              /* fault */
}

static void owner_gone(void)
{
        int *borrowed;

        {
                std::unique_ptr<int[]> owner(new int[30]);      /* born */

                borrowed = owner.get();
        }                                                       /* freed */
        borrowed[three] = 1;                                    /* fault */
}

static void vector_end(void)
{
        std::vector<int> numbers(64, 1);

        sum = sum + numbers[64];                                /* fault */
}

static void deleted_twice(void)
{
        char *one = new char[TWICE];                            /* born */

        delete[] one;                                           /* freed */
        reuse(one);
        delete[] one;                                           /* fault */
}

static void before_array(void)
{
        int *numbers = new int[12];                             /* born */

        sum = sum + numbers[-three];                            /* fault */
        delete[] numbers;
}

BUGS(
        BUG(view_kept), BUG(iterator_kept), BUG(erased), BUG(deleted_called), BUG(owner_gone),
        BESIDE(vector_end, 256), BUG(deleted_twice), BESIDE(before_array, 48)
)
