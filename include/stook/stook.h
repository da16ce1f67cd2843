/*
 * <stook/stook.h> - all headers except <stook/inline.h> and <stook/maple.h>
 */
#ifndef STOOK_H
#define STOOK_H

#include <stook/version.h>
#include <stook/cache.h>
#include <stook/typed.h>
#include <stook/sheaf.h>
#include <stook/malloc.h>
#include <stook/rcu.h>
#include <stook/group.h>
#include <stook/heap.h>
#include <stook/stats.h>
#include <stook/sampling.h>
#include <stook/debug.h>
#include <stook/control.h>
#include <stook/options.h>

#endif
