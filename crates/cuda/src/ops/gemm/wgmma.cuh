// The sums of a block by `wgmma`, which reads its operands from shared memory (sm_90a). A warpgroup of four warps takes all 64
// rows and BN / WARPS_N columns; `wgmma_16` is the instruction for a step of 16 along K.
//
// A tile's rows are 128 bytes, eight of them 1,024 apart from the next eight. b, if it is turned, is BN / 64 tiles of BK rows
// (PTX manual, "Matrix descriptor" and "Strides" of wgmma).
static_assert(BM == 64 && WARPS_M == 4 && TN % 8 == 0 && BK == 64 && !A_TURNED, "a warpgroup's tile");

// Where an operand lies, in units of 16 bytes, with the 128-byte swizzle.
__device__ __forceinline__ u64 operand(const T* tile, bool turned) {
    const u64 side_by_side = turned ? BK * 8 : 1;
    return u64(shared_address(tile) >> 4 & 0x3fff) | side_by_side << 16 | u64(64) << 32 | u64(1) << 62;
}
template <int PENDING> __device__ __forceinline__ void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

__device__ __forceinline__ void multiply(float (&sums)[1][TN][4], T* tiles, const T* a, const T* b, u32 row0, u32 col0) {
    Tiles load{{a, row0, M}, {b, col0, N}, tiles};
    constexpr int AHEAD = STEPS <= STAGES ? STEPS : STAGES - 1;
#pragma unroll
    for (int s = 0; s < AHEAD; s++) {
        load(s);
        cp_async_commit();
    }
    for (int step = 0; step < STEPS; step++) {
        cp_async_wait<AHEAD - 1>();
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        // The stage that is written next was read in the step before.
        wgmma_wait<0>();
        __syncthreads();
        if (step + AHEAD < STEPS) load(step + AHEAD);
        cp_async_commit();
        const T* stage = tiles + step % STAGES * STAGE;
        // 64 columns of b are as far apart if it is turned.
        const u64 at = operand(stage, false), bt = operand(stage + A_TILE + threadIdx.x / 128 * (8 * TN * BK), B_TURNED);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int k = 0; k < BK / 16; k++) wgmma_16(sums[0], at + k * 2, bt + k * (B_TURNED ? 128 : 2));
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    }
    wgmma_wait<0>();
    cp_async_wait<0>();
}
