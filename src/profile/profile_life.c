/*
 * Purpose: see profile.h: sums of the lives of sampled objects.
 * Peaks and marks are numbers, not copies. A bucket that is about to change saves what it has in
 * use, unless it has saved that under the number that holds (copy on write): O(1) for a peak, and
 * for a change. A peak is a new one if it exceeds the last by a 64th, so that there are few.
 * Concurrency: a word of the bucket is the claim of the thread that saves, and that counts in the
 *  bucket's windows. It is only tried: whoever does not get it goes on without. A claim older than
 *  a second is void, for its thread may have jumped out, or be none of a forked child's.
 *  M1: the claim's release pairs with its acquire: the next holder finds what was saved.
 *  M2: a number's release, after the sums that made the peak, pairs with its acquire.
 */
#include <string.h>

#include "os/os.h"
#include "profile/profile.h"

#define CLAIM_NS   1000000000
#define PEAK_SHARE 64

/* ---- what a life counts ---- */

static uint64_t bits_of(double value)
{
        uint64_t bits;

        memcpy(&bits, &value, sizeof bits);
        return bits;
}

static double double_of(uint64_t bits)
{
        double value;

        memcpy(&value, &bits, sizeof value);
        return value;
}

static struct stook_profile_sums sums_of(const struct stook_profile_life *life)
{
        double w = life->weight, bytes = (double)life->bytes, part = 1 << STOOK_PROFILE_PART_BITS;
        double variance = w * (w - 1);

        return (struct stook_profile_sums){
                .objects = (uint64_t)(w * part + 0.5),
                .bytes = (uint64_t)(w * bytes * part + 0.5),
                .samples = 1,
                .objects_variance = bits_of(variance),
                .bytes_variance = bits_of(variance * bytes * bytes),
        };
}

