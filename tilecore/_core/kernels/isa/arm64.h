/* NEON shuffles 16 bytes. Every 64-bit Arm has it. */
#define TILECORE_NAME(name) tilecore_##name##_arm64
#define TILECORE_HALF uint8x16_t
#define TILECORE_LOAD_HALF(p) vld1q_u8((const uint8_t *)(const void *)(p))
#define TILECORE_STORE_HALF(p, h) vst1q_u8((uint8_t *)(void *)(p), h)
#define TILECORE_WORDS_HALF(low, high) \
    vcombine_u8(vcreate_u8((uint64_t)(low)), vcreate_u8((uint64_t)(high)))
#define TILECORE_SHUFFLE_HALF(h, mask) vqtbl1q_u8(h, mask)
#define TILECORE_OR_HALF(a, b) vorrq_u8(a, b)
#define TILECORE_ZIP(end, bits, a, b) TILECORE_ZIP_##bits(TILECORE_ZIP_##end, a, b)
#define TILECORE_ZIP_lo(bits) vzip1q_u##bits
#define TILECORE_ZIP_hi(bits) vzip2q_u##bits
#define TILECORE_ZIP_8(zip, a, b) zip(8)(a, b)
#define TILECORE_ZIP_16(zip, a, b) vreinterpretq_u8_u16(zip(16)(vreinterpretq_u16_u8(a), vreinterpretq_u16_u8(b)))
#define TILECORE_ZIP_32(zip, a, b) vreinterpretq_u8_u32(zip(32)(vreinterpretq_u32_u8(a), vreinterpretq_u32_u8(b)))
#define TILECORE_ZIP_64(zip, a, b) vreinterpretq_u8_u64(zip(64)(vreinterpretq_u64_u8(a), vreinterpretq_u64_u8(b)))
#include "begin.h"
#include "shuffle_set.h"

TILECORE_SET(arm64, arm64, arm64, arm64, 0, TILECORE_BY_TILES, NULL);
#include "end.h"
