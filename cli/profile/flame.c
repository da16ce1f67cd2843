/*
 * Purpose: see flame.h. The outermost function is at the bottom. A box is as wide as its function's
 * share. Boxes stand in the order of their values, the largest on the left. What would be narrower
 * than half a pixel is not drawn.
 */
#include "cli/profile/flame.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "cli/profile/short_name.h"
#include "cli/text/table.h"

#define WIDTH     1200.0
#define MARGIN    10.0
#define ROW       18.0
#define HEAD      40.0
#define LETTER    6.6                   /* width of one, 11 px, about */
#define NARROWEST 0.5
#define COLOURS   9

struct drawing {
        FILE    *out;
        uint64_t total;
        unsigned depth;
        bool     bytes;
};

/* ---- the tree ---- */

static struct flame *child_of(struct flame *node, const char *name)
{
        struct flame **more, *child;

        for (size_t i = 0; i < node->count; i++)
                if (!strcmp(node->children[i]->name, name))
                        return node->children[i];
        more = realloc(node->children, (node->count + 1) * sizeof *more);
        if (!more)
                return NULL;
        node->children = more;
        child = calloc(1, sizeof *child);
        if (!child || !(child->name = strdup(name))) {
                free(child);
                return NULL;
        }
        return node->children[node->count++] = child;
}

bool flame_add(struct flame *root, const char *const *names, size_t count, uint64_t value)
{
        struct flame *node = root;

        root->value += value;
        for (size_t i = 0; i < count; i++) {
                node = child_of(node, names[i]);
                if (!node)
                        return false;
                node->value += value;
        }
        return true;
}

void flame_release(struct flame *root)
{
        for (size_t i = 0; i < root->count; i++) {
                flame_release(root->children[i]);
                free(root->children[i]->name);
                free(root->children[i]);
        }
        free(root->children);
        root->children = NULL;
        root->count = 0;
}

/* ---- the picture ---- */

static int larger_first(const void *a, const void *b)
{
        const struct flame *x = *(struct flame *const *)a, *y = *(struct flame *const *)b;

        if (x->value != y->value)
                return x->value < y->value ? 1 : -1;
        return strcmp(x->name, y->name);
}

static double width_of(const struct drawing *d, uint64_t value)
{
        return d->total ? (WIDTH - 2 * MARGIN) * (double)value / (double)d->total : 0;
}

static unsigned depth_of(const struct drawing *d, const struct flame *node)
{
        unsigned deepest = 0;

        if (width_of(d, node->value) < NARROWEST)
                return 0;
        for (size_t i = 0; i < node->count; i++) {
                unsigned depth = depth_of(d, node->children[i]);

                deepest = depth > deepest ? depth : deepest;
        }
        return deepest + 1;
}

/* At most @most characters, so that markup stays text. */
static void print_escaped(FILE *out, const char *text, size_t most)
{
        for (size_t i = 0; text[i] && i < most; i++) {
                switch (text[i]) {
                case '<':
                        fputs("&lt;", out);
                        break;
                case '>':
                        fputs("&gt;", out);
                        break;
                case '&':
                        fputs("&amp;", out);
                        break;
                case '"':
                        fputs("&quot;", out);
                        break;
                default:
                        fputc(text[i], out);
                }
        }
}

/* One of the warm colours of the style below, which a name always has. */
static unsigned colour_of(const char *name)
{
        uint32_t hash = 2166136261u;

        while (*name)
                hash = (hash ^ (unsigned char)*name++) * 16777619u;
        return hash % COLOURS;
}

/* By the reader's wish, light or dark. */
static void print_style(FILE *out)
{
        fputs("<style>\n.paper{fill:#fdfbf5}text{fill:#1d1712}\n", out);
        for (unsigned i = 0; i < COLOURS; i++)
                fprintf(out, ".c%u{fill:hsl(%u,75%%,70%%)}\n", i, 8 + 5 * i);
        fputs("@media (prefers-color-scheme:dark){.paper{fill:#15181c}text{fill:#f2ece6}\n", out);
        for (unsigned i = 0; i < COLOURS; i++)
                fprintf(out, ".c%u{fill:hsl(%u,42%%,34%%)}\n", i, 8 + 5 * i);
        fputs("}\n</style>\n", out);
}

static const char *value_text(const struct drawing *d, uint64_t value, char *text, size_t bytes)
{
        if (d->bytes)
                return bytes_text(value, text, bytes);
        snprintf(text, bytes, "%" PRIu64, value);
        return text;
}

static void draw_box(const struct drawing *d, const struct flame *node, double x, unsigned level)
{
        double width = width_of(d, node->value), y = HEAD + (d->depth - 1 - level) * ROW;
        size_t letters = width > 5 * LETTER ? (size_t)((width - 6) / LETTER) : 0;
        char text[64], name[256];

        fprintf(d->out, "<g><title>");
        print_escaped(d->out, node->name, SIZE_MAX);
        fprintf(d->out, ": %s, %.1f %%</title><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                "height=\"%.1f\" rx=\"2\" class=\"c%u\"/>",
                value_text(d, node->value, text, sizeof text),
                d->total ? 100.0 * (double)node->value / (double)d->total : 0, x, y,
                width > 1 ? width - 0.5 : width, ROW - 1, colour_of(node->name));
        if (letters) {
                bool cut;

                short_name(node->name, name, sizeof name);
                cut = strlen(name) > letters;
                fprintf(d->out, "<text x=\"%.1f\" y=\"%.1f\">", x + 3, y + 12.5);
                print_escaped(d->out, name, cut ? letters - 2 : letters);
                fputs(cut ? "..</text>" : "</text>", d->out);
        }
        fputs("</g>\n", d->out);
}

static void draw(const struct drawing *d, struct flame *node, double x, unsigned level)
{
        if (width_of(d, node->value) < NARROWEST)
                return;
        draw_box(d, node, x, level);
        if (node->count)
                qsort(node->children, node->count, sizeof *node->children, larger_first);
        for (size_t i = 0; i < node->count; i++) {
                draw(d, node->children[i], x, level + 1);
                x += width_of(d, node->children[i]->value);
        }
}

void flame_draw(struct flame *root, const char *title, bool unit_is_bytes, FILE *out)
{
        struct drawing d = { .out = out, .total = root->value, .bytes = unit_is_bytes };
        double height;

        d.depth = depth_of(&d, root);
        height = HEAD + (d.depth ? d.depth : 1) * ROW + MARGIN;
        fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
                "width=\"%.0f\" height=\"%.0f\" font-family=\"Verdana, DejaVu Sans, sans-serif\" "
                "font-size=\"11\">\n", WIDTH, height, WIDTH, height);
        print_style(out);
        fprintf(out, "<rect width=\"100%%\" height=\"100%%\" class=\"paper\"/>\n"
                "<text x=\"%.0f\" y=\"25\" font-size=\"16\">", MARGIN);
        print_escaped(out, title, SIZE_MAX);
        fputs("</text>\n", out);
        draw(&d, root, MARGIN, 0);
        fputs("</svg>\n", out);
}
