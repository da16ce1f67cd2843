/*
 * bench/patterns/shapes.cc - in which order objects come and go
 *
 * Purpose: patterns of one order each: all then none, last first, every second, replaced at random,
 * a queue, a tree. Which sheaf, slab or page serves the next object depends on little else.
 * Place: see pattern.h.
 */
#include "pattern.h"

namespace patterns {
namespace {

constexpr const char *usual = "1,2,16";
constexpr size_t many = 500000, live = 300000, queued = 100000;

void grow(worker &w)
{
        for (size_t i = 0; i < w.entries; i++)
                w.table[i] = make(64);
        w.ops += w.entries;
        drop_table(w);
}

void lifo(worker &w)
{
        for (size_t i = 0; i < w.entries; i++)
                w.table[i] = make(48);
        w.ops += w.entries;
        for (size_t i = w.entries; i-- > 0; w.table[i] = nullptr)
                drop(w.table[i]);
}

void every_second(worker &w)
{
        for (size_t i = 0; i < w.entries; i++)
                w.table[i] = make(96);
        for (size_t i = 0; i < w.entries; i += 2)
                drop(w.table[i]);
        for (size_t i = 0; i < w.entries; i += 2)
                w.table[i] = make(96);
        w.ops += w.entries + (w.entries + 1) / 2;
        drop_table(w);
}

void fill_steady(worker &w)
{
        for (size_t i = 0; i < w.entries; i++)
                w.table[i] = make(16 + w.random.below(512));
}

void steady(worker &w)
{
        for (size_t n = w.share(600000); n > 0; n--)
                replace(w, w.any_entry(), 16 + w.random.below(512));
}

void fill_queue(worker &w)
{
        for (size_t i = 0; i < w.entries; i++)
                w.table[i] = make(128);
}

void queue(worker &w)
{
        for (size_t n = 0, whole_rounds = 10 * w.entries; n < whole_rounds; n++)
                replace(w, n % w.entries, 128);
}

void fill_queue_mixed(worker &w)
{
        for (size_t i = 0; i < w.entries; i++)
                w.table[i] = make(16 + w.random.below(2000));
}

void queue_mixed(worker &w)
{
        for (size_t n = 0, whole_rounds = 6 * w.entries; n < whole_rounds; n++)
                replace(w, n % w.entries, 16 + w.random.below(2000));
}

/* An unbalanced tree of nodes of 40 bytes: head, two children, key. */
struct node {
        uint64_t head[2];
        node *child[2];
        uint64_t key;
};

void drop_tree(node *top)
{
        if (!top)
                return;
        drop_tree(top->child[0]);
        drop_tree(top->child[1]);
        drop((char *)top);
}

void tree(worker &w)
{
        node *top = nullptr;
        for (size_t n = w.share(60000); n > 0; n--) {
                uint64_t key = w.random.next();
                node **at = &top;
                while (*at)
                        at = &(*at)->child[key > (*at)->key];
                /* Only the head is tested: what is behind it is the tree's. */
                *at = (node *)(void *)stamped(malloc(sizeof(node)), head_bytes);
                (*at)->child[0] = (*at)->child[1] = nullptr;
                (*at)->key = key;
                w.ops++;
        }
        drop_tree(top);
}

} // namespace

pattern_list shape_patterns()
{
        static constexpr pattern all[] = {
                {"grow", usual, many, nullptr, grow, nullptr,
                 "500,000 objects of 64 bytes, freed in the order they came"},
                {"lifo", usual, many, nullptr, lifo, nullptr,
                 "500,000 objects of 48 bytes, freed last first"},
                {"every_second", usual, many, nullptr, every_second, nullptr,
                 "500,000 of 96 bytes; every second is freed and allocated again"},
                {"steady", usual, live, fill_steady, steady, drop_table,
                 "300,000 of 16 to 527 bytes, replaced at random"},
                {"queue", usual, queued, fill_queue, queue, drop_table,
                 "a queue of 100,000 objects of 128 bytes"},
                {"queue_mixed", usual, queued, fill_queue_mixed, queue_mixed, drop_table,
                 "a queue of 100,000 objects of 16 to 2,015 bytes"},
                {"tree", usual, 0, nullptr, tree, nullptr,
                 "a binary tree of 60,000 nodes, built and freed"},
        };
        return {all, sizeof(all) / sizeof(*all)};
}

} // namespace patterns
