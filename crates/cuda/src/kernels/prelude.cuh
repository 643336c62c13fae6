// What every kernel source starts with: 16-bit floats, Philox and dropout, warp sums, copies and matrix instructions.
//
// It includes no CUDA header: what C++ lacks is inline PTX of sm_80 and newer. Names here are lower case or longer than
// one letter, since kernels are given macros such as T, B, H. "Row" and "lane" are as in the PTX manual.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

// One of the pairs that a launch's list of addresses holds.
struct Entry { u64 address, count; };

#define FULL_WARP 0xffffffffu
#define INF __int_as_float(0x7f800000)

// ---- element types ------------------------------------------------------------------------------------------------

// The upper half of an f32. Plain bits: arithmetic is done in f32.
struct bf16 { u16 bits; };
// IEEE half precision. Plain bits: arithmetic is done in f32.
struct f16 { u16 bits; };

__device__ __forceinline__ float to_f32(float x) { return x; }
__device__ __forceinline__ float to_f32(bf16 x) { return __uint_as_float(u32(x.bits) << 16); }
__device__ __forceinline__ float to_f32(f16 x) {
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
    return y;
}

// Rounds to the nearest, ties to even; beyond the range becomes infinity.
template <typename E> __device__ __forceinline__ E from_f32(float x);
template <> __device__ __forceinline__ float from_f32<float>(float x) { return x; }
template <> __device__ __forceinline__ bf16 from_f32<bf16>(float x) {
    bf16 y;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
    return y;
}
template <> __device__ __forceinline__ f16 from_f32<f16>(float x) {
    f16 y;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
    return y;
}

// Two 16-bit elements in one register, `lo` in the lower half (the lower address).
template <typename E> __device__ __forceinline__ u32 pack2(float lo, float hi);
template <> __device__ __forceinline__ u32 pack2<bf16>(float lo, float hi) {
    u32 y;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(hi), "f"(lo));
    return y;
}
template <> __device__ __forceinline__ u32 pack2<f16>(float lo, float hi) {
    u32 y;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(hi), "f"(lo));
    return y;
}

// The inverse of pack2.
template <typename E> __device__ __forceinline__ float2 unpack2(u32 x);
template <> __device__ __forceinline__ float2 unpack2<bf16>(u32 x) {
    return make_float2(__uint_as_float(x << 16), __uint_as_float(x & 0xffff0000u));
}
template <> __device__ __forceinline__ float2 unpack2<f16>(u32 x) {
    return make_float2(to_f32(f16{u16(x)}), to_f32(f16{u16(x >> 16)}));
}

// ---- quick functions (relative error about 2^-22; results below 2^-126 become 0) -----------------------------------

