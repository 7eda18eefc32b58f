/* For write/: tilecore_gather, which packs item by item, without a set; and what `deinterleave` shuffles. */
#pragma once

#include "kernels.h"

/* dst[i * dst_pitch + k * dst_step] = src[i * src_pitch + k * src_step], for items of 1, 2, 4, 8 or 16 bytes. */
#define TILECORE_GATHER(item) \
    for (; rows > 0; rows--, dst += dst_pitch, src += src_pitch) \
        for (k = 0; k < count; k++) memcpy(dst + k * dst_step, src + k * src_step, item); \
    return
TILECORE_INLINE void tilecore_gather(char *dst, ptrdiff_t dst_pitch, ptrdiff_t dst_step, const char *src,
                                     ptrdiff_t src_pitch, ptrdiff_t src_step, ptrdiff_t rows, ptrdiff_t count,
                                     ptrdiff_t item)
{
    ptrdiff_t k;
    switch (item) {
    case 1: TILECORE_GATHER(1);
    case 2: TILECORE_GATHER(2);
    case 4: TILECORE_GATHER(4);
    case 8: TILECORE_GATHER(8);
    default: TILECORE_GATHER(16);
    }
}
#undef TILECORE_GATHER

enum { TILECORE_MAX_LOADS = 8 };

/* What `deinterleave` shuffles: dst[(i * items + k) * item] = src[i * step + k * along], in periods of 1 to 3 vectors
 * of 32 bytes. Each half of a vector is made of a few loads of 16 source bytes. */
struct tilecore_shuffles {
    ptrdiff_t item;
    ptrdiff_t items; /* of a group */
    ptrdiff_t along;
    ptrdiff_t step;
    ptrdiff_t groups;    /* of a period */
    int vectors, loads; /* of a period, of a vector */
    ptrdiff_t from[3][TILECORE_MAX_LOADS][2]; /* where each half begins */
    uint8_t mask[3][TILECORE_MAX_LOADS][32];
};

/* Prepares groups of 1 to 4 items of up to 16 bytes. Either the items of a group lie together, and the groups one after
 * the other, forward or backward; or `step` is an item, and each item of a group is in another row. Returns 0 if items
 * lie too far apart, or overlap. */
TILECORE_INLINE int tilecore_prepare_deinterleave(tilecore_shuffles *self, ptrdiff_t items, ptrdiff_t along,
                                                  ptrdiff_t step, ptrdiff_t item)
{
    const ptrdiff_t group = items * item, n = item < 16 ? 16 / item : 1;
    ptrdiff_t k = 0, base = 0, byte;
    int half, load, j;
    TILECORE_ASSERT(items > 0 && items <= 4 && item > 0 && item <= 16 && 16 % item == 0);
    self->item = item, self->items = items, self->along = along, self->step = step;
    self->vectors = 1, self->loads = 1;
    while (self->vectors * 32 % group) self->vectors++;
    self->groups = self->vectors * 32 / group;
    memset(self->mask, 0x80, sizeof self->mask); /* these bytes are shuffled to 0 */
    for (half = 0; half < 2 * self->vectors; half++) {
        ptrdiff_t at[16], low, first = PTRDIFF_MAX, high = -PTRDIFF_MAX;
        unsigned left = (1u << n) - 1;
        for (j = 0; j < n; j++) {
            at[j] = base + k * along;
            if (at[j] < first) first = at[j];
            if (at[j] + item > high) high = at[j] + item;
            if (++k == items) k = 0, base += step;
        }
        if (high - first < 16) return 0;
        for (load = 0; left; load++) {
            if (load == TILECORE_MAX_LOADS) return 0;
            for (low = PTRDIFF_MAX, j = 0; j < n; j++)
                if (left >> j & 1 && at[j] < low) low = at[j];
            if (low > high - 16) low = high - 16; /* reads nothing beyond the items */
            for (j = 0; j < n; j++) {
                if (!(left >> j & 1) || at[j] + item > low + 16) continue;
                left &= ~(1u << j);
                for (byte = 0; byte < item; byte++)
                    self->mask[half / 2][load][16 * (half % 2) + j * item + byte] = (uint8_t)(at[j] - low + byte);
            }
            self->from[half / 2][load][half % 2] = low;
        }
        if (load > self->loads) self->loads = load;
        for (; load < TILECORE_MAX_LOADS; load++) /* loads that only the other half needs */
            self->from[half / 2][load][half % 2] = self->from[half / 2][0][half % 2];
    }
    return 1;
}
