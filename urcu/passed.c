/*
 * Purpose: grace periods that the program waits for itself end what waits in this library's queues,
 * too. The program says when one begins, and that it is over, of a flavour by its table.
 * Concurrency: the list of flavours is made by constructors, and const afterwards.
 */
#include <stook/rcu.h>
#include "urcu.h"
#include "worker.h"

static struct stook_urcu_worker *workers;

void stook_urcu_list(struct stook_urcu_worker *worker)
{
        worker->next = workers;
        workers = worker;
}

/* NULL: no table of this library's. */
static struct stook_urcu_worker *worker_of(const struct stook_rcu *table)
{
        struct stook_urcu_worker *at = workers;

        while (at && at->table != table)
                at = at->next;
        return at;
}

__attribute__((visibility("default"))) uint64_t stook_urcu_begin(const struct stook_rcu *table)
{
        struct stook_urcu_worker *worker = worker_of(table);

        return worker ? stook_urcu_worker_begin(worker) : 0;
}

__attribute__((visibility("default"))) void stook_urcu_passed(const struct stook_rcu *table,
                                                              uint64_t begun)
{
        struct stook_urcu_worker *worker = worker_of(table);

        if (worker)
                stook_urcu_worker_passed(worker, begun);
}