__device__ __forceinline__ float exp2_quick(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ __forceinline__ float log2_quick(float x) {
    float y;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ __forceinline__ float recip_quick(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// exp(-x^2 / 2), the density of the normal distribution times sqrt(2 pi).
__device__ __forceinline__ float normal_bell(float x) { return exp2_quick(x * x * -0.72134752f); }
// The distribution itself, from `bell` = normal_bell(x). For results of 32 bits: absolute error 1.5e-7 (Abramowitz and Stegun
// 1964, 7.1.26). For results that are stored in 16 bits: 1.4e-5, as 1/2 + x p(x^2) with p fitted on [0, 4.25^2] so that the ends are
// 0 and 1, by products and sums alone: units for these are many, for exponentials and reciprocals few.
template <bool HALF> __device__ __forceinline__ float normal_cdf(float x, float bell) {
    if (HALF) {
        float s = fminf(x * x, 18.0625f);
        float p = fmaf(s, 5.820938870e-11f, -5.531356706e-09f);
        p = fmaf(s, fmaf(s, fmaf(s, p, 2.322658190e-07f), -5.745619092e-06f), 9.464247705e-05f);
        p = fmaf(s, fmaf(s, fmaf(s, p, -1.115869498e-03f), 9.840071201e-03f), -6.638286263e-02f);
        return __saturatef(fmaf(x, fmaf(s, p, 0.39892325f), 0.5f));
    }
    float t = recip_quick(fmaf(0.23164189f, fabsf(x), 1.0f));
    float p = fmaf(t, fmaf(t, fmaf(t, fmaf(t, 1.061405429f, -1.453152027f), 1.421413741f), -0.284496736f), 0.254829592f);
    float tail = 0.5f * bell * t * p;
    return x < 0.0f ? tail : 1.0f - tail;
}

// ---- Philox4x32 of 7 rounds and dropout: equal to crates/ir/src/rng.rs and dropout.rs bit for bit ----------------------------

__device__ __forceinline__ uint4 philox(uint4 c, uint2 k) {
#pragma unroll
    for (int i = 0; i < 7; i++) {
        // One wide product is one instruction; __umulhi and a low product are two.
        u64 p0 = u64(0xD2511F53u) * c.x, p1 = u64(0xCD9E8D57u) * c.z;
        c = make_uint4(u32(p1 >> 32) ^ c.y ^ k.x, u32(p1), u32(p0 >> 32) ^ c.w ^ k.y, u32(p0));
        k.x += 0x9E3779B9u;
        k.y += 0xBB67AE85u;
    }
    return c;
}

// The key of a site under a seed of two words, low first.
__device__ __forceinline__ uint2 dropout_key(u32 seed_lo, u32 seed_hi, u32 site_lo, u32 site_hi) {
    return make_uint2(seed_lo ^ site_lo, seed_hi ^ site_hi);
}

// In attention: the eight 16-bit decisions of one lane of one 16 x 16 tile, as a thread of mma.m16n8k16 holds its accumulators.
__device__ __forceinline__ uint4 dropout_words(uint2 key, u32 step, u32 sample, u32 plane, u32 tile_row, u32 tile_col,
                                               u32 lane) {
    return philox(make_uint4(tile_row << 16 | tile_col, plane << 5 | lane, sample, step), key);
}

// Word (right, down) of a lane's four: x = left upper, y = left lower, z = right upper, w = right lower.
__device__ __forceinline__ u32 dropout_word(uint4 words, int down, int right) {
    return right ? (down ? words.w : words.z) : (down ? words.y : words.x);
}

// True if the even (odd = 0) or odd column of a word is kept. `threshold` is a constant in every kernel.
__device__ __forceinline__ bool dropout_bit(u32 word, int odd, u32 threshold) {
    return odd ? word >= (threshold << 16) : (word & 0xffffu) >= threshold;
}

// What kept elements are multiplied by.
__device__ __forceinline__ float dropout_scale(u32 threshold) { return 65536.0f / float(65536u - threshold); }

// Outside attention: the eight decisions on columns 8 group .. of a row, two columns to a word.
__device__ __forceinline__ uint4 dropout_row(uint2 key, u32 step, u32 sample, u32 row, u32 group) {
    return philox(make_uint4(row, group, sample, step), key);
}
// True if column `col` (mod 8) of a row is kept.
__device__ __forceinline__ bool dropout_keeps(uint4 words, u32 col, u32 threshold) {
    u32 word = col & 4 ? (col & 2 ? words.w : words.z) : (col & 2 ? words.y : words.x);
    return dropout_bit(word, col & 1, threshold);
}

// ---- sums over a warp: every lane gets the result, the same bits on each ---------------------------------------------

template <int WIDTH = 32> __device__ __forceinline__ float warp_sum(float x) {
#pragma unroll
    for (int d = WIDTH / 2; d > 0; d /= 2) x += __shfl_xor_sync(FULL_WARP, x, d);
    return x;
}
template <int WIDTH = 32> __device__ __forceinline__ float warp_max(float x) {
#pragma unroll
    for (int d = WIDTH / 2; d > 0; d /= 2) x = fmaxf(x, __shfl_xor_sync(FULL_WARP, x, d));
    return x;
}

// A sum over LANES lanes side by side, a power of two, that are all here; others need not be.
template <int LANES> __device__ __forceinline__ float row_sum(float x) {
    const u32 mask = LANES == 32 ? FULL_WARP : ((1u << LANES % 32) - 1) << (threadIdx.x % 32 / LANES * LANES);
#pragma unroll
    for (int d = LANES / 2; d > 0; d /= 2) x += __shfl_xor_sync(mask, x, d);
    return x;
}

// ---- copies to shared memory -----------------------------------------------------------------------------------------

__device__ __forceinline__ u32 shared_address(const void* p) { return u32(__cvta_generic_to_shared(p)); }

// 16 bytes, past L1; `valid` false writes zeros and reads nothing. Both addresses are multiples of 16.
__device__ __forceinline__ void cp_async16(void* to, const void* from, bool valid = true) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(valid ? 16 : 0)
                 : "memory");
}
// 4 bytes; `valid` false writes zeros.
__device__ __forceinline__ void cp_async4(void* to, const void* from, bool valid = true) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(to)), "l"(from), "r"(valid ? 4 : 0)
                 : "memory");
}
__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until at most PENDING of this thread's groups are under way. A barrier must follow before others read.
template <int PENDING> __device__ __forceinline__ void cp_async_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

