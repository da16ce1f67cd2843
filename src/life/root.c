/*
 * Purpose: the object at which readers outside the process begin, and the note that leads there;
 * see root.h. And what `stook tune` asked for is done.
 */
#include "cache/cache.h"
#include "gate/gate.h"
#include "life/life.h"
#include "life/root.h"
#include "os/os.h"
#include "pages/advice.h"
#include "process/process.h"
#include "watch/watch.h"
#include <stook/version.h>

struct stook_root stook_root = {
        .magic = STOOK_ROOT_MAGIC,
        .root_bytes = sizeof(struct stook_root),
        .layout_count = STOOK_ROOT_LAYOUT_COUNT,
        .version = STOOK_VERSION,
        .counters = STOOK_STAT_COUNT,
        .span_block = STOOK_SPAN_BLOCK,
        .span_kinds = STOOK_ROOT_SPAN_KINDS,
        .meta_ranges = STOOK_META_RANGES,
        .caches = &stook_caches,
        .caches_used = &stook_caches_used,
        .sheaf_runs = &stook_sheaf_runs,
        .sheaf_zero = &stook_sheaf_zero,
        .span_blocks = &stook_span_blocks,
        .meta = stook_meta_ranges,
        .regions = &stook_regions,
        .filled = &stook_filled,
        .groups = &stook_groups,
        .groups_used = &stook_groups_bound,
        .group_of_process = &stook_group_of_process,
        .heaps = &stook_heaps,
        .maintenance_process = &stook_maintenance_process,
        .huge_dear = &stook_huge_dear,
        .large_debug = &stook_large_debug,
        .gate_heap = &stook_gate_heap,
        .options = stook_option_states,
        .profile = &stook_profile,
        .profile_buckets = stook_profile_buckets,
        .profile_pairs = stook_profile_pairs,
        .stack_blocks = stook_stack_blocks,
        .stack_modules = stook_stack_modules,
        .stack_modules_made = &stook_stack_modules_made,
        .layout = { STOOK_ROOT_LAYOUT(STOOK_ROOT_LAYOUT_OF) },
};

extern struct stook_root stook_root_v1
        __attribute__((alias("stook_root"), visibility("default")));

/* An ELF note: sizes of name and description, type, name, description. Read-only, loaded. */
__asm__(".pushsection .note.stook, \"a\", %note\n"
        "       .balign 4\n"
        "       .long 6, 8, 1\n"
        "       .asciz \"Stook\"\n"
        "       .balign 4\n"
        "       .quad stook_root - .\n"
        "       .popsection\n");

void stook_root_start(void)
{
        stook_root.page_bytes = (uint32_t)stook_os_page_bytes();
        stook_root.nodes = stook_os_node_count();
        __atomic_store_n(&stook_root.state, STOOK_ROOT_STARTED, __ATOMIC_RELEASE);      /* M1 */
}
