// A matrix product on tensor cores whose results go through an epilogue before they are stored: d = epilogue(a b).
//
// A block computes BM x BN results in steps of BK along K; tiles of a and b stream through STAGES buffers. A warp holds
// 16 TM x 8 TN sums in f32. At the end the block's sums go to shared memory, and every thread hands eight neighbours at a
// time to `epilogue(i, t, ..)`, where i counts groups of eight of the whole result row by row.
//
// a is M x K, element (m, k) at m LDA + k, or k LDA + m if A_TURNED; b is K x N, element (k, n) at n LDB + k, or k LDB + n
// if B_TURNED. T is bf16 or f16; K, N, LDA, LDB and (if A_TURNED) M are multiples of 8, addresses of 16.
constexpr int THREADS = 32 * WARPS_M * WARPS_N;
constexpr int TM = BM / WARPS_M / 16, TN = BN / WARPS_N / 8;
constexpr int A_TILE = BM * BK, B_TILE = BN * BK, STAGE = A_TILE + B_TILE;
constexpr int PITCH = BN + 4;
static_assert(TN % 2 == 0 && BK % 16 == 0, "tiles are whole fragments");

// Place of a chunk of 8 elements in a tile with rows of CHUNKS chunks, permuted so that ldmatrix meets no bank twice.
template <int CHUNKS> __device__ __forceinline__ int place(int row, int chunk) {
    const int x = CHUNKS >= 8 ? row & 7 : (row >> 1) & (CHUNKS - 1);
    return (row * CHUNKS + (chunk ^ x)) * 8;
}

// Starts the copy of a tile of `SIDE` rows of the result's side, `from` on, and BK of K, `at` on.
template <int SIDE, bool TURNED>
__device__ __forceinline__ void fetch(T* to, const T* source, u64 pitch, int from, int side, int at) {
    constexpr int CHUNKS = TURNED ? SIDE / 8 : BK / 8, ROWS = TURNED ? BK : SIDE;
#pragma unroll
    for (int n = threadIdx.x; n < ROWS * CHUNKS; n += THREADS) {
        const int row = n / CHUNKS, chunk = n % CHUNKS;
        const int r = (TURNED ? at : from) + row, c = (TURNED ? from : at) + chunk * 8;
        const bool inside = TURNED ? r < K && c < side : r < side && c < K;
        cp_async16(to + place<CHUNKS>(row, chunk), inside ? source + u64(r) * pitch + c : source, inside);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) gemm(const T* __restrict__ a, const T* __restrict__ b EPILOGUE_PARAMS) {
    extern __shared__ __align__(16) unsigned char memory[];
    T* tiles = (T*)memory;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int wm = warp % WARPS_M * (16 * TM), wn = warp / WARPS_M * (8 * TN);
    const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    constexpr int STEPS = (K + BK - 1) / BK;
    auto load = [&](int step) {
        T* stage = tiles + step % STAGES * STAGE;
        fetch<BM, A_TURNED>(stage, a, LDA, row0, M, step * BK);
        fetch<BN, B_TURNED>(stage + A_TILE, b, LDB, col0, N, step * BK);
    };
#pragma unroll
    for (int s = 0; s < STAGES - 1; s++) {
        if (s < STEPS) load(s);
        cp_async_commit();
    }
    float sums[TM][TN][4] = {};
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
    __syncthreads();
    float* out = (float*)memory;
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j++) {
            float* to = out + (wm + i * 16 + lane / 4) * PITCH + wn + j * 8 + lane % 4 * 2;
            *(float2*)to = make_float2(sums[i][j][0], sums[i][j][1]);
            *(float2*)(to + 8 * PITCH) = make_float2(sums[i][j][2], sums[i][j][3]);
        }
    __syncthreads();
    for (int n = threadIdx.x; n < BM * BN / 8; n += THREADS) {
        const int row = n / (BN / 8), col = n % (BN / 8) * 8;
        if (row0 + row >= M || col0 + col >= N) continue;
        const float4 lo = *(const float4*)(out + row * PITCH + col), hi = *(const float4*)(out + row * PITCH + col + 4);
        const float t[8] = {lo.x, lo.y, lo.z, lo.w, hi.x, hi.y, hi.z, hi.w};
        epilogue(u32(row0 + row) * (N / 8) + (col0 + col) / 8, t EPILOGUE_ARGS);
    }
}
