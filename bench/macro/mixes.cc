/*
 * bench/macro/mixes.cc - published allocation mixes of a fleet's programs
 *
 * Purpose: the time and the memory of a heap that stays as large while its objects come and go. The
 * model is Little's law: an object of a class dies with the rate births / alive, so that births and
 * deaths balance. The live counts are scaled to the heap that is asked for. The fill writes all
 * pages of an object, an operation after it the first byte. The trace is made before, in memory
 * that the allocator does not see.
 * Input: a file of bench/data/fleet: in each line a size, allocations of it in a unit of time,
 * objects of it alive.
 * Answer: ns_per_op (processor time, second half), resident_share (resident over asked for, at the
 * end), peak_share, left_MiB (right after all was freed), left_late_MiB (a second and one call
 * later), faults.
 * Options: mix=FILE, mib=HEAP, ops=MILLIONS, seed=N.
 */
#include <algorithm>
#include <sys/mman.h>
#include <sys/resource.h>

#include "../harness/harness.h"

static constexpr unsigned classes_most = 4096;

struct size_class {
        size_t size;
        double births, alive;
        uint32_t *slots, count;         /* of the objects alive */
};

/* size 0: a free */
struct operation {
        uint32_t slot, size;
};

static size_class classes[classes_most];
static unsigned class_count;

static void *memory(size_t bytes)
{
        void *at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (at == MAP_FAILED) {
                perror("mixes: memory for the trace");
                exit(1);
        }
        return at;
}

static void read_mix(const char *path)
{
        static char text[1 << 20];
        int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        ssize_t have = 0, n;
        while (fd >= 0 && (n = read(fd, text + have, sizeof(text) - 1 - (size_t)have)) > 0)
                have += n;
        for (char *at = text; *at && class_count < classes_most; class_count++) {
                size_class &c = classes[class_count];
                c.size = strtoul(at, &at, 10);
                c.births = strtod(at + (*at == ','), &at);
                c.alive = strtod(at + (*at == ','), &at);
                at += strspn(at, "\r\n");
        }
        if (!class_count) {
                fprintf(stderr, "mixes: no mix: mix=FILE, of bench/data/fleet\n");
                exit(2);
        }
}

/* A tree of sums: weights that change, and a pick by weight. */
class picker {
public:
        void add(unsigned i, double weight)
        {
                for (i++; i <= classes_most; i += i & -i)
                        tree[i] += weight;
                sum += weight;
        }
        unsigned pick(double at) const
        {
                unsigned i = 0;
                for (unsigned step = classes_most; step; step /= 2)
                        if (i + step <= classes_most && tree[i + step] <= at)
                                at -= tree[i += step];
                return std::min(i, class_count - 1);
        }
        double sum = 0;

private:
        double tree[classes_most + 1] = {};
};

