/*
 * Purpose: see life.h.
 *   STOOK_ON_FAULT=abort|log|isolate     what follows a report
 *   STOOK_DEBUG=LETTERS[,CACHE...][;...] debug modes: debug/debug_options.c
 *   STOOK_CHECKER=0|1                    tell Valgrind and ASan which objects are free
 *   STOOK_HARDEN=NAME[,NAME...]         hardening: harden/harden.c
 *   STOOK_REPORT_JSON=FILE              each report as a line of JSON, too
 *   STOOK_SYMBOLIZER=PATH               the command that names functions and lines in reports
 *   STOOK_NOTES=FILE                    `stook run` sees there that something was reported
 *   STOOK_THP=auto|system|always|never   transparent huge pages for our ranges
 *   STOOK_DECAY_MS=0..3600000            how long free pages stay before they are purged
 *   STOOK_CAPACITY=0..65534              sheaf capacity of all caches
 *   STOOK_TINY=0|1                       no sheaves, no empty slabs kept: least memory
 *   STOOK_GROUP_LIMIT=BYTES[K|M|G|T]     all that malloc gives the process is charged to one group
 *   STOOK_RCU_BACKLOG=BYTES              what may wait for readers; 0: an eighth of all memory
 *   STOOK_MAINTENANCE=0|1                a thread that gives back what an idle process keeps
 *   STOOK_STRICT_NUMA=0|1                ask the task's memory policy for each allocation
 *   STOOK_MAP_NAMES=0|1                  name mappings "stook" in /proc/PID/maps
 *   STOOK_PRINT=exit|SIGNAL,...          print statistics (read by inspect/print.c)
 *   STOOK_MERGE=0|1                      share caches of equal geometry: never, always
 *   STOOK_TOKENS=2..16                   partitions of allocation tokens (read by the drop-in)
 *   STOOK_OPTIONS=off                    no others count (read by process/option_source.c)
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "barn/barn.h"
#include "cache/cache.h"
#include "debug/debug_modes.h"
#include "group/group.h"
#include "harden/harden.h"
#include "life/life.h"
#include "os/os.h"
#include "pages/advice.h"
#include "pages/purge.h"
#include "pages/span.h"
#include "policy/constants.h"
#include "process/checker.h"
#include "process/process.h"
#include "report/report.h"
#include "slot/slot.h"

const char *const stook_on_fault_names[] = { "abort", "log", "isolate", "report", NULL };
const char *const stook_thp_names[] = { "auto", "system", "always", "never", NULL };
static unsigned thp = STOOK_THP_AUTO;   /* atomic, relaxed */
static bool maintenance;

int stook_option_choice(const char *text, const char *const *names)
{
        for (int i = 0; names[i]; i++)
                if (!strcmp(text, names[i]))
                        return i;
        return -1;
}

/* The index of the variable's value among @names; @otherwise if it is not set or none of them. */
static unsigned choice(const char *variable, const char *const *names, unsigned otherwise,
                       const char *takes)
{
        const char *value = stook_os_env(variable);
        int index;

        if (!value)
                return otherwise;
        index = stook_option_choice(value, names);
        if (index < 0)
                stook_os_env_refuse(variable, value, takes);
        return index < 0 ? otherwise : (unsigned)index;
}

int64_t stook_option_number(const char *text, int64_t most)
{
        int64_t n = 0;

        for (const char *c = text; *c || c == text; c++)
                if (*c < '0' || *c > '9' || (n = n * 10 + (*c - '0')) > most)
                        return -1;
        return n;
}

/* A decimal number up to @most; @otherwise if the variable is not set or no such number. */
static int64_t number(const char *variable, int64_t most, int64_t otherwise, const char *takes)
{
        const char *value = stook_os_env(variable);
        int64_t n;

        if (!value)
                return otherwise;
        n = stook_option_number(value, most);
        if (n < 0)
                stook_os_env_refuse(variable, value, takes);
        return n < 0 ? otherwise : n;
}

void stook_options_set_thp(unsigned to)
{
        __atomic_store_n(&thp, to, __ATOMIC_RELAXED);
        stook_pages_set_thp(to);
}

unsigned stook_options_thp_asked(void)
{
        return __atomic_load_n(&thp, __ATOMIC_RELAXED);
}

