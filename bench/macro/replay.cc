/*
 * bench/macro/replay.cc - the sizes and lifetimes of real programs
 *
 * Purpose: size classes and slab sizes are judged by what programs ask for. Two ways:
 *   events=FILE  replays what a program did, event by event (bench/record/record.c has the format),
 *                copies=N times side by side, so that the live set is N times the program's.
 *   sizes=FILE   keeps mib=LIVE of objects alive whose sizes are drawn from a histogram
 *                (bench/data, NAME.tsv), and replaces them at random. In each of steps=N phases
 *                half of the draws come from one part of the histogram, lowest sizes first: what
 *                was freed at one size must serve the next.
 * Answer: requested_KiB at the peak of bytes asked for, rounding_percent (malloc_usable_size beyond
 * that, there), peak_KiB beyond the start, end_KiB (beyond the start, with what is alive at the
 * end), ns_per_event. Objects are written in full.
 */
#include <algorithm>
#include <malloc.h>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <vector>

#include "../harness/harness.h"

[[noreturn]] static void fail(const char *what)
{
        fprintf(stderr, "replay: %s\n", what);
        exit(2);
}

/* Memory that is not the allocator's, resident from the start. */
template <typename T> static T *mapped(size_t count)
{
        void *at = mmap(nullptr, count * sizeof(T) + 1, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (at == MAP_FAILED)
                fail("no memory for tables");
        return (T *)at;
}

static const char *whole_file(const char *path, size_t &bytes)
{
        struct stat about;
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &about) != 0)
                fail("a file of data is missing");
        char *text = mapped<char>((size_t)about.st_size);
        bytes = 0;
        for (ssize_t n; (n = read(fd, text + bytes, (size_t)about.st_size - bytes)) > 0;)
                bytes += (size_t)n;
        close(fd);
        return text;
}

/* What is alive, and what it takes. */
struct sums {
        size_t requested = 0, usable = 0, peak_requested = 0, peak_usable = 0;
        void add(void *object, size_t size)
        {
                requested += size;
                usable += malloc_usable_size(object);
                if (requested > peak_requested) {
                        peak_requested = requested;
                        peak_usable = usable;
                }
        }
        void drop(void *object, size_t size)
        {
                requested -= size;
                usable -= malloc_usable_size(object);
        }
};

struct object {
        char *at;
        size_t size;
};

static char *written(void *at, size_t from, size_t size)
{
        if (!at)
                fail("no memory");
        if (size > from)
                memset((char *)at + from, 1, size - from);
        return (char *)at;
}

class replayed {
public:
        replayed(const char *path, size_t side_by_side) : copies(side_by_side)
        {
                text = (const unsigned char *)whole_file(path, bytes);
                size_t allocations = 0;
                for (at = 0; at < bytes;)
                        allocations += next_kind() != 1;
                objects = mapped<object>(allocations * copies);
                at = 0;
        }
        size_t run(sums &s)
        {
                size_t events = 0, made = 0;
                while (at < bytes) {
                        uint64_t first = number(), kind = first & 3, size = first >> 2;
                        uint64_t second = kind >= 2 ? number() : 0;
                        events += copies;
                        if (kind == 0 || kind == 3) {
                                for (size_t i = 0; i < copies; i++)
                                        make(s, objects[made * copies + i], size, second);
                                made++;
                        } else if (kind == 1) {
                                for (size_t i = 0; i < copies; i++)
                                        end(s, objects[(made - size) * copies + i]);
                        } else {
                                for (size_t i = 0; i < copies; i++)
                                        resize(s, objects[(made - second) * copies + i], size);
                        }
                }
                return events;
        }

private:
        const unsigned char *text;
        size_t bytes, at = 0, copies;
        object *objects;