class trace {
public:
        trace(size_t heap, size_t count, uint64_t seed) : r(seed)
        {
                double asked = 0, objects = 0;
                for (unsigned i = 0; i < class_count; i++)
                        asked += (double)classes[i].size * classes[i].alive;
                for (unsigned i = 0; i < class_count; i++) {
                        size_class &c = classes[i];
                        c.alive *= (double)heap / asked;
                        objects += c.alive;
                        births.add(i, c.births);
                }
                slots_most = (size_t)(objects * 1.5) + count / 8 + 100000;
                free_slots = (uint32_t *)memory(slots_most * sizeof(*free_slots));
                operations = (operation *)memory((size_t)(objects * 1.1 + 10000 + (double)count) *
                                                 sizeof(*operations));
                for (unsigned i = 0; i < class_count; i++) {
                        size_class &c = classes[i];
                        c.slots = (uint32_t *)memory((size_t)(c.alive * 2 + 4096) * 4);
                        room[i] = (uint32_t)(c.alive * 2 + 1024);
                }
                fill();
                for (size_t i = 0; i < count; i++)
                        step();
        }
        operation *operations;
        size_t filled, total = 0, slots = 0;

private:
        double unit() { return (double)(r.next() >> 11) * 0x1p-53; }
        void fill()
        {
                for (unsigned i = 0; i < class_count; i++) {
                        double alive = classes[i].alive;
                        for (uint32_t n = (uint32_t)(alive + unit()); n; n--)
                                birth(i);
                }
                for (size_t i = total; i > 1; i--)      /* in no order */
                        std::swap(operations[i - 1], operations[r.below((uint32_t)i)]);
                filled = total;
        }
        void birth(unsigned i)
        {
                size_class &c = classes[i];
                uint32_t slot = free_count ? free_slots[--free_count] : (uint32_t)slots++;
                if (c.count == room[i] || slots == slots_most) {
                        fprintf(stderr, "mixes: no room in the trace\n");
                        exit(1);
                }
                c.slots[c.count++] = slot;
                deaths.add(i, c.births / c.alive);
                operations[total++] = operation{slot, (uint32_t)c.size};
        }
        void death(unsigned i)
        {
                size_class &c = classes[i];
                if (!c.count)
                        return;
                uint32_t victim = r.below(c.count), slot = c.slots[victim];
                c.slots[victim] = c.slots[--c.count];
                deaths.add(i, -c.births / c.alive);
                free_slots[free_count++] = slot;
                operations[total++] = operation{slot, 0};
        }
        void step()
        {
                double at = unit() * (births.sum + deaths.sum);
                if (at < births.sum)
                        birth(births.pick(at));
                else
                        death(deaths.pick(at - births.sum));
        }
        bench::rng r;
        picker births, deaths;
        uint32_t *free_slots, room[classes_most];
        size_t slots_most, free_count = 0;
};

static void replay(const operation *at, const operation *end, char **objects, bool all_pages)
{
        for (; at < end; at++) {
                if (!at->size) {
                        free(objects[at->slot]);
                        continue;
                }
                char *object = (char *)malloc(at->size);
                if (!object) {
                        perror("mixes");
                        exit(1);
                }
                object[0] = 1;
                if (all_pages)
                        for (size_t i = 4096; i < at->size; i += 4096)
                                object[i] = 1;
                objects[at->slot] = object;
        }
}

static long faults()
{
        struct rusage use;
        getrusage(RUSAGE_SELF, &use);
        return use.ru_minflt;
}

int main(int argc, char **argv)
{
        const char *path = nullptr;
        for (int i = 1; i < argc; i++)
                if (!strncmp(argv[i], "mix=", 4))
                        path = argv[i] + 4;
        read_mix(path);
        size_t heap = (size_t)bench::option(argc, argv, "mib", 200) << 20;
        size_t count = (size_t)bench::option(argc, argv, "ops", 10) * 1000000;
        static trace t(heap, count, (uint64_t)bench::option(argc, argv, "seed", 1));
        char **objects = (char **)memory(t.slots * sizeof(*objects));
        uint32_t *sizes = (uint32_t *)memory(t.slots * sizeof(*sizes));
        size_t asked = 0;
        for (size_t i = 0; i < t.total; i++)
                sizes[t.operations[i].slot] = t.operations[i].size;
        for (size_t i = 0; i < t.slots; i++)
                asked += sizes[i];

        bench::answer answer;
        long before = bench::resident_kib(), faults_before = faults();
        const operation *half = t.operations + (t.filled + t.total) / 2;
        const operation *end = t.operations + t.total;
        replay(t.operations, t.operations + t.filled, objects, true);
        replay(t.operations + t.filled, half, objects, false);
        uint64_t start = bench::processor_ns();
        replay(half, end, objects, false);
        double ns = (double)(bench::processor_ns() - start);
        long resident = bench::resident_kib() - before, peak = bench::peak_kib() - before;
        long faulted = faults() - faults_before;
        for (size_t i = 0; i < t.slots; i++)
                if (sizes[i])
                        free(objects[i]);
        long left = bench::resident_kib() - before;
        usleep(1000000);
        free(malloc(100));
        answer.add("ns_per_op", ns / (double)(end - half))
                .add("resident_share", (double)resident * 1024 / (double)asked)
                .add("peak_share", (double)peak * 1024 / (double)asked)
                .add("left_MiB", (double)left / 1024)
                .add("left_late_MiB", (double)(bench::resident_kib() - before) / 1024)
                .add("faults", (double)faulted);
        return 0;
}
