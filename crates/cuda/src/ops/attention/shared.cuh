// What the attention kernels share: constants from the macros, arguments, rows in shared memory, fragments, dropout.
//
// The text compiled is: macros, kernels/prelude.cuh, this file, one .cu file. Macros: T (float, bf16, f16), HEAD, TQ, TK,
// H, G, B, CAUSAL, KV_LEN, DROPOUT (threshold of 16 bits, 0 = none), SITE_LO, SITE_HI, SCALE, WARPS, and for each
// [B, T, heads, HEAD] operand its strides in elements: Q_SB, Q_ST, Q_SH and so on for K, V, O, DO, DQ, DK, DV (the last
// axis has stride 1). Tensor-core kernels need HEAD, every stride and every address to be a multiple of 8 elements.
// Sums, softmax and statistics are f32; a sum is always taken in one fixed order.
#pragma once

constexpr float LOG2E = 1.4426950408889634f, LN2 = 0.6931471805599453f;
// Scores are kept in units of log 2: exp(SCALE s) = exp2(FACTOR s).
constexpr float FACTOR = float(SCALE) * LOG2E;
// The score that no key reaches: its weight is exactly 0.
#define HIDDEN (FACTOR < 0 ? INF : -INF)
constexpr int GROUP = H / G, QUERY_TILES = (TQ + 15) / 16, KEY_TILES = (TK + 15) / 16;

#if KV_LEN
#define KV_LEN_PARAM , const u32* __restrict__ kv_len
#define VALID_KEYS(sample) int(min(kv_len[sample], u32(TK)))
#else
#define KV_LEN_PARAM
#define VALID_KEYS(sample) TK
#endif

#if DROPOUT
#define DROPOUT_PARAMS , const u32* __restrict__ seed, const u32* __restrict__ step, const u32* __restrict__ samples
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
    __device__ __forceinline__ uint4 tile(int row, int col, int lane) const {
        return dropout_words(key, step, sample, head, row, col, lane);
    }
#else
    __device__ __forceinline__ uint4 tile(int, int, int) const { return make_uint4(0, 0, 0, 0); }
#endif
    // What kept weights are multiplied by, and its inverse.
    static __device__ __forceinline__ float scale() { return dropout_scale(DROPOUT); }
    static __device__ __forceinline__ float rate() { return float(65536 - DROPOUT) / 65536.0f; }
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

#ifndef SIMPLE
// Rows of HEAD elements in shared memory, padded with zeros to a multiple of 16, in chunks of 8 elements (16 bytes).
// Chunks are permuted (or rows padded) so that ldmatrix meets no bank twice. Tiles start at multiples of 16 rows.
constexpr int CHUNKS = (HEAD + 15) / 16 * 2, STEPS = CHUNKS / 2, COLS = HEAD / 8;
constexpr bool PERMUTED = CHUNKS == 2 || CHUNKS == 4 || CHUNKS % 8 == 0;
constexpr int ROW = (PERMUTED ? CHUNKS : CHUNKS + 1) * 8;

__device__ __forceinline__ int place(int row, int chunk) {
    int x = CHUNKS == 2 ? (row >> 2) & 1 : CHUNKS == 4 ? (row >> 1) & 3 : row & 7;
    return row * ROW + (PERMUTED ? chunk ^ x : chunk) * 8;
}

// Starts the copy of rows `from`..`from + count` to shared memory; rows from `end` on become zeros.
template <int THREADS> __device__ __forceinline__ void fetch(T* to, const T* source, int stride, int from, int count, int end) {
    for (int n = threadIdx.x; n < count * CHUNKS; n += THREADS) {
        int row = n / CHUNKS, chunk = n % CHUNKS;
        bool valid = from + row < end && chunk < COLS;
        cp_async16(to + place(row, chunk), valid ? source + size_t(from + row) * stride + chunk * 8 : source, valid);
    }
}

