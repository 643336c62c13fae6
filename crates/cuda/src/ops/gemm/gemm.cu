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
template <int CHUNKS> __device__ __forceinline__ u32 place(u32 row, u32 chunk) {
    const u32 x = CHUNKS >= 8 ? row & 7 : (row >> 1) & (CHUNKS - 1);
    return (row * CHUNKS + (chunk ^ x)) * 8;
}

// Copies tiles of one operand: `SIDE` of the result's side by BK of K a step. A thread's chunks are GAP rows apart, so that
// all their addresses differ by constants, and the permutation is the same in all.
template <int SIDE, bool TURNED, int PITCH> struct Loader {
    static constexpr int CHUNKS = TURNED ? SIDE / 8 : BK / 8, ROWS = TURNED ? BK : SIDE;
    static constexpr int GAP = THREADS / CHUNKS, COUNT = ROWS * CHUNKS / THREADS;
    static_assert(THREADS % CHUNKS == 0 && ROWS * CHUNKS % THREADS == 0 && GAP % 8 == 0, "threads share a tile evenly");
    const T *source, *next;
    u32 to, inside;
    int k;

    __device__ __forceinline__ Loader(const T* at, u32 from, u32 side) : source(at), inside(0) {
        const u32 row = threadIdx.x / CHUNKS, chunk = threadIdx.x % CHUNKS;
        to = place<CHUNKS>(row, chunk);
        if (TURNED) {
            next = at + u64(row) * PITCH + from + chunk * 8;
            inside = from + chunk * 8 < side ? ~0u : 0u;
            k = row;
        } else {
            next = at + u64(from + row) * PITCH + chunk * 8;
#pragma unroll
            for (int i = 0; i < COUNT; i++) inside |= (from + row + i * GAP < side ? 1u : 0u) << i;
            k = chunk * 8;
        }
    }

    // Starts the copy of the next step.
    __device__ __forceinline__ void load(T* tile) {
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            const bool within = K % BK == 0 || (TURNED ? k + i * GAP < K : k < K);
            const bool valid = (inside >> i & 1) && within;
            cp_async16(tile + to + i * GAP * CHUNKS * 8, valid ? next + u64(i) * GAP * PITCH : source, valid);
        }
        next += TURNED ? u64(BK) * PITCH : u64(BK);
        k += BK;
    }
};

extern "C" __global__ void __launch_bounds__(THREADS) gemm(const T* __restrict__ a, const T* __restrict__ b EPILOGUE_PARAMS) {
    extern __shared__ __align__(16) unsigned char memory[];
    T* tiles = (T*)memory;
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const u32 wm = warp % WARPS_M * (16 * TM), wn = warp / WARPS_M * (8 * TN);
    const u32 row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    constexpr int STEPS = (K + BK - 1) / BK;
    Loader<BM, A_TURNED, LDA> load_a(a, row0, M);
    Loader<BN, B_TURNED, LDB> load_b(b, col0, N);
    auto load = [&](int step) {
        T* stage = tiles + step % STAGES * STAGE;
        load_a.load(stage);
        load_b.load(stage + A_TILE);
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
#pragma unroll 2
    for (u32 i = 0; i < BM * BN / 8 / THREADS; i++) {
        const u32 n = i * THREADS + threadIdx.x, row = n / (BN / 8), col = n % (BN / 8) * 8;
        if (row0 + row >= M || col0 + col >= N) continue;
        const float4 lo = *(const float4*)(out + row * PITCH + col), hi = *(const float4*)(out + row * PITCH + col + 4);
        const float t[8] = {lo.x, lo.y, lo.z, lo.w, hi.x, hi.y, hi.z, hi.w};
        epilogue(u32(row0 + row) * (N / 8) + (col0 + col) / 8, t EPILOGUE_ARGS);
    }
}
