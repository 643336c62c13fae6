// The sums of a block by `wgmma`, which reads its operands from shared memory (sm_90a). A warpgroup of four warps takes all 64
// rows and BN / WARPS_N columns; `wgmma_16` is the instruction for a step of 16 along K.
static_assert(BM == 64 && WARPS_M == 4 && TN % 8 == 0 && BK == 64 && !A_TURNED, "a warpgroup's tile");

__device__ __forceinline__ void multiply(float (&sums)[1][TN][4], T* tiles, const T* a, const T* b, u32 row0, u32 col0) {
    Tiles load{{a, row0, M}, {b, col0, N}, tiles};
    const u32 a_tiles = uniform(tiles), b_tile = uniform(tiles + A_TILE + threadIdx.x / 128 * (8 * TN * BK)) - a_tiles;
    constexpr int AHEAD = STEPS <= STAGES ? STEPS : STAGES - 1;
#pragma unroll
    for (int s = 0; s < AHEAD; s++) {
        load(s);
        cp_async_commit();
    }
    for (int step = 0; step < STEPS; step++) {
        cp_async_wait<AHEAD - 1>();
        shared_fence();
        // The stage that is written next was read in the step before.
        wgmma_wait<0>();
        __syncthreads();
        if (step + AHEAD < STEPS) load(step + AHEAD);
        cp_async_commit();
        // b, if it is turned, is BN / 64 tiles of BK rows.
        const u32 at = a_tiles + step % STAGES * (STAGE / 8), bt = at + b_tile;
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < BK / 16; k++)
            wgmma_16(sums[0], descriptor(at + k * 2, 1), descriptor(bt + k * (B_TURNED ? 128 : 2), B_TURNED ? BK * 8 : 1));
        wgmma_commit();
    }
    wgmma_wait<0>();
    cp_async_wait<0>();
}
