/*
 * bench/micro/object_pair.cc - objects of 64 bytes, the way a program that cares would get them
 *
 * Purpose: the cost of one allocation and one free, alone and in batches, for the contender
 * compiled in (contender.h). One process holds one contender; bench/measure/slices.py lets them
 * take turns.
 * Place: figures "object-cache pair" inlined, out of line and against the private array.
 */
#include "contender.h"

static bench::slices::memory held()
{
        bench::slices::memory found = {{"resident_KiB", (double)bench::resident_kib()}};
        if (cached_bytes() >= 0)
                found.push_back({"cached_KiB", cached_bytes() / 1024});
        return found;
}

/* One object taken and given back: it stays in the first-level cache, only instructions count. */
static void pair(size_t n)
{
        for (; n > 0; n--) {
                void *object = take();
                bench::keep(object);
                give(object);
        }
}

/* @batch objects taken, then given back in the same order. */
static void batches(size_t batch, size_t n)
{
        static void *object[1024];
        for (; n > 0; n -= batch) {
                for (size_t i = 0; i < batch; i++)
                        object[i] = take();
                bench::keep(batch);
                for (size_t i = 0; i < batch; i++)
                        give(object[i]);
                bench::keep(batch);
        }
}

int main(int argc, char **argv)
{
        bench::slices all;

        bench::pin_to(0);
        prepare();
        all.add("pair", 1, pair, {{}, held});
        for (size_t batch : {10, 64, 1000})
                all.add("batch/" + std::to_string(batch), batch,
                        [batch](size_t n) { batches(batch, n); }, {{}, held});
        return all.run(argc, argv);
}
