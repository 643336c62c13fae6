// What the kernels for few queries share: rows of HEAD elements spread over lanes, decisions of dropout drawn together.
//
// For any T (float, bf16, f16), any HEAD up to 256, any extents; arithmetic is f32. LANES lanes side by side hold one row, 8
// elements each; a block has SLOTS rows of keys in hand at a time, UNROLL times. Macros beside those of shared.cuh: WARPS (of a
// block), UNROLL, ROWS (queries of a block) and VECTOR (1: HEAD and every stride are multiples of 8 elements, addresses of 16
// bytes; 0: anything goes).
#pragma once

constexpr int EACH = 8;
constexpr int LANES = HEAD <= 8 ? 1 : HEAD <= 16 ? 2 : HEAD <= 32 ? 4 : HEAD <= 64 ? 8 : HEAD <= 128 ? 16 : 32;
constexpr int WIDTH = LANES * EACH, SLOTS = WARPS * 32 / LANES;
static_assert(HEAD <= 256, "the attention kernels for few queries take heads up to 256");

// A lane's elements of a row.
struct Piece {
    float x[EACH];
};

__device__ __forceinline__ Piece zeros() {
    Piece r;
#pragma unroll
    for (int n = 0; n < EACH; n++) r.x[n] = 0;
    return r;
}
__device__ __forceinline__ Piece read_piece(const T* row, bool inside, int part) {
    Piece r = zeros();
#if VECTOR
    if (inside && part * EACH < HEAD) {
        uint4 raw[sizeof(T) / 2];
#pragma unroll
        for (int n = 0; n < sizeof(T) / 2; n++) raw[n] = ((const uint4*)(row + part * EACH))[n];
        const T* x = (const T*)raw;
#pragma unroll
        for (int n = 0; n < EACH; n++) r.x[n] = to_f32(x[n]);
    }
#else
#pragma unroll
    for (int n = 0; n < EACH; n++)
        if (inside && part * EACH + n < HEAD) r.x[n] = to_f32(row[part * EACH + n]);
#endif
    return r;
}
__device__ __forceinline__ void write_piece(T* row, const Piece& r, float factor, int part) {
#if VECTOR
    if (part * EACH >= HEAD) return;
    uint4 raw[sizeof(T) / 2];
    T* x = (T*)raw;
#pragma unroll
    for (int n = 0; n < EACH; n++) x[n] = from_f32<T>(r.x[n] * factor);
#pragma unroll
    for (int n = 0; n < sizeof(T) / 2; n++) ((uint4*)(row + part * EACH))[n] = raw[n];
#else
#pragma unroll
    for (int n = 0; n < EACH; n++)
        if (part * EACH + n < HEAD) row[part * EACH + n] = from_f32<T>(r.x[n] * factor);
#endif
}

// Sum over HEAD of the products of two rows; every lane of the row gets it.
__device__ __forceinline__ float dot(const Piece& a, const Piece& b) {
    float even = 0, odd = 0;
#pragma unroll
    for (int n = 0; n < EACH; n += 2) even = fmaf(a.x[n], b.x[n], even), odd = fmaf(a.x[n + 1], b.x[n + 1], odd);
    return warp_sum<LANES>(even + odd);
}
__device__ __forceinline__ void add(Piece& a, float factor, const Piece& b) {
#pragma unroll
    for (int n = 0; n < EACH; n++) a.x[n] = fmaf(factor, b.x[n], a.x[n]);
}
// Sums of a piece over the rows that a warp holds, the same bits on each lane of a part.
__device__ __forceinline__ void sum_slots(Piece& a) {
#pragma unroll
    for (int d = LANES; d < 32; d *= 2)
#pragma unroll
        for (int n = 0; n < EACH; n++) a.x[n] += __shfl_xor_sync(FULL_WARP, a.x[n], d);
}

// Which of a slot's keys `key`, `key` + SLOTS and so on a query keeps: each lane of the slot draws for one of them.
struct Kept {
    u32 bits[(UNROLL + LANES - 1) / LANES];
    __device__ __forceinline__ Kept(const Decisions& drop, int row, int key) {
        int lane = threadIdx.x % 32;
#pragma unroll
        for (int n = 0; n < (UNROLL + LANES - 1) / LANES; n++)
            bits[n] = __ballot_sync(FULL_WARP, drop.keeps_one(row, key + (n * LANES + lane % LANES) * SLOTS)) >> (lane / LANES * LANES);
    }
    __device__ __forceinline__ bool operator[](int u) const { return bits[u / LANES] >> u % LANES & 1; }
};
