/*
 * Purpose: what a bucket had allocated, in use, at the peak, and since the mark. Readers outside of
 * the process use it, too, on copies of what they have read.
 * Concurrency: the words are read one by one: the later ones may be newer.
 */
#include <string.h>

#include "profile/profile.h"

static uint64_t get(const uint64_t *word)
{
        return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static double double_at(const uint64_t *word)
{
        uint64_t bits = get(word);
        double value;

        memcpy(&value, &bits, sizeof value);
        return value;
}

static int64_t whole(uint64_t parts)
{
        return ((int64_t)parts + (1 << STOOK_PROFILE_PART_BITS) / 2) >> STOOK_PROFILE_PART_BITS;
}

static double or_0(double variance)
{
        return variance > 0 ? variance : 0;
}

/* Taken off is what is read first, so that a difference below 0 is seldom. */
static struct stook_profile_value difference(const struct stook_profile_sums *all,
                                             const struct stook_profile_sums *less)
{
        static const struct stook_profile_sums nothing;
        uint64_t objects, bytes, samples;

        less = less ? less : &nothing;
        objects = get(&less->objects);
        bytes = get(&less->bytes);
        samples = get(&less->samples);
        return (struct stook_profile_value){
                .objects = whole(get(&all->objects) - objects),
                .bytes = whole(get(&all->bytes) - bytes),
                .samples = get(&all->samples) - samples,
                .objects_variance = or_0(double_at(&all->objects_variance) -
                                         double_at(&less->objects_variance)),
                .bytes_variance = or_0(double_at(&all->bytes_variance) -
                                       double_at(&less->bytes_variance)),
        };
}

static struct stook_profile_value at_least_0(struct stook_profile_value value)
{
        if (value.objects < 0)
                value.objects = 0;
        if (value.bytes < 0)
                value.bytes = 0;
        return value;
}

/* What was in use when @number began. */
static struct stook_profile_value then(const struct stook_profile_saved *saved, uint64_t number,
                                       struct stook_profile_value now)
{
        if (__atomic_load_n(&saved->number, __ATOMIC_ACQUIRE) != number)
                return now;
        return at_least_0(difference(&saved->in_use, NULL));
}

void stook_profile_values(const struct stook_profile_state *state,
                          const struct stook_profile_bucket *bucket,
                          struct stook_profile_value values[STOOK_PROFILE_KINDS])
{
        uint64_t peak = get(&state->peak_number), mark = get(&state->mark_number);
        struct stook_profile_value now, before = { 0 };

        values[STOOK_PROFILE_ALLOC] = difference(&bucket->allocated, NULL);
        now = at_least_0(difference(&bucket->allocated, &bucket->freed));
        values[STOOK_PROFILE_INUSE] = now;
        values[STOOK_PROFILE_PEAK] = then(&bucket->peak, peak, now);
        if (mark)
                before = then(&bucket->mark, mark, now);
        values[STOOK_PROFILE_GROWTH] = (struct stook_profile_value){
                .objects = now.objects - before.objects,
                .bytes = now.bytes - before.bytes,
                .samples = now.samples + before.samples,
                .objects_variance = now.objects_variance + before.objects_variance,
                .bytes_variance = now.bytes_variance + before.bytes_variance,
        };
}
