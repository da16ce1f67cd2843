/*
 * Purpose: what a maple tree should hold, as plainly as can be: an array of ranges in order.
 */
#ifndef TESTS_MAPLE_ORACLE_H
#define TESTS_MAPLE_ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct oracle_range {
        uint64_t first, last;
        void    *entry;
};

struct oracle {
        size_t n, room;
        struct oracle_range *ranges;
};

void oracle_store(struct oracle *oracle, uint64_t first, uint64_t last, void *entry);
/* The first range that ends at or after @key; n: none. */
size_t oracle_at(const struct oracle *oracle, uint64_t key);
void *oracle_load(const struct oracle *oracle, uint64_t key);
bool oracle_free(const struct oracle *oracle, uint64_t first, uint64_t last);
/* The range or the gap that @key is in. */
struct oracle_range oracle_range_of(const struct oracle *oracle, uint64_t key);
bool oracle_lowest(const struct oracle *oracle, uint64_t min, uint64_t max, uint64_t size,
                   uint64_t *first);
bool oracle_highest(const struct oracle *oracle, uint64_t min, uint64_t max, uint64_t size,
                    uint64_t *first);
void oracle_clear(struct oracle *oracle);

#endif
