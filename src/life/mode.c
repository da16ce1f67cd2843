/*
 * Purpose: tell how this process and this thread run.
 * Place: API; asks slot, os and life's options.
 */
#include <errno.h>

#include "base/thread.h"
#include "gate/gate.h"
#include "life/options.h"
#include "os/os.h"
#include "report/report.h"
#include "slot/slot.h"
#include <stook/control.h>

static const char *registration(void)
{
        if (!stook_slot_enrol())
                return "none";
        return stook_os_rseq_owner() == STOOK_RSEQ_OWN ? "own" : "libc";
}

STOOK_API int stook_get_mode(struct stook_mode *mode)
{
        if (!mode || !stook_report_size_is(mode->mode_size, sizeof(*mode), "mode_size"))
                return -EINVAL;
        if (!stook_gate_open())
                return -ENOMEM;
        mode->registration = registration();
        mode->backend = stook_slots_backend_name();
        mode->index = stook_slots_index_name();
        mode->thp = stook_options_thp();
        mode->nodes = stook_os_node_count();
        mode->slots = stook_slots_count();
        mode->slots_ready = stook_slots_ready();
        mode->page_bytes = (uint32_t)stook_os_page_bytes();
        return 0;
}
