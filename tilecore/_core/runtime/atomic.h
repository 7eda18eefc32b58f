/* Atomic counters, of type ptrdiff_t, in relaxed order. `add` returns the value before. `replace` is for pointers: it
 * orders all accesses, and returns whether `before` was there. C11 / C++17. */
#pragma once

#include "../config.h"

#if defined(_WIN32)
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>
#endif

#if defined(_MSC_VER) && !defined(__clang__)
#define tilecore_atomic_add(counter, n) \
    ((ptrdiff_t)InterlockedExchangeAddSizeT((volatile size_t *)(counter), (size_t)(n)))
#define tilecore_atomic_load(counter) (*(const volatile ptrdiff_t *)(counter))
#define tilecore_atomic_store(counter, n) ((void)(*(volatile ptrdiff_t *)(counter) = (n)))
#define tilecore_atomic_replace(place, before, n) \
    (InterlockedCompareExchangePointer((void *volatile *)(place), (void *)(n), (void *)(before)) == (void *)(before))
#else
#define tilecore_atomic_add(counter, n) __atomic_fetch_add(counter, n, __ATOMIC_RELAXED)
#define tilecore_atomic_load(counter) __atomic_load_n(counter, __ATOMIC_RELAXED)
#define tilecore_atomic_store(counter, n) __atomic_store_n(counter, n, __ATOMIC_RELAXED)
#define tilecore_atomic_replace(place, before, n) __sync_bool_compare_and_swap(place, before, n)
#endif
