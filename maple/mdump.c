/*
 * Purpose: prints a tree, as indented text or as a graph for Graphviz; and a cursor.
 *
 * Place: for people. The tree's lock is held while the tree is printed.
 */
#include <errno.h>
#include <inttypes.h>
#include <stook/sheaf.h>
#include "mtree.h"

struct dump {
        const struct stook_maple *tree;
        FILE *stream;
        bool  dot;
};

static void put_range(struct dump *dump, uint64_t first, uint64_t last)
{
        if (first == last)
                fprintf(dump->stream, "%" PRIu64, first);
        else if (last == UINT64_MAX)
                fprintf(dump->stream, "%" PRIu64 "-max", first);
        else
                fprintf(dump->stream, "%" PRIu64 "-%" PRIu64, first, last);
}

static void put_entry(struct dump *dump, const void *entry)
{
        if (entry == STOOK_MAPLE_PLACEHOLDER)
                fputs("placeholder", dump->stream);
        else if (entry)
                fprintf(dump->stream, "%p", entry);
        else
                fputs("gap", dump->stream);
}

static void put_text(struct dump *dump, struct mnode *node, unsigned level, unsigned depth,
                     uint64_t min, uint64_t max)
{
        enum mnode_kind kind = mtree_kind(dump->tree, level);
        unsigned count = mnode_count(node);

        fprintf(dump->stream, "%*s%s ", (int)depth * 2, "", level ? "node" : "leaf");
        put_range(dump, min, max);
        fprintf(dump->stream, " at %p: %u of %u\n", (void *)node, count, mnode_shape(kind).entries);
        for (unsigned i = 0; i < count; i++) {
                uint64_t first = mnode_first(node, i, min), last = mnode_last(node, kind, i, max);

                if (level) {
                        if (kind == MNODE_INNER_GAPS)
                                fprintf(dump->stream, "%*slargest gap %" PRIu64 "\n",
                                        (int)depth * 2 + 2, "",
                                        node->gaps.gap[i]);
                        put_text(dump, mnode_entries(node, kind)[i], level - 1, depth + 1, first,
                                 last);
                } else {
                        fprintf(dump->stream, "%*s", (int)depth * 2 + 2, "");
                        put_range(dump, first, last);
                        fputs(": ", dump->stream);
                        put_entry(dump, node->wide.entry[i]);
                        fputc('\n', dump->stream);
                }
        }
}

static void put_dot(struct dump *dump, struct mnode *node, unsigned level, uint64_t min,
                    uint64_t max)
{
        enum mnode_kind kind = mtree_kind(dump->tree, level);
        unsigned count = mnode_count(node);

        fprintf(dump->stream, "  n%p [label=\"{", (void *)node);
        put_range(dump, min, max);
        fputs("|{", dump->stream);
        for (unsigned i = 0; i < count; i++) {
                fprintf(dump->stream, "%s<s%u> ", i ? "|" : "", i);
                put_range(dump, mnode_first(node, i, min), mnode_last(node, kind, i, max));
                fputs("\\n", dump->stream);
                if (!level)
                        put_entry(dump, node->wide.entry[i]);
                else if (kind == MNODE_INNER_GAPS)
                        fprintf(dump->stream, "gap %" PRIu64, node->gaps.gap[i]);
        }
        fputs("}}\"];\n", dump->stream);
        for (unsigned i = 0; level && i < count; i++) {
                struct mnode *child = mnode_entries(node, kind)[i];

                fprintf(dump->stream, "  n%p:s%u -> n%p;\n", (void *)node, i, (void *)child);
                put_dot(dump, child, level - 1, mnode_first(node, i, min),
                        mnode_last(node, kind, i, max));
        }
}

/* A tree without a node. */
static void put_word(struct dump *dump, uintptr_t root)
{
        if (dump->dot)
                fputs("  root [label=\"", dump->stream);
        if (root) {
                fputs("0: ", dump->stream);
                put_entry(dump, (void *)root);
        } else {
                fputs("empty", dump->stream);
        }
        fputs(dump->dot ? "\"];\n" : "\n", dump->stream);
}

STOOK_PUBLIC int stook_maple_dump(struct stook_maple *tree, FILE *stream,
                                  enum stook_maple_format format)
{
        struct dump dump = { tree, stream, format == STOOK_MAPLE_DOT };
        uintptr_t root;
        bool entered;

        if (format != STOOK_MAPLE_TEXT && format != STOOK_MAPLE_DOT)
                return -EINVAL;
        entered = stook_mtree_enter(tree);
        root = mtree_root(tree);
        if (dump.dot)
                fputs("digraph maple {\n  node [shape=record, fontname=monospace];\n", stream);
        if (!mroot_is_node(root))
                put_word(&dump, root);
        else if (dump.dot)
                put_dot(&dump, mroot_node(root), mroot_height(root) - 1, 0, UINT64_MAX);
        else
                put_text(&dump, mroot_node(root), mroot_height(root) - 1, 0, 0, UINT64_MAX);
        if (dump.dot)
                fputs("}\n", stream);
        stook_mtree_leave(tree, entered);
        return ferror(stream) ? -EIO : 0;
}

static const char *name_of(unsigned status)
{
        static const char *const names[] = {
                [STOOK_MAPLE_CURSOR_START] = "start",
                [STOOK_MAPLE_CURSOR_ACTIVE] = "active",
                [STOOK_MAPLE_CURSOR_ROOT] = "root",
                [STOOK_MAPLE_CURSOR_NONE] = "none",
                [STOOK_MAPLE_CURSOR_PAUSE] = "pause",
                [STOOK_MAPLE_CURSOR_OVERFLOW] = "overflow",
                [STOOK_MAPLE_CURSOR_UNDERFLOW] = "underflow",
                [STOOK_MAPLE_CURSOR_ERROR] = "error",
        };

        return status < sizeof(names) / sizeof(*names) ? names[status] : "unknown";
}

/* Nothing of the leaf is read: it may be gone. */
STOOK_PUBLIC int stook_maple_cursor_dump(const struct stook_maple_cursor *cursor, FILE *stream)
{
        struct dump dump = { cursor->tree, stream, false };
        size_t in_sheaf = cursor->sheaf ? stook_sheaf_available(cursor->sheaf) : 0;

        fprintf(stream, "cursor in tree %p: %s, range ", (void *)cursor->tree,
                name_of(cursor->status));
        put_range(&dump, cursor->first, cursor->last);
        if (cursor->node) {
                fputs("; leaf ", stream);
                put_range(&dump, cursor->min, cursor->max);
                fprintf(stream, " at %p, entry %u%s", (void *)cursor->node, cursor->index,
                        mtree_same_version(cursor->tree, cursor->version) ? "" : ", overtaken");
        }
        fprintf(stream, "; nodes held: %zu preallocated, %" PRIu64 " expected\n",
                in_sheaf + !!cursor->spare_node, cursor->expected_left);
        return ferror(stream) ? -EIO : 0;
}
