/* Orders wait in a book until they are filled or cancelled. */
#include <stdio.h>
#include <stdlib.h>
#include <stook/stook.h>

#define ORDERS_MOST 32

struct order {
        unsigned number, amount;
};

static struct stook_cache *orders;
static struct order *book[ORDERS_MOST];

static void order_new(unsigned number, unsigned amount)
{
        struct order *order = stook_cache_alloc(orders);

        if (!order)
                exit(1);
        *order = (struct order){ number, amount };
        book[number] = order;
}

static void order_fill(unsigned number)
{
        printf("order %u: %u\n", number, book[number]->amount);
        stook_cache_free(orders, book[number]);
#ifdef FIXED
        book[number] = NULL;
#endif
}

static void order_cancel(unsigned number)
{
        if (!book[number])
                return;
        stook_cache_free(orders, book[number]);
        book[number] = NULL;
}

int main(void)
{
        orders = stook_cache_create("order", sizeof(struct order), NULL);
        if (!orders)
                return 1;
        order_new(1, 100);
        order_new(2, 250);
        order_fill(1);
        order_new(3, 70);
        order_cancel(1);                /* it came too late */
        order_fill(2);
        order_fill(3);
        return 0;
}
