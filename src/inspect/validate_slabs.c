/*
 * Purpose: check all slabs of a quiescent cache: whether the states of parts and the lists agree.
 * Place: called by validate.c. Full slabs are on no list, so the walk goes over all there are.
 * Checks:
 *  C1 Bits without an object are set.
 *  C2 A part with free objects is listed, or claimed and entered in `pending`. A part without is
 *     neither listed nor claimed.
 *  C3 `listed` has the parts that say LISTED; a slab is on the list exactly if there is such a
 *     part.
 *  C4 A list has as many slabs as its count says, and those that know that they are on it.
 */
#include "inspect/validate.h"
#include "os/os.h"
#include "report/report.h"
#include "slab/slab_inside.h"

struct visit {
        struct stook_slabs *slabs;
        int      faults;
        uint32_t listed[STOOK_NODES_MAX];       /* slabs that know that they are listed */
};

static void fault(struct visit *visit, const struct stook_slab *slab, const char *detail)
{
        const void *base = slab ? stook_slab_base(slab) : NULL;

        visit->faults++;
        stook_report_found(STOOK_FAULT_CORRUPT, base, visit->slabs->name, base, 0, detail);
}

static void check_part(struct visit *visit, struct stook_slab *slab, unsigned p)
{
        struct stook_pair part = stook_pair_read(stook_slab_part(slab, p));
        uint64_t flags = stook_part_flags(part);
        bool pending = slab->pending >> p & 1;

        uint64_t objects = stook_part_objects(slab, p);

        if (~part.hi & ~objects)
                fault(visit, slab, "C1: a bit without an object was cleared");
        if ((flags & STOOK_PART_RELEASED) || (flags & STOOK_PART_CLAIM ? !pending : pending))
                fault(visit, slab, "C2: a claim without an owner, or released and not given back");
        else if (part.hi & objects ? !flags : flags & STOOK_PART_LISTED)
                fault(visit, slab, "C2: free objects and no list, or the other way round");
        if ((flags & STOOK_PART_LISTED) != (slab->listed >> p & 1))
                fault(visit, slab, "C3: a part's flag LISTED and its bit in `listed` differ");
}

static void check_slab(struct stook_slab *slab, void *data)
{
        struct visit *visit = data;

        for (unsigned p = 0; p < slab->part_count; p++)
                check_part(visit, slab, p);
        if (!slab->listed != !stook_list_linked(&stook_slab_span(slab)->list))
                fault(visit, slab, "C3: `listed` and the slab's place in the list differ");
        if (slab->listed)
                visit->listed[slab->node]++;
}

static void check_list(struct visit *visit, unsigned n_node)
{
        const struct stook_slabs_node *node = &visit->slabs->node[n_node];
        uint32_t on_list = 0, listed = visit->listed[n_node];

        stook_list_for_each(e, &node->list) {
                struct stook_slab *slab = stook_slab_listed_at(e);

                if (on_list++ > listed || e->next->prev != e)
                        break;
                if (slab->slabs != visit->slabs || !slab->listed || stook_slab_node(slab) != node)
                        fault(visit, slab, "C4: on the list, but does not know");
        }
        if (on_list != listed || on_list != node->partial)
                fault(visit, NULL, "C4: the list and its count differ");
}

int stook_slabs_validate(struct stook_slabs *slabs)
{
        struct visit visit = { .slabs = slabs };

        stook_slabs_for_each(slabs, check_slab, &visit);
        for (unsigned n = 0; n < stook_os_node_count(); n++)
                check_list(&visit, n);
        return visit.faults;
}
