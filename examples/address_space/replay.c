/*
 * replay [FILE]: the mmap, munmap and brk calls of a recorded program on the model; what they came
 * to is printed. Lines, addresses and lengths in bytes, hexadecimal or decimal: "map ADDRESS
 * LENGTH", "unmap ADDRESS LENGTH", "brk ADDRESS". record.py makes such a file of any program.
 * Without a file, a short one that is built in.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <stook/rcu.h>
#include <stook/stats.h>
#include "address_space.h"

static const char built_in[] = "brk 0x555555560000\nmap 0x7ffff7c00000 0x200000\nmap "
                               "0x7ffff7c28000 0x160000\nmap 0x7ffff7db0000 0x50000\n"
                               "unmap 0x7ffff7dc0000 0x1000\nbrk 0x555555581000\nmap "
                               "0x7ffff7fc0000 0x2000\nunmap 0x7ffff7c10000 0x8000\n";

static unsigned long maps, unmaps, brks, refused;

/* Return: 0; -EINVAL: no such line; or what the call returned. */
static int step(struct address_space *space, const char *line)
{
        uint64_t at, bytes;

        if (sscanf(line, "map %" SCNi64 " %" SCNi64, (int64_t *)&at, (int64_t *)&bytes) == 2) {
                maps++;
                return address_space_map_fixed(space, at, bytes, NULL);
        }
        if (sscanf(line, "unmap %" SCNi64 " %" SCNi64, (int64_t *)&at, (int64_t *)&bytes) == 2) {
                unmaps++;
                return address_space_unmap(space, at, bytes);
        }
        if (sscanf(line, "brk %" SCNi64, (int64_t *)&at) == 1) {
                brks++;
                return address_space_brk(space, at);
        }
        return line[0] == '\n' || line[0] == '#' ? 0 : -EINVAL;
}

static int show(struct stook_cache *cache, void *data)
{
        struct stook_cache_stats s = { .stats_size = sizeof(s) };

        (void)data;
        if (!stook_cache_get_stats(cache, &s) &&
            (!strcmp(s.name, "area") || !strcmp(s.name, "maple_node")))
                printf("%-10s %6" PRIu64 " live  %8" PRIu64 " from sheaves  %6" PRIu64
                       " from slabs  %4" PRIu64 " refilled\n",
                       s.name, s.objects_live, s.alloc_fastpath, s.alloc_slowpath, s.sheaf_refill);
        return 0;
}

int main(int argc, char **argv)
{
        FILE *in;
        struct address_space space;
        char line[256];
        long areas;
        int error;

        if (argc > 2 || (argc == 2 && argv[1][0] == '-')) {
                fputs("usage: replay [FILE]    (FILE: as record.py writes it)\n", stderr);
                return 2;
        }
        in = argc > 1 ? fopen(argv[1], "r") : fmemopen((void *)built_in, sizeof(built_in) - 1, "r");
        if (!in) {
                fprintf(stderr, "replay: %s: %s\n", argv[1], strerror(errno));
                return 2;
        }
        if (stook_rcu_use(&stook_urcu_bp) || address_space_init(&space, STOOK_MAPLE_RCU)) {
                fprintf(stderr, "replay: no address space\n");
                return 2;
        }
        while (fgets(line, sizeof(line), in))
                if ((error = step(&space, line)) != 0) {
                        refused++;
                        fprintf(stderr, "replay: refused (%s): %s%s", strerror(-error), line,
                                strchr(line, '\n') ? "" : "\n");
                }
        fclose(in);
        areas = address_space_check(&space);
        printf("%lu map, %lu unmap, %lu brk, %lu refused; %ld areas, tree of height %u, %zu "
               "nodes\n",
               maps, unmaps, brks, refused, areas, stook_maple_height(&space.areas),
               stook_maple_nodes(&space.areas));
        stook_cache_for_each(show, NULL);
        address_space_end(&space);
        stook_rcu_barrier();
        return areas < 0 || refused ? 1 : 0;
}
