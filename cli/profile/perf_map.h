/*
 * Purpose: the functions that a JIT (node, java, ...) has made, by the file that it writes for
 * perf(1): /tmp/perf-PID.map, lines "START BYTES NAME" in hexadecimal. It stays behind the process.
 */
#ifndef STOOK_CLI_PERF_MAP_H
#define STOOK_CLI_PERF_MAP_H

#include <stdint.h>

struct perf_map;

/* Also where the process has another /tmp, while it runs. NULL: no memory. */
struct perf_map *perf_map_open(uint32_t process);
void perf_map_close(struct perf_map *map);
/* The function at an address: of those there, the one that was written last. NULL: none. */
const char *perf_map_find(const struct perf_map *map, uint64_t address);

#endif