        uint64_t number()
        {
                uint64_t value = 0;
                for (unsigned shift = 0; at < bytes; shift += 7) {
                        unsigned char byte = text[at++];
                        value |= (uint64_t)(byte & 127) << shift;
                        if (byte < 128)
                                break;
                }
                return value;
        }
        unsigned next_kind()
        {
                unsigned kind = number() & 3;
                if (kind >= 2)
                        number();
                return kind;
        }
        /* @log2 of the alignment; 0: malloc's. */
        static void make(sums &s, object &o, size_t size, uint64_t log2)
        {
                size_t align = std::max<size_t>((size_t)1 << log2, sizeof(void *));
                void *at = nullptr;
                if (!log2)
                        at = malloc(size);
                else if (posix_memalign(&at, align, size) != 0)
                        fail("no aligned memory");
                o = object{written(at, 0, size), size};
                s.add(at, size);
        }
        static void end(sums &s, object &o)
        {
                s.drop(o.at, o.size);
                free(o.at);
                o.at = nullptr;
        }
        static void resize(sums &s, object &o, size_t size)
        {
                s.drop(o.at, o.size);
                o.at = written(realloc(o.at, size), o.size, size);
                o.size = size;
                s.add(o.at, size);
        }
};

class drifting {
public:
        drifting(const char *path, size_t live_bytes) : limit(live_bytes), r(11)
        {
                size_t bytes, at_peak;
                const char *text = whole_file(path, bytes);
                std::string line;
                for (const char *at = text, *end; *at; at = end + 1) {
                        unsigned long size, allocated;
                        end = strchr(at, '\n');
                        if (!end)
                                break;
                        if (sscanf(at, "%lu %lu %zu", &size, &allocated, &at_peak) != 3 || !at_peak)
                                continue;
                        total += at_peak;
                        sizes.push_back({size, total});
                }
                if (sizes.empty())
                        fail("no histogram");
                /* Objects of 8 bytes at least, on average. */
                room = limit / 8;
                objects = mapped<object>(room);
        }
        size_t run(sums &s, size_t steps)
        {
                size_t events = 0;
                for (size_t step = 0; step < steps; step++)
                        for (size_t bytes = 0; bytes < limit;) {
                                uint64_t low = total * step / steps;
                                uint64_t high = total * (step + 1) / steps;
                                bool part = r.below(2) && high > low;
                                uint64_t rank = part ? low + r.below((uint32_t)(high - low))
                                                     : r.below((uint32_t)total);
                                bytes += put(s, size_of(rank));
                                events++;
                        }
                return events;
        }

private:
        struct bar {
                size_t size;
                uint64_t below;         /* objects up to here */
        };
        std::vector<bar> sizes;
        uint64_t total = 0;
        size_t limit, room, count = 0;
        object *objects;
        bench::rng r;

        size_t size_of(uint64_t rank)
        {
                return std::upper_bound(sizes.begin(), sizes.end(), rank,
                                        [](uint64_t n, const bar &b) { return n < b.below; })->size;
        }
        size_t put(sums &s, size_t size)
        {
                while (count && (s.requested + size > limit || count == room)) {
                        object &o = objects[r.below((uint32_t)count)];
                        s.drop(o.at, o.size);
                        free(o.at);
                        o = objects[--count];
                }
                char *at = written(malloc(size), 0, size);
                s.add(at, size);
                objects[count++] = object{at, size};
                return size;
        }
};

int main(int argc, char **argv)
{
        const char *events_file = bench::text_option(argc, argv, "events", nullptr);
        const char *sizes_file = bench::text_option(argc, argv, "sizes", nullptr);
        size_t copies = (size_t)bench::option(argc, argv, "copies", 1);
        size_t mib = (size_t)bench::option(argc, argv, "mib", 32);
        size_t steps = (size_t)bench::option(argc, argv, "steps", 8);
        if (!events_file == !sizes_file || !copies || !mib || !steps)
                fail("events=FILE or sizes=FILE");
        bench::answer answer;
        sums s;
        size_t events;
        long before;
        uint64_t start, ns;
        if (events_file) {
                replayed program(events_file, copies);
                before = bench::resident_kib();
                start = bench::now_ns();
                events = program.run(s);
        } else {
                drifting program(sizes_file, mib << 20);
                before = bench::resident_kib();
                start = bench::now_ns();
                events = program.run(s, steps);
        }
        ns = bench::now_ns() - start;
        answer.add("requested_KiB", (double)s.peak_requested / 1024);
        double rounding = (double)s.peak_usable / (double)s.peak_requested - 1;
        answer.add("rounding_percent", 100 * rounding);
        answer.add("peak_KiB", (double)(bench::peak_kib() - before));
        answer.add("end_KiB", (double)(bench::resident_kib() - before));
        answer.add("ns_per_event", (double)ns / (double)events);
        return 0;
}
