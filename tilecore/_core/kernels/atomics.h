/* Atomic counters, in relaxed order. `add` returns the value before. C11 / C++17. */
#ifndef TILECORE_ATOMICS_H
#define TILECORE_ATOMICS_H

#include "config.h"

#if defined(_MSC_VER) && !defined(__clang__)
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>

TILECORE_INLINE ptrdiff_t tilecore_atomic_add(ptrdiff_t *counter, ptrdiff_t n)
{
    return (ptrdiff_t)InterlockedExchangeAddSizeT((volatile size_t *)counter, (size_t)n);
}
TILECORE_INLINE ptrdiff_t tilecore_atomic_load(const ptrdiff_t *counter)
{
    return *(const volatile ptrdiff_t *)counter;
}
TILECORE_INLINE void tilecore_atomic_store(ptrdiff_t *counter, ptrdiff_t n) { *(volatile ptrdiff_t *)counter = n; }
#else
TILECORE_INLINE ptrdiff_t tilecore_atomic_add(ptrdiff_t *counter, ptrdiff_t n)
{
    return __atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}
TILECORE_INLINE ptrdiff_t tilecore_atomic_load(const ptrdiff_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
}
TILECORE_INLINE void tilecore_atomic_store(ptrdiff_t *counter, ptrdiff_t n)
{
    __atomic_store_n(counter, n, __ATOMIC_RELAXED);
}
#endif

#endif /* TILECORE_ATOMICS_H */
