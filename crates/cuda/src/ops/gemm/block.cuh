// How a block's threads share a tile of BM x BN results: WARPS_M x WARPS_N warps of 16 TM x 8 TN each, WARPS_K times, where each
// has the sums of a part of K.
constexpr int THREADS = 32 * WARPS_M * WARPS_N * WARPS_K;
constexpr int TM = BM / WARPS_M / 16, TN = BN / WARPS_N / 8;

// Place of a chunk of 8 elements in a tile with rows of CHUNKS chunks, permuted so that ldmatrix meets no bank twice; with 8
// chunks it is the permutation that `wgmma` calls 128-byte swizzle.
template <int CHUNKS> __device__ __forceinline__ u32 place(u32 row, u32 chunk) {
    const u32 x = CHUNKS >= 8 ? row & 7 : (row >> 1) & (CHUNKS - 1);
    return (row * CHUNKS + (chunk ^ x)) * 8;
}
