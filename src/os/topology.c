/*
 * Purpose: which NUMA nodes there are, which have memory, and where each CPU is. Read from /sys
 * once, without libnuma; or made up by STOOK_TOPOLOGY, so that all that goes by nodes runs on a
 * machine that has one:
 *      flat                                    one node, whatever the machine has
 *      nodes=N[:memory=LIST][:slots=N]         N nodes, 1 to 64
 * LIST is those with memory ("0-3,8"), by default all. The distance of two nodes is that of their
 * numbers. The slot i (with restartable sequences: the CPU i) is on node i modulo N. `slots` raises
 * the number of slots.
 * Place: called by life at start; asked by all layers that keep something for each node.
 * Concurrency: const after start.
 * Failure: what cannot be read counts as one node.
 */
#include <string.h>

#include "base/compiler.h"
#include "base/inject.h"
#include "os/os.h"

#define CPUS_KNOWN 8192                 /* as many as there may be slots */
#define NODE_NONE  0xff                 /* of a CPU in no node: taken for node 0 */
#define TAKES "flat, or nodes=1..64[:memory=LIST][:slots=1..4096]"
#define SLOTS_MOST 4096

static const char system_folder[] = "/sys/devices/system/node";

/* Const after start. */
static struct {
        uint64_t exists, memory;        /* a bit for each node */
        unsigned count;
        unsigned slots;
        bool     fake;
} topology = { .exists = 1, .memory = 1, .count = 1 };
static uint8_t node_of_cpu[CPUS_KNOWN] STOOK_MOSTLY_UNUSED;     /* const after start */
static uint8_t home_of_node[STOOK_NODES_MAX];                   /* const after start */

static uint64_t bit(unsigned node)
{
        return UINT64_C(1) << node;
}

/* ---- sets ---- */

struct set {
        uint64_t bits;
        bool     beyond;                /* has numbers of STOOK_NODES_MAX and more */
};

static void add_range(uint32_t first, uint32_t last, void *data)
{
        struct set *set = data;

        if (last >= STOOK_NODES_MAX)
                set->beyond = true;
        for (uint32_t i = first; i <= last && i < STOOK_NODES_MAX; i++)
                set->bits |= bit(i);
}

/* ---- what the machine says ---- */

/* folder/name or folder/nodeN/name. False: too long. */
static bool path_of(char path[256], int node, const char *name)
{
        const char *folder = STOOK_INJECT_GET(node_folder) ?: system_folder;
        size_t n = strlen(folder);

        if (n + strlen(name) + sizeof("/node63/") > 256)
                return false;
        memcpy(path, folder, n);
        path[n++] = '/';
        if (node >= 0) {
                memcpy(path + n, "node", 4);
                n += 4;
                if (node >= 10)
                        path[n++] = (char)('0' + node / 10);
                path[n++] = (char)('0' + node % 10);
                path[n++] = '/';
        }
        strcpy(path + n, name);
        return true;
}

static bool read_list(int node, const char *name, stook_number_range *each, void *data)
{
        char path[256];

        return path_of(path, node, name) && stook_number_list_file(path, each, data);
}

static void set_cpus(uint32_t first, uint32_t last, void *node)
{
        for (uint32_t cpu = first; cpu <= last && cpu < CPUS_KNOWN; cpu++)
                node_of_cpu[cpu] = *(uint8_t *)node;
}

/* Distances of one node from all that exist, in order. */
struct nearest {
        uint64_t left;                  /* nodes not told yet */
        uint32_t distance;
        unsigned node;
};

static void note_distance(uint32_t distance, uint32_t last, void *data)
{
        struct nearest *n = data;
        unsigned node = n->left ? (unsigned)__builtin_ctzll(n->left) : 0;

        (void)last;
        if (n->left && (topology.memory & bit(node)) && distance < n->distance) {
                n->distance = distance;
                n->node = node;
        }
        n->left &= n->left - 1;
}

static unsigned nearest_by_sys(unsigned node)
{
        struct nearest n = { .left = topology.exists, .distance = UINT32_MAX,
                             .node = (unsigned)__builtin_ctzll(topology.memory) };

        read_list((int)node, "distance", note_distance, &n);
        return n.node;
}

/* False: one node, or nothing that can be used. */
static bool read_machine(void)
{
        struct set online = { 0 }, memory = { 0 };

        if (!read_list(-1, "online", add_range, &online) || online.beyond ||
            !(online.bits & (online.bits - 1)))
                return false;
        if (!read_list(-1, "has_memory", add_range, &memory) || !(memory.bits & online.bits))
                return false;
        topology.exists = online.bits;
        topology.memory = memory.bits & online.bits;
        memset(node_of_cpu, NODE_NONE, sizeof(node_of_cpu));
        for (unsigned node = 0; node < STOOK_NODES_MAX; node++) {
                uint8_t number = (uint8_t)node;

                if (topology.exists & bit(node))
                        read_list((int)node, "cpulist", set_cpus, &number);
        }
        return true;
}

