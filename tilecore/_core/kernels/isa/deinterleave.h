/* `deinterleave` packs items at steps, alone or in groups, by shuffles; write/panels.pyx calls it. For AVX2:
 * tilecore_deinterleave_avx2, tilecore_deinterleave_row_avx2, tilecore_deinterleave_groups_avx2. */

/* Writes a period. Each half of a vector is the union of a few loads of 16 source bytes, shuffled, with zeros for bytes
 * of other loads. `kept`: the period is a single vector, and its masks and offsets stay in registers. */
TILECORE_INLINE TILECORE_TARGETED void TILECORE_NAME(deinterleave_period)(
    const tilecore_shuffles *self, const TILECORE_VECTOR *mask, const ptrdiff_t *from, char *dst, const char *src,
    const int kept, const int loads)
{
    const int vectors = kept ? 1 : self->vectors;
    int k, p;
    for (k = 0; k < vectors; k++, dst += 32) {
        TILECORE_VECTOR all = TILECORE_LOAD(self->mask[k][0]);
        for (p = 0; p < loads; p++) {
            const ptrdiff_t *const at = kept ? from + 2 * p : self->from[k][p];
            const TILECORE_VECTOR v = TILECORE_SHUFFLE(TILECORE_LOAD_HALVES(src + at[0], src + at[1]),
                                                       kept ? mask[p] : TILECORE_LOAD(self->mask[k][p]));
            all = p == 0 ? v : TILECORE_OR(all, v);
        }
        TILECORE_STORE(dst, all);
    }
}

/* Writes `count` groups of a row, at least a period, by periods. The last period overlaps the one before it. If some
 * group begins at an aligned address, the second period begins there, over the end of the first: so all but the first
 * and the last are aligned. */
TILECORE_INLINE TILECORE_TARGETED void TILECORE_NAME(deinterleave_groups)(
    const tilecore_shuffles *self, char *dst, const char *src, ptrdiff_t count, const int kept, const int loads)
{
    const int vectors = kept ? 1 : self->vectors;
    const ptrdiff_t groups = self->groups, step = self->step, group = self->items * self->item;
    const ptrdiff_t aligned = (32 - (ptrdiff_t)((uintptr_t)dst & 31)) * groups;
    const ptrdiff_t n = vectors == 1 && aligned % 32 == 0 ? aligned / 32 : groups, forward = groups * step;
    char *const last = dst + (count - groups) * group;
    const char *const last_src = src + (count - groups) * step;
    TILECORE_VECTOR mask[4];
    ptrdiff_t from[8];
    int p;
    for (p = 0; kept && p < loads; p++) {
        mask[p] = TILECORE_LOAD(self->mask[0][p]);
        from[2 * p] = self->from[0][p][0];
        from[2 * p + 1] = self->from[0][p][1];
    }
    TILECORE_NAME(deinterleave_period)(self, mask, from, dst, src, kept, loads);
    for (dst += n * group, src += n * step; dst < last; dst += 32 * vectors, src += forward)
        TILECORE_NAME(deinterleave_period)(self, mask, from, dst, src, kept, loads);
    TILECORE_NAME(deinterleave_period)(self, mask, from, last, last_src, kept, loads);
}

/* Writes `count` groups of a row. Items of fewer groups than a period are copied singly. */
TILECORE_TARGETED static void TILECORE_NAME(deinterleave_row)(const tilecore_shuffles *self, char *dst, const char *src,
                                                              ptrdiff_t count)
{
    tilecore_rows rows;
    ptrdiff_t k;
    if (count >= self->groups) {
        switch (self->loads * 2 + (self->vectors == 1)) { /* with constants, loops have no branches */
        case 2: TILECORE_NAME(deinterleave_groups)(self, dst, src, count, 0, 1); return;
        case 3: TILECORE_NAME(deinterleave_groups)(self, dst, src, count, 1, 1); return;
        case 4: TILECORE_NAME(deinterleave_groups)(self, dst, src, count, 0, 2); return;
        case 5: TILECORE_NAME(deinterleave_groups)(self, dst, src, count, 1, 2); return;
        case 6: TILECORE_NAME(deinterleave_groups)(self, dst, src, count, 0, 3); return;
        case 7: TILECORE_NAME(deinterleave_groups)(self, dst, src, count, 1, 3); return;
        case 9: TILECORE_NAME(deinterleave_groups)(self, dst, src, count, 1, 4); return;
        default: TILECORE_NAME(deinterleave_groups)(self, dst, src, count, 0, self->loads); return;
        }
    }
    rows.row = self->item;
    rows.src_pitch = self->step;
    rows.dst_pitch = self->items * self->item;
    for (k = 0; k < self->items; k++)
        TILECORE_NAME(copies)(&rows, dst + k * self->item, src + k * self->along, count, 1);
}

TILECORE_TARGETED static void TILECORE_NAME(deinterleave)(const tilecore_shuffles *self, char *dst, ptrdiff_t dst_pitch,
                                                          const char *src, ptrdiff_t src_pitch, ptrdiff_t rows,
                                                          ptrdiff_t count, int stream)
{
    enum { PART = 3840 }; /* of whole groups of 1 to 4 items, and of whole cache lines */
    const ptrdiff_t group = self->items * self->item;
    TILECORE_ASSERT(count > 0 && (rows == 1 || dst_pitch >= count * group || -dst_pitch >= count * group));
    for (; rows > 0; rows--, dst += dst_pitch, src += src_pitch) {
        if (stream) { /* by way of the first-level cache */
            TILECORE_ALIGNED char lines[PART];
            const ptrdiff_t head = (ptrdiff_t)((uintptr_t)dst & 63);
            ptrdiff_t i = 0, n = (PART - (head % group ? 0 : head)) / group;
            for (; i < count; i += n, n = PART / group) {
                if (n > count - i) n = count - i;
                TILECORE_NAME(deinterleave_row)(self, lines, src + i * self->step, n);
                TILECORE_NAME(stream)(dst + i * group, lines, n * group);
            }
        } else {
            TILECORE_NAME(deinterleave_row)(self, dst, src, count);
        }
    }
}
