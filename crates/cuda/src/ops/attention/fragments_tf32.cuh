// Tensor-core fragments of f32 rounded to TF32: rows in shared memory, mma.m16n8k8. Instead of fragments_16.cuh.
#pragma once

// Rows of HEAD elements in shared memory, a multiple of 8, in chunks of 4 (16 bytes). A row's stride is 4 modulo 16 words, so
// that neither way of reading fragments meets a bank twice.
constexpr int CHUNKS = HEAD / 4, STEPS = HEAD / 8, COLS = HEAD / 8;
constexpr int CHUNK = 4, PACKED = 8;
constexpr int ROW = HEAD % 16 == 0 ? HEAD + 4 : HEAD + 12;

__device__ __forceinline__ int place(int row, int chunk) { return row * ROW + chunk * 4; }

// Rounds what this thread fetched, once it has arrived.
__device__ __forceinline__ void settle(T* rows, int count) {
    for (int n = threadIdx.x % (WARPS * 32); n < count * CHUNKS; n += WARPS * 32) {
        uint4* at = (uint4*)(rows + place(n / CHUNKS, n % CHUNKS));
        uint4 x = *at;
        *at = make_uint4(to_tf32(__uint_as_float(x.x)), to_tf32(__uint_as_float(x.y)), to_tf32(__uint_as_float(x.z)),
                         to_tf32(__uint_as_float(x.w)));
    }
}

// The a fragments of 16 rows straight from memory; rows from `end` on are zeros.
__device__ __forceinline__ void load_rows(u32 (&r)[STEPS][4], const T* source, int stride, int from, int end, int lane) {
#pragma unroll
    for (int k = 0; k < STEPS; k++)
#pragma unroll
        for (int n = 0; n < 4; n++) {
            int row = from + lane / 4 + n % 2 * 8, i = k * 8 + n / 2 * 4 + lane % 4;
            r[k][n] = row < end ? to_tf32(source[size_t(row) * stride + i]) : 0;
        }
}

__device__ __forceinline__ u32 word_at(u32 at) {
    u32 x;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(at) : "memory");
    return x;
}
// Where a lane's elements of a tile start for `product`, and for `spread`, in elements.
__device__ __forceinline__ int lane_b(int lane) { return lane / 4 * ROW + lane % 4; }
__device__ __forceinline__ int lane_bt(int lane) { return lane % 4 * 2 * ROW + lane / 4; }

// c (16 x 16 as two accumulators) += a b over HEAD; `at` is the address of a lane's place.
__device__ __forceinline__ void product(float (&c)[2][4], const u32 (&a)[STEPS][4], u32 at, int) {
#pragma unroll
    for (int k = 0; k < STEPS; k++)
#pragma unroll
        for (int n = 0; n < 2; n++)
            mma8_tf32(c[n], a[k], word_at(at + (n * 8 * ROW + k * 8) * 4), word_at(at + (n * 8 * ROW + k * 8 + 4) * 4));
}
// c (16 x HEAD) += a (16 x 16) tile. Rows 2 q and 2 q + 1 stand where mma has rows q and q + 4: see pack_a.
__device__ __forceinline__ void spread(float (&c)[COLS][4], const u32 (&a)[PACKED], u32 at, int) {
#pragma unroll
    for (int n = 0; n < 2; n++) {
        u32 half[4] = {a[4 * n], a[4 * n + 1], a[4 * n + 2], a[4 * n + 3]};
#pragma unroll
        for (int i = 0; i < COLS; i++)
            mma8_tf32(c[i], half, word_at(at + (n * 8 * ROW + i * 8) * 4), word_at(at + ((n * 8 + 1) * ROW + i * 8) * 4));
    }
}
// Stores 16 x HEAD sums times `up` (rows r) and `down` (rows r + 8); rows from `end` on are left out.
__device__ __forceinline__ void store_rows(T* to, int stride, int from, int end, const float (&c)[COLS][4], float up, float down,
                                           int lane) {
    int row = from + lane / 4;
    T* at = to + size_t(row) * stride + lane % 4 * 2;
#pragma unroll
    for (int n = 0; n < COLS; n++) {
        if (row < end) *(float2*)(at + n * 8) = make_float2(c[n][0] * up, c[n][1] * up);
        if (row + 8 < end) *(float2*)(at + size_t(8) * stride + n * 8) = make_float2(c[n][2] * down, c[n][3] * down);
    }
}
// Two accumulators side by side as two a fragments, in which columns 2 q and 2 q + 1 stand where mma has q and q + 4.
__device__ __forceinline__ void pack_a(u32 (&a)[PACKED], const float (&c)[2][4]) {
#pragma unroll
    for (int n = 0; n < 2; n++) {
        a[4 * n] = to_tf32(c[n][0]);
        a[4 * n + 1] = to_tf32(c[n][2]);
        a[4 * n + 2] = to_tf32(c[n][1]);
        a[4 * n + 3] = to_tf32(c[n][3]);
    }
}
// Weights that dropout leaves, as a fragments.
__device__ __forceinline__ void pack_kept(u32 (&a)[PACKED], float (&p)[2][4], uint4 words) {
#pragma unroll
    for (int n = 0; n < 8; n++) Decisions::drop(p[n / 4][n % 4], word_of(words, n / 4 * 2 + n % 4 / 2), n % 2);
    pack_a(a, p);
}
