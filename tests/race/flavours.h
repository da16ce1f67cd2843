/*
 * Purpose: liburcu's flavours for the tests of libstook-urcu: our table, and liburcu's own.
 */
#ifndef TESTS_RACE_FLAVOURS_H
#define TESTS_RACE_FLAVOURS_H

#include <stddef.h>
#include <string.h>
#include <urcu/flavor.h>
#include <stook/rcu.h>

extern const struct rcu_flavor_struct urcu_memb_flavor, urcu_mb_flavor, urcu_qsbr_flavor,
        urcu_bp_flavor;

struct flavour {
        const char *name;
        const struct stook_rcu *table;
        const struct rcu_flavor_struct *flavour;
};

/* NULL: there is none of this name. */
static inline const struct flavour *flavour_of(const char *name)
{
        static const struct flavour flavours[] = {
                { "memb", &stook_urcu_memb, &urcu_memb_flavor },
                { "mb", &stook_urcu_mb, &urcu_mb_flavor },
                { "qsbr", &stook_urcu_qsbr, &urcu_qsbr_flavor },
                { "bp", &stook_urcu_bp, &urcu_bp_flavor },
        };

        for (size_t i = 0; name && i < sizeof(flavours) / sizeof(flavours[0]); i++)
                if (!strcmp(name, flavours[i].name))
                        return flavours + i;
        return NULL;
}

#endif
