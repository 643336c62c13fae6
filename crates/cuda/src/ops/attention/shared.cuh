// What the attention kernels share: constants from the macros, arguments, rows in shared memory, fragments, dropout.
//
// The text compiled is: macros, kernels/prelude.cuh, this file; for the simple kernels simple.cuh, for those on tensor cores
// fragments_16.cuh or (T float) fragments_tf32.cuh, tiles.cuh and for gradients backward_start.cuh or backward_tile.cuh; for
// few queries few.cuh; then one .cu file.
// Macros: T (float, bf16, f16), HEAD, TQ, TK, H, G, B, CAUSAL, KV_LEN, DROPOUT (threshold of 16 bits, 0 = none), SITE_LO,
// SITE_HI, SCALE, and for each [B, T, heads, HEAD] operand its strides in elements: Q_SB, Q_ST, Q_SH and so on for K, V, O,
// DO, DQ, DK, DV (the last axis has stride 1); for tensor cores also WARPS (of a block) and, where a kernel says so, HEADS (of
// a block), WHOLE, BLOCK. Tensor-core kernels need HEAD and every stride to be a multiple of 8 elements, and addresses of 16
// bytes. Sums, softmax and statistics are f32; a sum is always taken in one fixed order.
#pragma once

constexpr float LOG2E = 1.4426950408889634f, LN2 = 0.6931471805599453f;
// Scores are kept in units of log 2: exp(SCALE s) = exp2(FACTOR s).
constexpr float FACTOR = float(SCALE) * LOG2E;
constexpr int GROUP = H / G, QUERY_TILES = (TQ + 15) / 16, KEY_TILES = (TK + 15) / 16;

#if KV_LEN
#define KV_LEN_PARAM , const u32* kv_len
#define VALID_KEYS(sample) int(min(kv_len[sample], u32(TK)))
#else
#define KV_LEN_PARAM
#define VALID_KEYS(sample) TK
#endif

#if DROPOUT
#define DROPOUT_PARAMS , const u32* seed, const u32* step, const u32* samples
#define DROPOUT_OF(sample, head) Decisions(seed, step, samples[sample], head)
#else
#define DROPOUT_PARAMS
#define DROPOUT_OF(sample, head) Decisions()
#endif
#define EXTRA_PARAMS KV_LEN_PARAM DROPOUT_PARAMS

// Which weights of one head of one sample are kept. `tile` gives a lane's eight decisions of a 16 x 16 tile.
struct Decisions {
#if DROPOUT
    uint2 key;
    u32 step, sample, head;
    __device__ __forceinline__ Decisions(const u32* seed, const u32* at, u32 of, u32 plane)
        : key(dropout_key(seed[0], seed[1], SITE_LO, SITE_HI)), step(at[0]), sample(of), head(plane) {}
    __device__ __forceinline__ void of_head(int plane) { head = plane; }
    __device__ __forceinline__ uint4 tile(int row, int col, int lane) const {
        return dropout_words(key, step, sample, head, row, col, lane);
    }
    // One decision by itself.
    __device__ __forceinline__ bool keeps_one(int row, int col) const {
        uint4 words = tile(row / 16, col / 16, row % 8 * 4 + col % 8 / 2);
        return dropout_bit(dropout_word(words, row % 16 / 8, col % 16 / 8), col % 2, DROPOUT);
    }
#else
    __device__ __forceinline__ void of_head(int) {}
    __device__ __forceinline__ uint4 tile(int, int, int) const { return make_uint4(0, 0, 0, 0); }
    __device__ __forceinline__ bool keeps_one(int, int) const { return true; }
#endif
    // What kept weights are multiplied by, and its inverse.
    static __device__ __forceinline__ float scale() { return dropout_scale(DROPOUT); }
    static __device__ __forceinline__ float rate() { return float(65536 - DROPOUT) / 65536.0f; }
    // Zeroes x where its decision is to drop. A predicated product keeps the busy integer pipe free of a select.
    static __device__ __forceinline__ void drop(float& x, u32 word, int odd) {
#if DROPOUT
        asm("{.reg .pred d; setp.lt.u32 d, %1, %2; @d mul.rn.f32 %0, %0, 0f00000000;}"
            : "+f"(x) : "r"(odd ? word : word << 16), "r"(u32(DROPOUT) << 16));
#endif
    }
    // One weight of the gradient: x (do v - r delta on entry) becomes weight (m do v - r delta), weight becomes m weight.
    // `rest` is -r delta.
    static __device__ __forceinline__ void drop_gradient(float& x, float& weight, float rest, u32 word, int odd) {
#if DROPOUT
        asm("{.reg .pred d; setp.lt.u32 d, %3, %4; @d fma.rn.f32 %0, %0, 0f00000000, %2; mul.rn.f32 %0, %0, %1; @d mul.rn.f32 %1, %1, 0f00000000;}"
            : "+f"(x), "+f"(weight) : "f"(rest), "r"(odd ? word : word << 16), "r"(u32(DROPOUT) << 16));
#else
        x *= weight;
#endif
    }
    // All bits of those halves of a word whose decision is to keep.
    static __device__ __forceinline__ u32 halves(u32 word) {
#if DROPOUT > 0x7c00
        return (word >= u32(DROPOUT) << 16 ? 0xffff0000u : 0) | ((word & 0xffffu) >= DROPOUT ? 0xffffu : 0);
#elif DROPOUT
        // Kept are a half with its upper bit set, and one whose other bits, read as an f16, are the threshold or more or no number.
        u32 high, low;
        asm("prmt.b32 %0, %1, 0, 0xbb99;" : "=r"(high) : "r"(word));
        asm("{.reg .b32 t; abs.f16x2 t, %1; set.geu.u32.f16x2 %0, t, %2;}" : "=r"(low) : "r"(word), "r"(u32(DROPOUT) * 0x10001u));
        return high | low;
#else
        return 0xffffffffu;
#endif
    }
    static __device__ __forceinline__ bool keeps(u32 word, int odd) {
#if DROPOUT
        return dropout_bit(word, odd, DROPOUT);
#else
        return true;
#endif
    }
};

// Keys that query `row` sees, of `valid`.
__device__ __forceinline__ int visible(int row, int valid) { return CAUSAL ? min(valid, row + 1) : valid; }

__device__ __forceinline__ u32 word_of(uint4 w, int n) { return n == 0 ? w.x : n == 1 ? w.y : n == 2 ? w.z : w.w; }
