/*
 * Purpose: the life of groups: made, entered, destroyed, and ended when nothing of them is left.
 * And the calls that read and set.
 * Place: API; calls precharge.c, and os for the memory of the table.
 * Invariants: group.h.
 * Concurrency: `lives` guards ids and states. It is held for a few stores only, never over an
 *  evacuation. A group that is ENDING stays on the list while any thread takes back its precharges
 *  without the lock; two threads at it do no harm. M1: the release of the bound of ids pairs with
 *  the acquire of a walk over groups (inspect/print.c, inspect/stats_page.c).
 * Failure: an evacuation that is refused leaves the group ENDING. Its id is lost until a later one
 *  succeeds.
 */
#include <errno.h>
#include <string.h>
#include "base/lock.h"
#include "gate/gate.h"
#include "group/group.h"
#include "group/precharge.h"
#include "os/os.h"
#include "report/report.h"

uint32_t stook_groups_exist;
uint16_t stook_group_of_process;
struct stook_group *stook_groups;
uint32_t stook_groups_bound = 1;

/* Guards all below, and state and next of groups. */
static struct stook_lock lives = STOOK_LOCK_INIT(STOOK_RANK_GROUPS);
static size_t   committed;              /* bytes of the table */
static uint16_t free_ids, ending;       /* first of each list */
static int    (*prepare_malloc)(void);
/* Key of what a thread does at its end; made with the first group. */
static int      at_ends = -1;

void stook_group_set_prepare(int (*prepare)(void))
{
        prepare_malloc = prepare;
}

struct stook_group *stook_group_at(uint16_t id)
{
        return stook_groups + id;
}

/*
 * Other threads hold it for a moment only. A holder that never comes back ends the making of
 * groups, not of objects.
 */
static bool lock(void)
{
        for (unsigned tries = 0; tries < 1000; tries++) {
                /* A call that was jumped out of leaves lists that are whole; an id may be lost. */
                if (stook_lock_take(&lives) || stook_lock_inherit(&lives))
                        return true;
                stook_os_pause(1000 * 1000);
        }
        return false;
}

/* ---- ids; lives held ---- */

static bool commit_through(uint32_t id)
{
        size_t need = stook_os_whole_pages((id + 1) * sizeof(*stook_groups));

        if (!stook_groups)
                stook_groups = stook_os_reserve((STOOK_GROUPS_MAX + 1) * sizeof(*stook_groups),
                                                stook_os_page_bytes());
        if (!stook_groups)
                return false;
        if (need > committed &&
            !stook_os_commit((char *)stook_groups + committed, need - committed))
                return false;
        committed = need > committed ? need : committed;
        return true;
}

/* Return: 0; -EAGAIN; -ENOMEM. */
static int take_id(uint16_t *id)
{
        if (free_ids) {
                *id = free_ids;
                free_ids = stook_groups[free_ids].next;
                return 0;
        }
        if (stook_groups_bound > STOOK_GROUPS_MAX)
                return -EAGAIN;
        if (!commit_through(stook_groups_bound))
                return -ENOMEM;
        *id = (uint16_t)stook_groups_bound;
        __atomic_store_n(&stook_groups_bound, *id + 1u, __ATOMIC_RELEASE);              /* M1 */
        return 0;
}

static void drop_reference(struct stook_group *group)
{
        if (__atomic_sub_fetch(&group->references, 1, __ATOMIC_ACQ_REL))
                return;
        __atomic_store_n(&group->state, STOOK_GROUP_ENDING, __ATOMIC_RELAXED);
        group->next = ending;
        ending = group->id;
}

/*
 * Frees the ids of ending groups to which nothing is charged; parents may end in turn. True: others
 * are left.
 */
static bool free_ended(void)
{
        uint16_t at = ending, next, left = 0;

        while (at) {
                for (ending = 0; at; at = next) {
                        struct stook_group *group = stook_groups + at;
                        struct stook_group *parent = stook_group_parent(group);

                        next = group->next;
                        /* group.h M1 */
                        if (__atomic_load_n(&group->charged, __ATOMIC_ACQUIRE)) {
                                group->next = left;
                                left = at;
                                continue;
                        }
                        __atomic_store_n(&group->state, STOOK_GROUP_FREE, __ATOMIC_RELAXED);
                        group->next = free_ids;
                        free_ids = at;
                        if (parent)
                                drop_reference(parent);
                }
                at = ending;
        }
        ending = left;
        return left;
}

