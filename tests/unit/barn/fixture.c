/*
 * The fakes below src/barn, and one cache's barns on them: for all tests of this folder.
 */
#include "unit/barn/fixture.h"
#include "pages/meta.h"
#include "pages/purge.h"
#include "report/report.h"
#include "base/inject.h"

/* ---- fakes ---- */

char     out[OBJECTS + 1];
size_t   can_fill;
unsigned fill_flags;
unsigned steps;
size_t   pages_taken = MANY_PAGES, pages_taken_elsewhere;
unsigned nodes = 1;
unsigned kept_given;
void   (*while_draining)(void);

size_t stook_slab_fill(struct stook_slabs *slabs, unsigned node, size_t n, void **objects,
                       unsigned flags)
{
        size_t got = 0;

        (void)slabs, (void)node;
        assert_int_equal(flags, fill_flags);
        for (uintptr_t o = 1; o <= OBJECTS && got < n && can_fill; o++)
                if (!out[o]) {
                        out[o] = 1;
                        objects[got++] = (void *)o;
                        can_fill--;
                }
        return got;
}

void stook_pages_step(void)
{
        steps++;
}

size_t stook_pages_taken(unsigned node)
{
        return node ? pages_taken_elsewhere : pages_taken;
}

void stook_slabs_give_kept(struct stook_slabs *slabs, unsigned node)
{
        (void)slabs, (void)node;
        kept_given++;
}

void stook_slab_drain(struct stook_slabs *slabs, size_t n, void *const *objects)
{
        (void)slabs;
        for (size_t i = 0; i < n; i++) {
                uintptr_t o = (uintptr_t)objects[i];

                assert_in_range(o, 1, OBJECTS);
                assert_true(out[o]);
                out[o] = 0;
        }
        if (while_draining)
                while_draining();
}

void *stook_meta_bump(size_t bytes, size_t align)
{
        void *p = aligned_alloc(align > 64 ? align : 64, (bytes + 63) & ~(size_t)63);

        memset(p, 0, (bytes + 63) & ~(size_t)63);
        return p;
}

void (*stook_stats_page_hook)(void);
size_t stook_os_page_bytes(void) { return 4096; }
unsigned stook_os_node_count(void) { return nodes; }
unsigned stook_os_node_home(unsigned node) { return node; }
bool stook_os_node_has_memory(unsigned node) { return node == 0; }
void stook_report_impossible(const char *label) { fail_msg("%s", label); abort(); }

void stook_os_futex_wait(uint32_t *word, uint32_t value, uint64_t ns)
{
        (void)word, (void)value, (void)ns;
}

/* ---- one cache's barns ---- */

struct fake_cache *make(unsigned index, unsigned capacity, unsigned full, unsigned empty)
{
        struct fake_cache *c = stook_meta_bump(sizeof(*c), 64);

        c->counters.far = c->far;
        c->slabs.counters = &c->counters;
        c->slabs.cache_index = (uint16_t)index;
        c->slabs.stride = 64;
        assert_int_equal(stook_barns_init(&c->barns, &c->slabs, capacity, full, empty), 0);
        return c;
}

struct stook_sheaf *filled(struct fake_cache *c)
{
        return stook_barn_refill(&c->barns, 0, NULL, UINT_MAX);
}

size_t objects_out(void)
{
        size_t n = 0;

        for (size_t o = 1; o <= OBJECTS; o++)
                n += out[o] != 0;
        return n;
}

int setup(void **state)
{
        (void)state;
        memset(out, 0, sizeof(out));
        can_fill = OBJECTS;
        fill_flags = STOOK_FILL_FOR_SHEAF;
        stook_barn_set_budget(STOOK_BARN_NODE_BYTES);
        stook_inject.sheaf_fail_every = 0;
        while_draining = NULL;
        return 0;
}

void expect_nothing_left(struct fake_cache *c)
{
        struct stook_sheaf_sums sums;

        stook_barn_empty_all(&c->barns);
        stook_sheaf_sum(c->slabs.cache_index, &sums);
        assert_int_equal(sums.sheaves, 0);
        assert_int_equal(objects_out(), 0);
        assert_int_equal(stook_barn_booked_bytes(0), 0);
        assert_int_equal(stook_counted(&c->counters, STOOK_STAT_sheaf_alloc),
                         stook_counted(&c->counters, STOOK_STAT_sheaf_free));
        assert_int_equal(stook_counted(&c->counters, STOOK_STAT_sheaf_refill),
                         stook_counted(&c->counters, STOOK_STAT_sheaf_flush));
}

struct fake_cache *make_few(unsigned index, unsigned capacity, uint32_t stride)
{
        struct fake_cache *c = make(index, capacity, 10, 10);

        c->slabs.stride = stride;
        stook_barns_let_grow(&c->barns);
        return c;
}

void get_from_barn(struct fake_cache *c)
{
        stook_count(&c->counters, STOOK_STAT_barn_get, 1);
        stook_barns_decide(&c->barns);
}

void flush(struct fake_cache *c)
{
        unsigned capacity = stook_barns_capacity(&c->barns);

        stook_count(&c->counters, capacity ? STOOK_STAT_barn_put_fail : STOOK_STAT_free_slowpath,
                    1);
        stook_barns_decide(&c->barns);
}

void refill(struct fake_cache *c)
{
        unsigned capacity = stook_barns_capacity(&c->barns);

        stook_count(&c->counters, capacity ? STOOK_STAT_barn_get_fail : STOOK_STAT_alloc_slowpath,
                    1);
        stook_barns_decide(&c->barns);
}

/* As many as make sheaves of few objects grow by a step: barn_room.c. */
static int swings_to_grow(struct fake_cache *c)
{
        return stook_barns_capacity(&c->barns) < 4 ? 16 : 64;
}

void swing_in_slots(struct fake_cache *c)
{
        for (int left = swings_to_grow(c); left; left--)
                get_from_barn(c);
}

void swing_in_slabs(struct fake_cache *c)
{
        int swings = swings_to_grow(c);

        for (int left = swings; left; left--)
                flush(c);
        for (int left = swings; left; left--)
                refill(c);
}