void stook_options_read(void)
{
        unsigned on_fault;
        int64_t decay;

        stook_env_check_spelling();
        if (number("STOOK_MAP_NAMES", 1, 0, "0 or 1"))
                stook_os_name_mappings();
        stook_checker_detect((int)number("STOOK_CHECKER", 1, -1, "0 or 1"));
        stook_debug_read_options();
        stook_fail_read_options();
        stook_harden_read_options();
        if (stook_is_hardened(STOOK_HARDEN_GUARD) ||
            (stook_debug_wanted(STOOK_DEBUG_LARGE) & STOOK_CACHE_RED_ZONE))
                stook_guard_hits_report();
        if (stook_debug_is_asked())
                stook_checked_faults_report();
        if (stook_fail_tells())
                stook_crashes_report();
        on_fault = choice("STOOK_ON_FAULT", stook_on_fault_names, STOOK_ON_FAULT_ABORT,
                          "abort, log or isolate");
        /* "report" is the old name of log. */
        stook_report_set_policy(on_fault == 3 ? STOOK_ON_FAULT_LOG : on_fault);
        stook_report_set_symbolizer(stook_os_env("STOOK_SYMBOLIZER"));
        stook_report_set_json(stook_os_env("STOOK_REPORT_JSON"));
        stook_report_set_notes(stook_os_env("STOOK_NOTES"));
        stook_options_set_thp(choice("STOOK_THP", stook_thp_names, STOOK_THP_AUTO,
                                     "auto, system, always or never"));
        decay = number("STOOK_DECAY_MS", STOOK_DECAY_MS_MAX, -1, "milliseconds, 0 to 3600000");
        if (decay >= 0)
                stook_pages_set_decay_ms((uint32_t)decay);
        stook_cache_options.capacity = (int)number("STOOK_CAPACITY", STOOK_SHEAF_CAPACITY_MAX, -1,
                                                   "objects, 0 to 65534");
        stook_cache_options.tiny = number("STOOK_TINY", 1, 0, "0 or 1");
        maintenance = number("STOOK_MAINTENANCE", 1, 0, "0 or 1");
        stook_slots_strict = number("STOOK_STRICT_NUMA", 1, 0, "0 or 1") &&
                             stook_os_node_count() > 1;
        stook_pages_place_over_policy(stook_slots_strict);
        stook_cache_options.merge = (int)number("STOOK_MERGE", 1, -1, "0 or 1");
}

uint64_t stook_option_size(const char *text)
{
        static const char suffixes[] = "KMGT";
        const char *c = text, *suffix;
        unsigned shift;
        uint64_t n = 0;

        for (; *c >= '0' && *c <= '9' && n < UINT64_MAX / 16; c++)
                n = n * 10 + (uint64_t)(*c - '0');
        suffix = *c ? strchr(suffixes, *c) : NULL;
        shift = suffix ? 10 * (unsigned)(suffix - suffixes + 1) : 0;
        return c != text && (!*c || (suffix && !c[1])) && n <= UINT64_MAX >> shift ? n << shift : 0;
}

/* Bytes; 0 if the variable is not set or no such size. */
static uint64_t size(const char *variable)
{
        const char *value = stook_os_env(variable);
        uint64_t n = value ? stook_option_size(value) : 0;

        if (value && !n)
                stook_os_env_refuse(variable, value,
                                    "a whole number of bytes, above 0; K, M, G or T may follow it");
        return n;
}

void stook_options_start_group(void)
{
        uint64_t limit = size("STOOK_GROUP_LIMIT");

        if (limit)
                stook_group_start(limit);
}

/* Where address space is limited, barns and slots together keep at most 1/16 of it, half each. */
void stook_options_set_budget(void)
{
        uint64_t node_bytes = stook_os_address_limit_at_start() / 32 / stook_os_node_count();
        int64_t backlog = number("STOOK_RCU_BACKLOG", INT64_MAX / 16, 0, "bytes");

        if (node_bytes < STOOK_BARN_NODE_BYTES)
                stook_barn_set_budget((size_t)node_bytes);
        if (backlog)
                stook_rcu_set_default_limit((uint64_t)backlog);
}

bool stook_options_maintenance(void)
{
        return maintenance;
}

const char *stook_options_thp(void)
{
        return __atomic_load_n(&stook_huge_dear, __ATOMIC_RELAXED) == STOOK_HUGE_DEAR
                ? "auto-dear" : stook_thp_names[stook_options_thp_asked()];
}
