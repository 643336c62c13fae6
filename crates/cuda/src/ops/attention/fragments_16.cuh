// Tensor-core fragments of bf16 and f16: rows in shared memory, mma.m16n8k16, ldmatrix. Instead of fragments_tf32.cuh.
#pragma once

// Rows of HEAD elements in shared memory, padded with zeros to a multiple of 16, in chunks of 8 elements (16 bytes).
// Chunks are permuted (or rows padded) so that ldmatrix meets no bank twice. Tiles start at multiples of 16 rows.
constexpr int CHUNKS = (HEAD + 15) / 16 * 2, STEPS = CHUNKS / 2, COLS = HEAD / 8;
constexpr int CHUNK = 8, PACKED = 4;
constexpr bool PERMUTED = CHUNKS == 2 || CHUNKS == 4 || CHUNKS % 8 == 0;
constexpr int ROW = (PERMUTED ? CHUNKS : CHUNKS + 1) * 8;

__device__ __forceinline__ int place(int row, int chunk) {
    int x = CHUNKS == 2 ? (row >> 2) & 1 : CHUNKS == 4 ? (row >> 1) & 3 : row & 7;
    return row * ROW + (PERMUTED ? chunk ^ x : chunk) * 8;
}

// 16-bit elements are used as they come.
__device__ __forceinline__ void settle(T*, int) {}

// Fragments of the 16 x 16 piece `k` of a tile of 16 rows x HEAD in shared memory. `at` is the address of a lane's place in piece 0;
// with permuted chunks `place` tells where the others lie.
// As b, elements down, 16 rows along: r[0], r[1] for the first 8 rows, r[2], r[3] for the others;
__device__ __forceinline__ int lane_b(int lane) { return place(lane / 16 * 8 + lane % 8, lane / 8 % 2); }
// as b, rows down, 16 elements along: r[0], r[1] for the first 8 elements, r[2], r[3] for the others.
__device__ __forceinline__ int lane_bt(int lane) { return place(lane % 16, lane / 16); }
__device__ __forceinline__ void ldmatrix4(u32 (&r)[4], u32 row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(row) : "memory");
}
__device__ __forceinline__ void ldmatrix4_trans(u32 (&r)[4], u32 row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(row) : "memory");
}
__device__ __forceinline__ u32 piece(u32 at, int place, int k) {
    return k == 0 ? at : PERMUTED ? at + ((place ^ k * 16) - place) * 2 : at + k * 32;
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

// c (16 x 16 as two accumulators) += a b over HEAD; `at` as lane_b has it. FIRST: only the first of the two.
template <bool FIRST = false>
__device__ __forceinline__ void product(float (&c)[2][4], const u32 (&a)[STEPS][4], u32 at, int place) {
#pragma unroll
    for (int k = 0; k < STEPS; k++) {
        u32 b[4];
        ldmatrix4(b, piece(at, place, k));
        mma16<T>(c[0], a[k], b[0], b[1]);
        if (!FIRST) mma16<T>(c[1], a[k], b[2], b[3]);
    }
}
// c (16 x HEAD) += a (16 x 16) tile; `at` as lane_bt has it.
__device__ __forceinline__ void spread(float (&c)[COLS][4], const u32 (&a)[PACKED], u32 at, int place) {
#pragma unroll
    for (int k = 0; k < STEPS; k++) {
        u32 b[4];
        ldmatrix4_trans(b, piece(at, place, k));
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
__device__ __forceinline__ void pack_a(u32 (&a)[PACKED], const float (&c)[2][4]) {
#pragma unroll
    for (int n = 0; n < 2; n++) {
        a[2 * n] = pack2<T>(c[n][0], c[n][1]);
        a[2 * n + 1] = pack2<T>(c[n][2], c[n][3]);
    }
}

// Weights that dropout leaves, as an a fragment.
__device__ __forceinline__ void pack_kept(u32 (&a)[PACKED], const float (&p)[2][4], uint4 words) {
    pack_a(a, p);
#pragma unroll
    for (int n = 0; n < 4; n++) a[n] &= Decisions::halves(word_of(words, n));
}
// The products of two pairs.
template <typename E> __device__ __forceinline__ u32 mul2(u32 a, u32 b);
template <> __device__ __forceinline__ u32 mul2<bf16>(u32 a, u32 b) {
    u32 y;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(y) : "r"(a), "r"(b), "r"(0x80008000u));
    return y;
}
template <> __device__ __forceinline__ u32 mul2<f16>(u32 a, u32 b) {
    u32 y;
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(y) : "r"(a), "r"(b));
    return y;
}