// Asks for the line at `p` to be brought to L2.
__device__ __forceinline__ void prefetch_l2(const void* p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }
// Number of multiprocessors (or a little more).
__device__ __forceinline__ u32 multiprocessors() {
    u32 n;
    asm("mov.u32 %0, %%nsmid;" : "=r"(n));
    return n;
}

// ---- matrix fragments --------------------------------------------------------------------------------------------------

// Four 8 x 8 matrices of 16-bit elements: lane i gives the address of row i % 8 of matrix i / 8 (a multiple of 16).
__device__ __forceinline__ void ldmatrix4(u32 (&r)[4], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_address(row)) : "memory");
}
__device__ __forceinline__ void ldmatrix4_trans(u32 (&r)[4], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_address(row)) : "memory");
}
__device__ __forceinline__ void ldmatrix2(u32 (&r)[2], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1]) : "r"(shared_address(row)) : "memory");
}
__device__ __forceinline__ void ldmatrix2_trans(u32 (&r)[2], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1]) : "r"(shared_address(row)) : "memory");
}

// Transposes an 8 x 8 matrix of 16-bit elements, held as ldmatrix gives it.
__device__ __forceinline__ u32 transpose8(u32 x) {
    u32 y;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(y) : "r"(x));
    return y;
}

// c += a b with a 16 x 16, b 16 x 8, c 16 x 8 in f32. With r = lane / 4, q = lane % 4:
// a = {(r, 2q), (r + 8, 2q), (r, 2q + 8), (r + 8, 2q + 8)}, pairs along the row; b = {(2q, r), (2q + 8, r)}, pairs down
// the column; c = {(r, 2q), (r, 2q + 1), (r + 8, 2q), (r + 8, 2q + 1)}. So two c tiles side by side pack into an a.
template <typename E> __device__ __forceinline__ void mma16(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1);
template <> __device__ __forceinline__ void mma16<bf16>(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
template <> __device__ __forceinline__ void mma16<f16>(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// An f32 rounded to TF32 (10 bits of fraction), as mma8_tf32 wants its operands.
__device__ __forceinline__ u32 to_tf32(float x) {
    u32 y;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
    return y;
}
// c += a b with a 16 x 8, b 8 x 8, both TF32: a = {(r, q), (r + 8, q), (r, q + 4), (r + 8, q + 4)},
// b = {(q, r), (q + 4, r)}, c as in mma16.
__device__ __forceinline__ void mma8_tf32(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// ---- the start of a kernel ---------------------------------------------------------------------------------------------
//
// From sm_90 on a launch may start while the one before it ends (programmatic dependent launch). So every thread of every
// kernel calls this before it touches memory that any launch writes, in order to read or to write: it waits until the launch
// before is over and what it wrote is seen. That one has waited likewise, so all before it is over too: one kernel that does
// not wait would break this for those behind it. Only lists of addresses (`table`), which no launch writes, may be read before.
// Pointers are neither `__restrict__` nor read by `ld.global.nc`: a compiler may read through such ones before the wait.
// tests/compile.rs looks for all of this. LATE: those behind may start when this kernel ends, not while it runs.

__device__ __forceinline__ void enter() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#ifndef LATE
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
#endif
}
