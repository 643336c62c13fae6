// What the simple attention kernels share: a row of HEAD elements spread over LANES lanes, each with QUADS groups of four.
//
// For any T (float, bf16, f16), any HEAD up to 256, any strides and any extents; arithmetic is f32. Compiled with SIMPLE
// defined. Element (4 (n LANES + part) + c) of a row is component c of group n of lane `part`: lanes that share a row read
// shared memory without bank conflicts.
#pragma once

constexpr int LANES = HEAD <= 32 ? 1 : HEAD <= 64 ? 2 : HEAD <= 128 ? 4 : 8;
constexpr int QUADS = (HEAD + 4 * LANES - 1) / (4 * LANES), WIDTH = 4 * QUADS * LANES;
static_assert(HEAD <= 256, "the simple attention kernels take heads up to 256");
constexpr int THREADS = 64, ROWS = THREADS / LANES;
// Rows of the other side in shared memory at a time: two arrays of at most 16 KB each.
constexpr int BLOCK = WIDTH <= 64 ? 64 : WIDTH <= 128 ? 32 : 16;

struct Row {
    float4 x[QUADS];
};

__device__ __forceinline__ Row zeros() {
    Row r;
#pragma unroll
    for (int n = 0; n < QUADS; n++) r.x[n] = make_float4(0, 0, 0, 0);
    return r;
}
__device__ __forceinline__ Row read_row(const T* row, bool inside, int part) {
    Row r;
#pragma unroll
    for (int n = 0; n < QUADS; n++) {
        float x[4];
#pragma unroll
        for (int c = 0; c < 4; c++) {
            int i = 4 * (n * LANES + part) + c;
            x[c] = inside && i < HEAD ? to_f32(row[i]) : 0.0f;
        }
        r.x[n] = make_float4(x[0], x[1], x[2], x[3]);
    }
    return r;
}
__device__ __forceinline__ void write_row(T* row, const Row& r, float factor, int part) {
#pragma unroll
    for (int n = 0; n < QUADS; n++) {
        float x[4] = {r.x[n].x, r.x[n].y, r.x[n].z, r.x[n].w};
#pragma unroll
        for (int c = 0; c < 4; c++) {
            int i = 4 * (n * LANES + part) + c;
            if (i < HEAD) row[i] = from_f32<T>(x[c] * factor);
        }
    }
}
// Rows `from`.. of a tensor to shared memory; rows from `end` on are zeros.
__device__ __forceinline__ void read_block(float* to, const T* source, int stride, int from, int end) {
    for (int n = threadIdx.x; n < BLOCK * WIDTH; n += THREADS) {
        int row = from + n / WIDTH, i = n % WIDTH;
        to[n] = row < end && i < HEAD ? to_f32(source[size_t(row) * stride + i]) : 0.0f;
    }
}
__device__ __forceinline__ float4 quad(const float* row, int n, int part) { return *(const float4*)(row + 4 * (n * LANES + part)); }

// Sum over HEAD of a row and one in shared memory; every lane of the row gets it.
__device__ __forceinline__ float dot(const Row& a, const float* row, int part) {
    float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll
    for (int n = 0; n < QUADS; n++) {
        float4 b = quad(row, n, part);
        sum.x = fmaf(a.x[n].x, b.x, sum.x);
        sum.y = fmaf(a.x[n].y, b.y, sum.y);
        sum.z = fmaf(a.x[n].z, b.z, sum.z);
        sum.w = fmaf(a.x[n].w, b.w, sum.w);
    }
    return warp_sum<LANES>((sum.x + sum.y) + (sum.z + sum.w));
}
__device__ __forceinline__ void add(Row& a, float factor, const float* row, int part) {
#pragma unroll
    for (int n = 0; n < QUADS; n++) {
        float4 b = quad(row, n, part);
        a.x[n].x = fmaf(factor, b.x, a.x[n].x);
        a.x[n].y = fmaf(factor, b.y, a.x[n].y);
        a.x[n].z = fmaf(factor, b.z, a.x[n].z);
        a.x[n].w = fmaf(factor, b.w, a.x[n].w);
    }
}
// The four columns of a tile of 16 that one call of Philox decides for a row: 2 n, 2 n + 1, 2 n + 8, 2 n + 9.
__device__ __forceinline__ int column(int n, int c) { return 2 * n + c % 2 + c / 2 * 8; }
// Keep or not, for these four.
__device__ __forceinline__ bool keeps_column(uint4 words, int row, int c) {
    return Decisions::keeps(dropout_word(words, row % 16 / 8, c / 2), c % 2);
}
