// The sums of a block by `mma.sync`, for every GPU from sm_80 on.
static_assert(TN % 2 == 0 && BK % 16 == 0, "tiles are whole fragments");

__device__ __forceinline__ void multiply(float (&sums)[TM][TN][4], T* tiles, const T* a, const T* b, u32 row0, u32 col0) {
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const u32 wm = warp % WARPS_M * (16 * TM), wn = warp / WARPS_M * (8 * TN);
    Tiles load{{a, row0, M}, {b, col0, N}, tiles};
#pragma unroll
    for (int s = 0; s < STAGES - 1; s++) {
        if (s < STEPS) load(s);
        cp_async_commit();
    }
    for (int step = 0; step < STEPS; step++) {
        cp_async_wait<STAGES - 2>();
        __syncthreads();
        if (step + STAGES - 1 < STEPS) load(step + STAGES - 1);
        cp_async_commit();
        const T *at = tiles + step % STAGES * STAGE, *bt = at + A_TILE;
#pragma unroll
        for (int k = 0; k < BK / 16; k++) {
            u32 fa[TM][4], fb[TN / 2][4];
#pragma unroll
            for (int i = 0; i < TM; i++) {
                if (A_TURNED)
                    ldmatrix4_trans(fa[i], at + place<BM / 8>(k * 16 + lane % 8 + lane / 16 * 8, (wm + i * 16) / 8 + lane / 8 % 2));
                else
                    ldmatrix4(fa[i], at + place<BK / 8>(wm + i * 16 + lane % 16, k * 2 + lane / 16));
            }
#pragma unroll
            for (int j = 0; j < TN / 2; j++) {
                if (B_TURNED)
                    ldmatrix4_trans(fb[j], bt + place<BN / 8>(k * 16 + lane % 16, (wn + j * 16) / 8 + lane / 16));
                else
                    ldmatrix4(fb[j], bt + place<BK / 8>(wn + j * 16 + lane / 16 * 8 + lane % 8, k * 2 + lane / 8 % 2));
            }
#pragma unroll
            for (int i = 0; i < TM; i++)
#pragma unroll
                for (int j = 0; j < TN; j++) mma16<T>(sums[i][j], fa[i], fb[j / 2][j % 2 * 2], fb[j / 2][j % 2 * 2 + 1]);
        }
    }
    cp_async_wait<0>();
}
