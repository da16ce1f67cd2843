/*
 * Purpose: when huge pages are asked for, see huge.h.
 */
#include "base/thread.h"
#include "os/os.h"
#include "policy/constants.h"
#include "policy/ledger.h"
#include "process/checker.h"

/* Of what large objects get huge, or have in vain, so much tells. */
#define ONE_IN     8
#define LOOKS      32                   /* pages looked at */
/*
 * Words of a page that are looked at: many, because an object may be written at its beginning
 * alone; and not in order, so that few hit the same object. A page that was not written takes some
 * 4 us.
 */
#define WORDS      32
#define WORD_STEP  13                   /* odd: all of them are reached */
#define TOLD_MOST  ((size_t)2 << 20)    /* of memory that fills slowly */
#define PAGES_BITS 28                   /* of stook_density.told: pages; above: page number */

uint32_t stook_huge_asked;

static uintptr_t start_of(uint64_t told)
{
        return (told >> PAGES_BITS) * stook_os_page_bytes();
}

static size_t bytes_of(uint64_t told)
{
        return (told & ((UINT64_C(1) << PAGES_BITS) - 1)) * stook_os_page_bytes();
}

static uint32_t self(void)
{
        return (uint32_t)((uintptr_t)stook_self / sizeof(*stook_self));
}

void stook_density_tell(struct stook_density *density, uintptr_t start, size_t bytes)
{
        size_t page = stook_os_page_bytes();

        if (bytes / page >> PAGES_BITS)
                return;
        __atomic_store_n(&density->since, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&density->teller, self(), __ATOMIC_RELAXED);
        __atomic_store_n(&density->told_ms, (uint32_t)stook_os_clock_ms(), __ATOMIC_RELAXED);
        __atomic_store_n(&density->told, (uint64_t)(start / page) << PAGES_BITS | bytes / page,
                         __ATOMIC_RELAXED);
}

void stook_density_tell_more(struct stook_density *density, uintptr_t start, size_t bytes)
{
        uint64_t told = __atomic_load_n(&density->told, __ATOMIC_RELAXED);
        size_t have = told ? bytes_of(told) : 0;

        if (!have)
                stook_density_tell(density, start, bytes < TOLD_MOST ? bytes : TOLD_MOST);
        else if (start_of(told) + have == start && have + bytes <= TOLD_MOST)
                stook_density_tell(density, start_of(told), have + bytes);
        else
                __atomic_fetch_add(&density->since, bytes, __ATOMIC_RELAXED);
}

void stook_density_forget(struct stook_density *density, uintptr_t start, size_t bytes)
{
        uint64_t told = __atomic_load_n(&density->told, __ATOMIC_RELAXED);

        if (told && start_of(told) < start + bytes && start < start_of(told) + bytes_of(told))
                __atomic_store_n(&density->told, 0, __ATOMIC_RELAXED);
}

/*
 * Some pages that were written are all zero: then less is found dense. (mincore would tell which
 * are resident, but filters of system calls may kill for it.)
 */
static bool is_written(uintptr_t page)
{
        size_t step = stook_os_page_bytes() / WORDS;

        for (unsigned i = 0; i < WORDS; i++)
                if (stook_os_word_is_set((uint32_t *)(page + i * WORD_STEP % WORDS * step)))
                        return true;
        return false;
}

/*
 * A number for each look. Multiples of one number would do, but for some sizes of objects all of
 * those fall into the same part of them.
 */
static uint32_t scatter(uint32_t i)
{
        i *= 0x9e3779b9u;
        return (i ^ i >> 15) * 0x85ebca6bu;
}

/* Under a memory checker the words may be closed (checker.h I1): nothing is dense there. */
bool stook_density_is_dense(uintptr_t start, size_t bytes)
{
        size_t page = stook_os_page_bytes(), pages = bytes / page;
        unsigned used = 0;

        if (stook_checker_is_on())
                return false;
        for (uint32_t i = 1; i <= LOOKS; i++) {
                uint64_t at = (uint64_t)scatter(i) * pages >> 32;

                used += is_written(start + at * page);
                if (used + LOOKS - i < STOOK_WRITTEN_PAGES)
                        return false;
        }
        return true;
}

/*
 * A look at what was not written takes over a hundred system calls. So a program that allocates and
 * frees such objects has one for a part of them: once in vain, the next give is looked at, and then
 * one in so many. Large objects have no other use for `since`.
 */
void stook_density_look_at(struct stook_density *density, uintptr_t start, size_t bytes)
{
        bool vain = stook_density_found(density) == STOOK_SPARSE;

        if (vain && __atomic_fetch_add(&density->since, 1, __ATOMIC_RELAXED) % ONE_IN)
                return;
        vain = !stook_density_is_dense(start, bytes);
        __atomic_store_n(&density->found, vain ? STOOK_SPARSE : STOOK_DENSE, __ATOMIC_RELAXED);
}