/* Doubles by their bits. */
static void add_double(uint64_t *to, uint64_t bits)
{
        uint64_t old = __atomic_load_n(to, __ATOMIC_RELAXED);

        if (!double_of(bits))
                return;
        while (!__atomic_compare_exchange_n(to, &old, bits_of(double_of(old) + double_of(bits)),
                                            true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
                ;
}

static void add(struct stook_profile_sums *to, const struct stook_profile_sums *parts)
{
        __atomic_fetch_add(&to->objects, parts->objects, __ATOMIC_RELAXED);
        __atomic_fetch_add(&to->bytes, parts->bytes, __ATOMIC_RELAXED);
        __atomic_fetch_add(&to->samples, 1, __ATOMIC_RELAXED);
        add_double(&to->objects_variance, parts->objects_variance);
        add_double(&to->bytes_variance, parts->bytes_variance);
}

/* ---- under the claim ---- */

static bool claim(struct stook_profile_bucket *bucket, uint64_t now)
{
        uint64_t since = __atomic_load_n(&bucket->claim, __ATOMIC_RELAXED);

        /* Another thread may have read its clock later. */
        if (since && (int64_t)(now - since) < CLAIM_NS)
                return false;
        return __atomic_compare_exchange_n(&bucket->claim, &since, now | 1, false,
                                           __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static void copy(uint64_t *to, uint64_t from)
{
        __atomic_store_n(to, from, __ATOMIC_RELAXED);
}

static uint64_t value(const uint64_t *of)
{
        return __atomic_load_n(of, __ATOMIC_RELAXED);
}

/* Of a reader that finds the new number with the old values, one sample's time was wrong. */
static void save(struct stook_profile_saved *saved, const struct stook_profile_bucket *bucket,
                 const uint64_t *number)
{
        uint64_t now = __atomic_load_n(number, __ATOMIC_ACQUIRE);       /* M2 */
        const struct stook_profile_sums *a = &bucket->allocated, *f = &bucket->freed;

        if (__atomic_load_n(&saved->number, __ATOMIC_RELAXED) == now)
                return;
#define GET(field) __atomic_load_n(&field, __ATOMIC_RELAXED)
        copy(&saved->in_use.objects, GET(a->objects) - GET(f->objects));
        copy(&saved->in_use.bytes, GET(a->bytes) - GET(f->bytes));
        copy(&saved->in_use.samples, GET(a->samples) - GET(f->samples));
        copy(&saved->in_use.objects_variance,
             bits_of(double_of(GET(a->objects_variance)) - double_of(GET(f->objects_variance))));
        copy(&saved->in_use.bytes_variance,
             bits_of(double_of(GET(a->bytes_variance)) - double_of(GET(f->bytes_variance))));
#undef GET
        __atomic_store_n(&saved->number, now, __ATOMIC_RELEASE);
}

/* Windows of twice the width. */
static void widen(uint64_t windows[STOOK_PROFILE_WINDOWS])
{
        for (unsigned i = 0; i < STOOK_PROFILE_WINDOWS; i++)
                copy(&windows[i], i < STOOK_PROFILE_WINDOWS / 2
                                          ? value(&windows[2 * i]) + value(&windows[2 * i + 1])
                                          : 0);
}

static void widen_to(struct stook_profile_windows *w, uint64_t time)
{
        uint64_t shift = value(&w->shift);

        while (time >> (STOOK_PROFILE_WINDOW_BITS + shift) >= STOOK_PROFILE_WINDOWS) {
                widen(w->born);
                widen(w->died);
                widen(w->gone);
                copy(&w->shift, ++shift);
        }
}

/* A thread may not know yet when the first session started: 0. */
static uint64_t time_of(uint64_t ns)
{
        uint64_t started = value(&stook_profile.started);

        return started && ns > started ? ns - started : 0;
}

static uint64_t *window_of(const struct stook_profile_windows *w, uint64_t *windows, uint64_t time)
{
        uint64_t i = time >> (STOOK_PROFILE_WINDOW_BITS + value(&w->shift));

        return &windows[i < STOOK_PROFILE_WINDOWS ? i : STOOK_PROFILE_WINDOWS - 1];
}

static void raise_by(uint64_t *window, uint64_t parts)
{
        __atomic_fetch_add(window, parts, __ATOMIC_RELAXED);
}

/* Before @bucket changes at @now. @born: 0, or of the life that ends. */
static void prepare(struct stook_profile_bucket *bucket, uint64_t parts, uint64_t now,
                    uint64_t born)
{
        struct stook_profile_windows *w = &bucket->windows;

        if (!claim(bucket, now))
                return;
        save(&bucket->peak, bucket, &stook_profile.peak_number);
        save(&bucket->mark, bucket, &stook_profile.mark_number);
        widen_to(w, time_of(now));
        if (born) {
                raise_by(window_of(w, w->died, time_of(now)), parts);
                raise_by(window_of(w, w->gone, time_of(born)), parts);
        } else {
                raise_by(window_of(w, w->born, time_of(now)), parts);
        }
        __atomic_store_n(&bucket->claim, 0, __ATOMIC_RELEASE);          /* M1 */
}

/* ---- the whole ---- */

static void note_peak(uint64_t in_use, uint64_t now)
{
        uint64_t last = __atomic_load_n(&stook_profile.peak_bytes, __ATOMIC_RELAXED);

        while (in_use > last + last / PEAK_SHARE) {
                if (!__atomic_compare_exchange_n(&stook_profile.peak_bytes, &last, in_use, false,
                                                 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
                        continue;
                copy(&stook_profile.peak_at, now);
                __atomic_fetch_add(&stook_profile.peak_number, 1, __ATOMIC_RELEASE);    /* M2 */
                break;
        }
}

bool stook_profile_begin(struct stook_profile_life *life)
{
        struct stook_profile_sums parts = sums_of(life);

        life->bucket = stook_profile_bucket(life->stack);
        if (!life->bucket) {
                stook_profile_count_lost();
                return false;
        }
        prepare(life->bucket, parts.bytes, life->born, 0);
        add(&life->bucket->allocated, &parts);
        note_peak(__atomic_add_fetch(&stook_profile.in_use, parts.bytes, __ATOMIC_RELAXED),
                  life->born);
        return true;
}

void stook_profile_end(const struct stook_profile_life *life, uint32_t stack, uint32_t thread,
                       uint64_t died)
{
        struct stook_profile_sums parts = sums_of(life);

        prepare(life->bucket, parts.bytes, died, life->born);
        add(&life->bucket->freed, &parts);
        __atomic_fetch_sub(&stook_profile.in_use, parts.bytes, __ATOMIC_RELAXED);
        if (stook_profile_has_lifetimes())
                stook_profile_add_pair(life, parts, stack, life->thread && thread != life->thread,
                                       died > life->born ? died - life->born : 0);
}

void stook_profile_mark_growth(void)
{
        copy(&stook_profile.mark_at, stook_os_clock_ns());
        __atomic_fetch_add(&stook_profile.mark_number, 1, __ATOMIC_RELEASE);            /* M2 */
}