/* ---- what the variable says ---- */

static unsigned nearest_by_number(unsigned node)
{
        for (unsigned far = 1; far < STOOK_NODES_MAX; far++) {
                if (node >= far && (topology.memory & bit(node - far)))
                        return node - far;
                if (node + far < STOOK_NODES_MAX && (topology.memory & bit(node + far)))
                        return node + far;
        }
        return node;
}

/* "NAME=" at *@at: moves behind it, and tells where its value ends. NULL: something else. */
static const char *field(const char **at, const char *name)
{
        size_t n = strlen(name);

        if (strncmp(*at, name, n))
                return NULL;
        *at += n;
        return *at + strcspn(*at, ":");
}

/* One number, 1 to @most; 0: it is none. */
static unsigned number(const char *from, const char *end, unsigned most)
{
        unsigned n = 0;

        for (; from < end; from++) {
                if (*from < '0' || *from > '9' || (n = n * 10 + (unsigned)(*from - '0')) > most)
                        return 0;
        }
        return n;
}

static bool parse(const char *at, unsigned *nodes, struct set *memory, unsigned *slots)
{
        const char *end = field(&at, "nodes=");

        if (!end || !(*nodes = number(at, end, STOOK_NODES_MAX)))
                return false;
        *memory = (struct set){ .bits = *nodes == 64 ? ~UINT64_C(0) : bit(*nodes) - 1 };
        while (*end) {
                uint64_t all = *nodes == 64 ? ~UINT64_C(0) : bit(*nodes) - 1;

                at = end + 1;
                if ((end = field(&at, "memory="))) {
                        struct stook_number_list list = { 0 };

                        *memory = (struct set){ 0 };
                        if (strspn(at, "0123456789-,") != (size_t)(end - at))
                                return false;
                        stook_number_list_read(&list, at, (size_t)(end - at), add_range, memory);
                        if (!stook_number_list_end(&list, add_range, memory) || memory->beyond ||
                            !memory->bits || (memory->bits & ~all))
                                return false;
                } else if ((end = field(&at, "slots="))) {
                        if (!(*slots = number(at, end, SLOTS_MOST)))
                                return false;
                } else {
                        return false;
                }
        }
        return true;
}

/* True: the variable decides. */
static bool read_variable(void)
{
        const char *value = stook_os_env("STOOK_TOPOLOGY");
        unsigned nodes = 0, slots = 0;
        struct set memory = { 0 };

        if (!value)
                return false;
        if (!strcmp(value, "flat"))
                return true;
        if (!parse(value, &nodes, &memory, &slots)) {
                stook_os_env_refuse("STOOK_TOPOLOGY", value, TAKES);
                return false;
        }
        topology.exists = nodes == 64 ? ~UINT64_C(0) : bit(nodes) - 1;
        topology.memory = memory.bits;
        topology.slots = slots;
        topology.fake = true;
        for (unsigned cpu = 0; cpu < CPUS_KNOWN; cpu++)
                node_of_cpu[cpu] = (uint8_t)(cpu % nodes);
        return true;
}

/* ---- the answers ---- */

void stook_os_topology_detect(void)
{
        /* Where the memory is of one node, there is nothing to choose: /sys need not be read. */
        if (!read_variable() &&
            ((!STOOK_INJECT_GET(node_folder) && stook_os_has_one_memory()) ||
             !read_machine()))
                return;
        topology.count = STOOK_NODES_MAX - (unsigned)__builtin_clzll(topology.exists);
        for (unsigned node = 0; node < topology.count; node++)
                home_of_node[node] = (uint8_t)(topology.memory & bit(node) ? node
                                                : topology.fake ? nearest_by_number(node)
                                                                : nearest_by_sys(node));
}

unsigned stook_os_node_count(void)
{
        return topology.count;
}

bool stook_os_node_exists(unsigned node)
{
        return node < STOOK_NODES_MAX && (topology.exists & bit(node));
}

bool stook_os_node_has_memory(unsigned node)
{
        return node < STOOK_NODES_MAX && (topology.memory & bit(node));
}

unsigned stook_os_node_home(unsigned node)
{
        return home_of_node[node];
}

unsigned stook_os_node_of_cpu(unsigned cpu)
{
        unsigned node = node_of_cpu[cpu % CPUS_KNOWN];

        return node == NODE_NONE ? (unsigned)__builtin_ctzll(topology.exists) : node;
}

bool stook_os_topology_is_fake(void)
{
        return topology.fake;
}

unsigned stook_os_topology_slots(void)
{
        return topology.slots;
}
