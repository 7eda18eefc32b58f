/* Atomic counters, ptrdiff_t, in relaxed order. `add` returns the value before. C11 / C++17. */
#ifndef TILECORE_ATOMICS_H
#define TILECORE_ATOMICS_H

#include "config.h"

#if defined(_MSC_VER) && !defined(__clang__)
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>
#define tilecore_atomic_add(counter, n) \
    ((ptrdiff_t)InterlockedExchangeAddSizeT((volatile size_t *)(counter), (size_t)(n)))
#define tilecore_atomic_load(counter) (*(const volatile ptrdiff_t *)(counter))
#define tilecore_atomic_store(counter, n) ((void)(*(volatile ptrdiff_t *)(counter) = (n)))
#else
#define tilecore_atomic_add(counter, n) __atomic_fetch_add(counter, n, __ATOMIC_RELAXED)
#define tilecore_atomic_load(counter) __atomic_load_n(counter, __ATOMIC_RELAXED)
#define tilecore_atomic_store(counter, n) __atomic_store_n(counter, n, __ATOMIC_RELAXED)
#endif

#endif /* TILECORE_ATOMICS_H */