/* Another thread got what is told, a short time ago: it may not have come to its end. */
static bool may_be_written_now(const struct stook_density *density)
{
        uint32_t since = __atomic_load_n(&density->told_ms, __ATOMIC_RELAXED);

        return __atomic_load_n(&density->teller, __ATOMIC_RELAXED) != self() &&
               (uint32_t)stook_os_clock_ms() - since < STOOK_DECAY_MS / 10;
}

void stook_density_look(struct stook_density *density, size_t after)
{
        uint64_t told = __atomic_load_n(&density->told, __ATOMIC_RELAXED);

        if (!told ||
            __atomic_load_n(&density->since, __ATOMIC_RELAXED) < after ||
            !(told = __atomic_exchange_n(&density->told, 0, __ATOMIC_RELAXED)))
                return;
        if (stook_density_is_dense(start_of(told), bytes_of(told)))
                __atomic_store_n(&density->found, STOOK_DENSE, __ATOMIC_RELAXED);
        else if (after || !may_be_written_now(density))
                __atomic_store_n(&density->found, STOOK_SPARSE, __ATOMIC_RELAXED);
}

/* ---- the decision ---- */

/* So much in use is worth huge pages. stook_huge_pays looks at memory from half of it on. */
static size_t used_least(enum stook_density_kind kind)
{
        return kind == STOOK_DENSITY_LARGE ? STOOK_HUGE_FROM / 4 : STOOK_HUGE_FROM;
}

bool stook_huge_is_large(const struct stook_ledger *ledger, enum stook_density_kind kind)
{
        return stook_ledger_used(ledger) >= used_least(kind);
}

static void look(struct stook_ledger *ledger, enum stook_density_kind kind)
{
        struct stook_density *density = &ledger->density[kind];
        bool vain = stook_density_found(density) == STOOK_SPARSE;

        stook_density_look(density, kind == STOOK_DENSITY_LARGE ? 0
                                    : STOOK_HUGE_FROM / (vain ? 4 : 8));
}

bool stook_huge_pays_again(struct stook_ledger *ledger, enum stook_density_kind kind)
{
        if (kind == STOOK_DENSITY_NONE)
                return false;
        look(ledger, kind);
        return stook_density_found(&ledger->density[kind]) == STOOK_DENSE;
}

bool stook_huge_pays(struct stook_ledger *ledger, size_t bytes)
{
        enum stook_density_kind kind = stook_density_kind_of(bytes);
        size_t least = used_least(kind);

        least -= kind == STOOK_DENSITY_LARGE ? bytes < least ? bytes : least : 0;
        return stook_ledger_used(ledger) >= least / 2 && stook_huge_pays_again(ledger, kind) &&
               stook_ledger_used(ledger) >= least;
}

bool stook_huge_regrows(const struct stook_ledger *ledger, enum stook_density_kind kind)
{
        return kind != STOOK_DENSITY_NONE &&
               (stook_huge_is_large(ledger, kind) ||
                stook_ledger_refaults(ledger) >= used_least(STOOK_DENSITY_LARGE));
}

/*
 * What large objects get in small pages will tell whether it was written, and a part of what comes
 * huge. All of it would tell too early: some is still free when the next comes.
 */
void stook_huge_tell(struct stook_ledger *ledger, enum stook_density_kind kind, uintptr_t start,
                     size_t bytes, bool huge)
{
        if (kind == STOOK_DENSITY_LARGE) {
                if (!huge ||
                    __atomic_add_fetch(&ledger->huge_large, 1, __ATOMIC_RELAXED) % ONE_IN == 0)
                        stook_density_tell(&ledger->density[kind], start, bytes);
        } else if (kind == STOOK_DENSITY_SMALL &&
                   stook_ledger_used(ledger) >= STOOK_HUGE_FROM / 4) {
                stook_density_tell_more(&ledger->density[kind], start, bytes);
        }
}

/*
 * Of what the heap grew by for a large object only the object's own part is looked at later: the
 * rest may lie free then. If the growth is only the end of the object, it is looked at only where
 * it is half of the object or more. The last 32nd of an object may never be written, because its
 * size was rounded up.
 */
void stook_huge_tell_grown(struct stook_ledger *ledger, size_t need, size_t request,
                           uintptr_t start, size_t bytes, bool huge)
{
        enum stook_density_kind kind = stook_density_kind_of(request);

        if (kind != STOOK_DENSITY_LARGE)
                stook_huge_tell(ledger, kind, start, bytes, huge);
        else if (need >= request / 2)
                stook_huge_tell(ledger, kind, start, need, huge);
}