// Fragments of the 16 x 16 piece `k` of a tile of 16 rows x HEAD:
// as a (rows down, elements along);
__device__ __forceinline__ void load_a(u32 (&r)[4], const T* tile, int k, int lane) {
    ldmatrix4(r, tile + place(lane % 16, k * 2 + lane / 16));
}
// as b, elements down, 16 rows along: r[0], r[1] for the first 8 rows, r[2], r[3] for the others;
__device__ __forceinline__ void load_b(u32 (&r)[4], const T* tile, int k, int lane) {
    ldmatrix4(r, tile + place(lane / 16 * 8 + lane % 8, k * 2 + lane / 8 % 2));
}
// as b, rows down, 16 elements along: r[0], r[1] for the first 8 elements, r[2], r[3] for the others.
__device__ __forceinline__ void load_bt(u32 (&r)[4], const T* tile, int k, int lane) {
    ldmatrix4_trans(r, tile + place(lane % 16, k * 2 + lane / 16));
}
// The a fragments of 16 rows straight from memory; rows from `end` on, and elements from HEAD on, are zeros.
__device__ __forceinline__ void load_rows(u32 (&r)[STEPS][4], const T* source, int stride, int from, int end, int lane) {
#pragma unroll
    for (int k = 0; k < STEPS; k++)
#pragma unroll
        for (int n = 0; n < 4; n++) {
            int row = from + lane / 4 + n % 2 * 8, chunk = k * 2 + n / 2;
            bool valid = row < end && chunk < COLS;
            r[k][n] = valid ? *(const u32*)(source + size_t(row) * stride + chunk * 8 + lane % 4 * 2) : 0;
        }
}

// c (16 x 16 as two accumulators) += a b over HEAD.
__device__ __forceinline__ void product(float (&c)[2][4], const u32 (&a)[STEPS][4], const T* tile, int lane) {
#pragma unroll
    for (int k = 0; k < STEPS; k++) {
        u32 b[4];
        load_b(b, tile, k, lane);
        mma16<T>(c[0], a[k], b[0], b[1]);
        mma16<T>(c[1], a[k], b[2], b[3]);
    }
}
// c (16 x HEAD) += a (16 x 16) tile.
__device__ __forceinline__ void spread(float (&c)[COLS][4], const u32 (&a)[4], const T* tile, int lane) {
#pragma unroll
    for (int k = 0; k < STEPS; k++) {
        u32 b[4];
        load_bt(b, tile, k, lane);
        mma16<T>(c[2 * k], a, b[0], b[1]);
        if (2 * k + 1 < COLS) mma16<T>(c[2 * k + 1 < COLS ? 2 * k + 1 : 0], a, b[2], b[3]);
    }
}
// Stores 16 x HEAD sums times `up` (rows r) and `down` (rows r + 8); rows from `end` on are left out.
__device__ __forceinline__ void store_rows(T* to, int stride, int from, int end, const float (&c)[COLS][4], float up, float down,
                                           int lane) {
    int row = from + lane / 4;
    T* at = to + size_t(row) * stride + lane % 4 * 2;
#pragma unroll
    for (int n = 0; n < COLS; n++) {
        if (row < end) *(u32*)(at + n * 8) = pack2<T>(c[n][0] * up, c[n][1] * up);
        if (row + 8 < end) *(u32*)(at + size_t(8) * stride + n * 8) = pack2<T>(c[n][2] * down, c[n][3] * down);
    }
}
// Two accumulators side by side as an a fragment.
__device__ __forceinline__ void pack_a(u32 (&a)[4], const float (&c)[2][4]) {
#pragma unroll
    for (int n = 0; n < 2; n++) {
        a[2 * n] = pack2<T>(c[n][0], c[n][1]);
        a[2 * n + 1] = pack2<T>(c[n][2], c[n][3]);
    }
}
__device__ __forceinline__ u32 word_of(uint4 w, int n) { return n == 0 ? w.x : n == 1 ? w.y : n == 2 ? w.z : w.w; }

// Shares `tiles` out to the warps so that causal work is even: turn 0 takes the last tiles, forth; turn 1 the next,
// back; and so on. Negative: no tile in this turn.
__device__ __forceinline__ int turn_tile(int tiles, int turn, int warp) {
    return tiles - 1 - (turn % 2 ? (turn + 1) * WARPS - 1 - warp : turn * WARPS + warp);
}
#endif
