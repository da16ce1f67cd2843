/*
 * Purpose: how many reports are written where the program goes on: 50,000 faults are not 50,000
 * reports. So many come at once, then so many a second. The next report that is written says how
 * many were left out before it; a line at the end of the process says it of the last ones.
 * Place: called by report_tell.c.
 * Concurrency: any thread, any instruction. `earned` is a clock: the time up to which reports are
 *  paid for. One compare-and-swap pays for a report.
 */
#include "os/os.h"
#include "report/report_inside.h"

#define AT_ONCE 100                     /* both arbitrary: what a person may want to read */
#define EACH_MS 100

static uint64_t earned;                 /* atomic; ms of stook_os_clock_ms */
static uint64_t left_out;               /* atomic; reports since the last that was written */

bool stook_report_may_tell(uint64_t *left)
{
        uint64_t now = stook_os_clock_ms() + AT_ONCE * EACH_MS;
        uint64_t at = __atomic_load_n(&earned, __ATOMIC_RELAXED), from;

        do {
                from = at + AT_ONCE * EACH_MS < now ? now - AT_ONCE * EACH_MS : at;
                if (from + EACH_MS > now) {
                        __atomic_fetch_add(&left_out, 1, __ATOMIC_RELAXED);
                        return false;
                }
        } while (!__atomic_compare_exchange_n(&earned, &at, from + EACH_MS, true,
                                              __ATOMIC_RELAXED, __ATOMIC_RELAXED));
        *left = __atomic_exchange_n(&left_out, 0, __ATOMIC_RELAXED);
        return true;
}

size_t stook_report_put_left_out(char *line, size_t room, uint64_t left)
{
        return stook_report_format(line, room, "stook: %u reports were left out here\n", left);
}

__attribute__((destructor)) static void tell_left_out(void)
{
        uint64_t left = __atomic_exchange_n(&left_out, 0, __ATOMIC_RELAXED);
        char line[80];

        if (left)
                stook_os_write(line, stook_report_put_left_out(line, sizeof(line), left));
}
