/*
 * <stook/stook.hpp> - Stook in C++17 and later; header only
 *
 *      stook::cache, sheaf                    raw objects              <stook/cache.hpp>
 *      stook::object_cache<T>, object_sheaf   objects of one type      <stook/object_cache.hpp>
 *      stook::group, group_scope              accounting               <stook/group.hpp>
 *      stook::heap, heap_allocator<T>         objects that end together <stook/heap.hpp>
 *      stook::allocator<T>, cache_resource    the standard containers  <stook/memory.hpp>
 *      stook::read_section                    readers by RCU           <stook/rcu.hpp>
 *      stook::range_map<T>                    ranges of keys           <stook/range_map.hpp>
 *      stook::write_profile, sampling         the heap profile         <stook/profile.hpp>
 *
 * How errors are told is said in <stook/error.hpp>. Link with -lstook (pkg-config stook); programs
 * that use range_map with -lstook-maple, too (pkg-config stook-maple).
 */
#ifndef STOOK_HPP
#define STOOK_HPP

#include <stook/stook.h>
#include <stook/error.hpp>
#include <stook/cache.hpp>
#include <stook/object_cache.hpp>
#include <stook/object_pool.hpp>
#include <stook/group.hpp>
#include <stook/heap.hpp>
#include <stook/memory.hpp>
#include <stook/rcu.hpp>
#include <stook/profile.hpp>
#include <stook/range_map.hpp>

#endif