/* ---- ends ---- */

static bool is_ending(uint16_t id, const void *data)
{
        (void)data;
        return __atomic_load_n(&stook_groups[id].state, __ATOMIC_RELAXED) == STOOK_GROUP_ENDING;
}

/* No lock held. */
static void end_groups(void)
{
        for (unsigned round = 0; round < 3; round++) {
                bool left;

                if (!lock())
                        return;
                left = free_ended();
                stook_lock_drop(&lives);
                /*
                 * Precharges keep ids. A free that saw the group alive may make one even after
                 * the evacuation.
                 */
                if (!left || !stook_precharges_sum(is_ending, NULL) ||
                    !stook_precharges_evacuate(true, stook_group_give_back))
                        return;
        }
}

/* ---- threads that end inside ---- */

static void leave(void *self)
{
        (void)self;
        stook_group_enter(NULL);
}

/* ---- calls ---- */

static int make(const char *name, struct stook_group *parent, uint64_t limit,
                struct stook_group **made)
{
        struct stook_group *group;
        uint16_t id;
        int error;

        if (!lock())
                return -ENOMEM;
        if (at_ends < 0)
                at_ends = stook_os_thread_end_key(leave);
        error = take_id(&id);
        if (!error) {
                group = stook_groups + id;
                __atomic_store_n(&group->parent, parent, __ATOMIC_RELAXED);
                group->id = id;
                group->limit = limit ? limit : UINT64_MAX;
                group->charged = group->peak = group->limit_events = group->refusals = 0;
                group->on_limit = NULL;
                memset(group->name, 0, sizeof(group->name));
                strcpy(group->name, name);
                if (parent)
                        __atomic_fetch_add(&parent->references, 1, __ATOMIC_RELAXED);
                __atomic_store_n(&group->references, 1, __ATOMIC_RELAXED);
                __atomic_store_n(&group->state, STOOK_GROUP_LIVE, __ATOMIC_RELEASE);
                *made = group;
        }
        stook_lock_drop(&lives);
        return error;
}

STOOK_API struct stook_group *stook_group_create(const char *name, struct stook_group *parent,
                                                 uint64_t limit_bytes)
{
        struct stook_group *group = NULL;
        bool named = name && *name && strnlen(name, sizeof(group->name)) < sizeof(group->name);
        int error = named ? 0 : -EINVAL;

        if (!error && !stook_gate_start())
                error = -ENOMEM;
        if (!error) {
                stook_gate_check();
                end_groups();
                if (!__atomic_load_n(&stook_groups_exist, __ATOMIC_ACQUIRE) && prepare_malloc)
                        error = prepare_malloc();
        }
        if (!error)
                error = make(name, parent, limit_bytes, &group);
        if (error)
                errno = -error;
        else
                __atomic_store_n(&stook_groups_exist, 1, __ATOMIC_RELEASE);
        return error ? NULL : group;
}

void stook_group_start(uint64_t limit_bytes)
{
        struct stook_group *group;

        if (prepare_malloc() || make("process", NULL, limit_bytes, &group))
                return;
        __atomic_store_n(&stook_groups_exist, 1, __ATOMIC_RELEASE);
        stook_group_of_process = group->id;
}

