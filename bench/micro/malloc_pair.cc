/*
 * bench/micro/malloc_pair.cc - malloc and free of whatever is preloaded
 *
 * Purpose: pairs and batches of one size and of mixed sizes, with nothing else alive and on top of
 * a live set of 64 MiB. One hot size decides little: the mixes and the live set are the figure,
 * too.
 * Place: figure "drop-in malloc+free pair"; run by bench/run.py once for each preloaded allocator
 * and round.
 * Compiled with -fno-builtin-malloc, or the compiler drops the pair.
 */
#include "../harness/slices.h"

static constexpr size_t sizes_count = 4096;
static uint16_t mixed[sizes_count];
static uint16_t live_sizes[1 << 20];
static void *live[1 << 20];
static size_t live_count, live_bytes;

static bench::slices::memory held()
{
        double resident = (double)bench::resident_kib();
        return {{"resident_KiB", resident}, {"held_KiB", resident - (double)live_bytes / 1024}};
}

static void make_live()
{
        bench::rng r(7);
        while (live_bytes < (size_t)64 << 20 && live_count < sizeof(live) / sizeof(live[0])) {
                live_sizes[live_count] = (uint16_t)bench::mixed_size(r);
                live[live_count] = malloc(live_sizes[live_count]);
                memset(live[live_count], 1, live_sizes[live_count]);
                live_bytes += live_sizes[live_count++];
        }
}

static bench::slices::memory free_live()
{
        bench::slices::memory found = held();
        for (; live_count > 0; live_count--)
                free(live[live_count - 1]);
        live_bytes = 0;
        return found;
}

static void pair(size_t size, size_t n)
{
        for (; n > 0; n--) {
                void *object = malloc(size);
                bench::keep(object);
                free(object);
        }
}

/* 64 objects, then all freed in the same order. */
static void batches(size_t size, size_t n)
{
        void *object[64];
        for (; n > 0; n -= 64) {
                for (void *&p : object)
                        p = malloc(size);
                for (void *p : object)
                        free(p);
        }
}

static void pair_mix(size_t n)
{
        for (; n > 0; n--) {
                void *object = malloc(mixed[n % sizes_count]);
                bench::keep(object);
                free(object);
        }
}

static void batches_mix(size_t n)
{
        void *object[64];
        for (; n > 0; n -= 64) {
                for (size_t i = 0; i < 64; i++) {
                        object[i] = malloc(mixed[(n + i) % sizes_count]);
                        *(volatile char *)object[i] = 1;
                }
                for (void *p : object)
                        free(p);
        }
}

/* One of the objects alive is freed at random; another of another size takes its place, and its
   first byte is written. */
static void replace_live(size_t n)
{
        static bench::rng r(7);
        for (; n > 0; n--) {
                uint32_t at = r.below((uint32_t)live_count);
                uint16_t size = mixed[n % sizes_count];
                free(live[at]);
                live[at] = malloc(size);
                *(volatile char *)live[at] = 1;
                live_bytes += (size_t)size - live_sizes[at];
                live_sizes[at] = size;
        }
}

int main(int argc, char **argv)
{
        bench::slices all;
        bench::rng r(1);

        bench::pin_to(0);
        for (uint16_t &size : mixed)
                size = (uint16_t)bench::mixed_size(r);
        for (size_t size : {16, 64, 512, 4096, 40000, 65536})
                all.add("pair/" + std::to_string(size), 1,
                        [size](size_t n) { pair(size, n); }, {{}, held});
        for (size_t size : {64, 512})
                all.add("batch64/" + std::to_string(size), 64,
                        [size](size_t n) { batches(size, n); }, {{}, held});
        all.add("pair_mix", 1, pair_mix, {{}, held});
        all.add("batch64_mix", 64, batches_mix, {{}, held});
        all.add("live_64MiB", 1, replace_live, {make_live, free_live});
        return all.run(argc, argv);
}
