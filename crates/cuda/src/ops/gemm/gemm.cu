// A matrix product on tensor cores whose results go through an epilogue before they are stored: d = epilogue(a b).
//
// A block computes BM x BN results in steps of BK along K; tiles of a and b stream through STAGES buffers (`multiply`). A warp
// holds 16 TM x 8 TN sums in f32. At the end the block's sums go to shared memory, and every thread hands eight neighbours at
// a time to `epilogue(i, t, ..)`, where i counts groups of eight of the whole result row by row. BN / 8 lanes side by side
// have a row, and a thread has the same columns in all its rows: what the epilogue adds to `columns` is summed over the block,
// and stored for each row of blocks.
//
// a is M x K, element (m, k) at m LDA + k, or k LDA + m if A_TURNED; b is K x N, element (k, n) at n LDB + k, or k LDB + n
// if B_TURNED. T is bf16 or f16; K, N, LDA, LDB and (if A_TURNED) M are multiples of 8, addresses of 16.
constexpr int PITCH = BN + 8;
// How often a thread is given neighbours, and for how many times what the epilogue reads is under way at once: for the first
// while the product is made.
constexpr int TIMES = BM * BN / 8 / THREADS, BATCH = TIMES < 4 ? TIMES : 4;
static_assert(TIMES % BATCH == 0 && THREADS % (BN / 8) == 0, "whole batches; a thread has the same columns in all rows");

extern "C" __global__ void __launch_bounds__(THREADS, THREADS > 128 ? 2 : 1) gemm(const T* a, const T* b
#if COLUMNS
                                                           , float* column_sums
#endif
                                                           EPILOGUE_PARAMS) {
    enter();
    extern __shared__ __align__(1024) unsigned char memory[];
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const u32 wm = warp % WARPS_M * (16 * TM), wn = warp / WARPS_M * (8 * TN);
    const u32 row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    // Number `time` of a thread's groups: where it is, and whether that is inside.
    auto row_of = [&](u32 time) { return (time * THREADS + threadIdx.x) / (BN / 8); };
    const u32 col = threadIdx.x % (BN / 8) * 8;
    auto inside = [&](u32 time) { return row0 + row_of(time) < M && col0 + col < N; };
    auto group = [&](u32 time) { return u32(row0 + row_of(time)) * (N / 8) + (col0 + col) / 8; };
    Fixed fixed;
    Reads next[BATCH];
    auto read = [&](u32 first) {
#pragma unroll
        for (u32 j = 0; j < BATCH; j++)
            if (inside(first + j)) next[j] = epilogue_reads(group(first + j) EPILOGUE_ARGS);
    };
    if (inside(0)) fixed = fixed_reads(group(0) EPILOGUE_ARGS);
    read(0);
    float sums[TM][TN][4] = {};
    multiply(sums, (T*)memory, a, b, row0, col0);
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
#if COLUMNS
    float columns[COLUMNS][8] = {};
#endif
#pragma unroll 1
    for (u32 first = 0; first < TIMES; first += BATCH) {
        Reads now[BATCH];
#pragma unroll
        for (u32 j = 0; j < BATCH; j++) now[j] = next[j];
        if (first + BATCH < TIMES) read(first + BATCH);
#pragma unroll
        for (u32 j = 0; j < BATCH; j++) {
            if (!inside(first + j)) continue;
            const float4* from = (const float4*)(out + row_of(first + j) * PITCH + col);
            const float4 lo = from[0], hi = from[1];
            const float t[8] = {lo.x, lo.y, lo.z, lo.w, hi.x, hi.y, hi.z, hi.w};
            epilogue(group(first + j), t, fixed, now[j] EPILOGUE_COLUMNS EPILOGUE_ARGS);
        }
    }
#if COLUMNS
    // The threads' sums, in their order.
    __syncthreads();
#pragma unroll
    for (int c = 0; c < COLUMNS; c++)
#pragma unroll
        for (int v = 0; v < 8; v++) out[(threadIdx.x / (BN / 8) * COLUMNS + c) * BN + col + v] = columns[c][v];
    __syncthreads();
    for (u32 n = threadIdx.x; n < COLUMNS * BN; n += THREADS) {
        float sum = 0.0f;
#pragma unroll
        for (int g = 0; g < THREADS / (BN / 8); g++) sum += out[g * COLUMNS * BN + n];
        if (col0 + n % BN < N) column_sums[(u64(blockIdx.y) * COLUMNS + n / BN) * N + col0 + n % BN] = sum;
    }
#endif
}