/* One more reference, if there is one left to go by. */
static bool refer(struct stook_group *group)
{
        uint32_t n = __atomic_load_n(&group->references, __ATOMIC_RELAXED);

        while (n && !__atomic_compare_exchange_n(&group->references, &n, n + 1, true,
                                                 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
                ;
        return n != 0;
}

/* One less, without the lock, unless it is the last. */
static bool let_go(struct stook_group *group)
{
        uint32_t n = __atomic_load_n(&group->references, __ATOMIC_RELAXED);

        while (n > 1 && !__atomic_compare_exchange_n(&group->references, &n, n - 1, true,
                                                     __ATOMIC_RELEASE, __ATOMIC_RELAXED))
                ;
        return n > 1;
}

STOOK_API struct stook_group *stook_group_enter(struct stook_group *or_null)
{
        uint16_t id = stook_self->group;
        struct stook_group *previous = id && id != STOOK_GROUP_NONE ? stook_group_at(id) : NULL;

        if (or_null == previous)
                return previous;
        stook_self->group = or_null && refer(or_null) ? or_null->id : 0;
        if (stook_self->group)
                stook_os_thread_end_arm(at_ends, stook_self);
        /* Not the last reference as a rule: its maker has not destroyed it. */
        if (previous && !let_go(previous))
                stook_group_destroy(previous);
        return previous;
}

STOOK_API void stook_group_destroy(struct stook_group *group)
{
        bool live;

        if (!group || !lock())
                return;
        live = __atomic_load_n(&group->state, __ATOMIC_RELAXED) == STOOK_GROUP_LIVE;
        if (live)
                drop_reference(group);
        stook_lock_drop(&lives);
        if (live)
                end_groups();
        else
                stook_report_fault(STOOK_FAULT_DOUBLE_FREE, group, NULL, NULL, 0,
                                   "an accounting group that was destroyed before");
}

STOOK_API int stook_group_set_limit(struct stook_group *group, uint64_t bytes)
{
        if (!group)
                return -EINVAL;
        __atomic_store_n(&group->limit, bytes ? bytes : UINT64_MAX, __ATOMIC_RELAXED);
        if (bytes && bytes < __atomic_load_n(&group->charged, __ATOMIC_RELAXED))
                stook_precharges_evacuate(true, stook_group_give_back);
        return 0;
}

static bool is_below(uint16_t id, const void *data)
{
        return stook_group_is_below(stook_groups + id, data);
}

STOOK_API uint64_t stook_group_usage(const struct stook_group *group)
{
        uint64_t charged, precharge;

        if (!group)
                return 0;
        charged = __atomic_load_n(&group->charged, __ATOMIC_RELAXED);
        precharge = stook_precharges_sum(is_below, group);
        return charged > precharge ? charged - precharge : 0;
}

STOOK_API int stook_group_get_stats(const struct stook_group *group,
                                    struct stook_group_stats *stats)
{
        uint64_t limit;

        if (!group || !stats ||
            !stook_report_size_is(stats->stats_size, sizeof(*stats), "stats_size"))
                return -EINVAL;
        limit = __atomic_load_n(&group->limit, __ATOMIC_RELAXED);
        memcpy(stats->name, group->name, sizeof(stats->name));
        stats->limit_bytes = limit == UINT64_MAX ? 0 : limit;
        stats->precharge_bytes = stook_precharges_sum(is_below, group);
        stats->usage_bytes = stook_group_usage(group);
        stats->peak_bytes = __atomic_load_n(&group->peak, __ATOMIC_RELAXED);
        stats->limit_events = __atomic_load_n(&group->limit_events, __ATOMIC_RELAXED);
        stats->refusals = __atomic_load_n(&group->refusals, __ATOMIC_RELAXED);
        return 0;
}

STOOK_API int stook_group_on_limit(struct stook_group *group,
                                   void (*callback)(struct stook_group *group, size_t wanted,
                                                    void *data),
                                   void *data)
{
        if (!group)
                return -EINVAL;
        group->on_limit_data = data;
        group->on_limit = callback;
        return 0;
}

/* The lists of a holder that is gone, from the groups' states. */
static void list_again(void)
{
        free_ids = ending = 0;
        for (uint32_t id = 1; id < stook_groups_bound; id++) {
                struct stook_group *group = stook_groups + id;

                if (group->state == STOOK_GROUP_LIVE && !group->references)
                        group->state = STOOK_GROUP_ENDING;      /* it had taken the last one */
                if (group->state == STOOK_GROUP_FREE) {
                        group->next = free_ids;
                        free_ids = (uint16_t)id;
                } else if (group->state == STOOK_GROUP_ENDING) {
                        group->next = ending;
                        ending = (uint16_t)id;
                }
        }
}

void stook_group_fork_child(void)
{
        if (__atomic_load_n(&lives.word, __ATOMIC_RELAXED))
                list_again();
        stook_lock_reset(&lives);
}
