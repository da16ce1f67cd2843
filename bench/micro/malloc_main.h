/*
 * bench/micro/malloc_main.h - what malloc_pair.cc and malloc_calls.cc share: sizes, and their main
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

static constexpr size_t sizes_count = 4096;

/* Set before the first benchmark runs; the same in each run. */
extern uint16_t mixed[sizes_count];
