// A matrix product on tensor cores whose results go through an epilogue before they are stored: d = epilogue(a b).
//
// A block computes BM x BN of the M x N results from OPERANDS (`multiply`). A warp holds 16 TM x 8 TN sums in f32. At the end
// the block's sums go to shared memory, and every thread hands eight neighbours at a time to `epilogue(i, t, ..)`, where i
// counts groups of eight of the whole result row by row. BN / 8 lanes side by side have a row, and a thread has the same columns
// in all its rows: what the epilogue adds to `columns` is summed over the block, and stored for each row of blocks.
// T is bf16 or f16.
constexpr int PITCH = BN + 8;
// How often a thread is given neighbours, and for how many times what the epilogue reads is under way at once: for the first
// while the product is made, if that leaves registers (READ_AHEAD).
constexpr int TIMES = BM * BN / 8 / THREADS, BATCH = TIMES < 4 ? TIMES : 4;
static_assert(TIMES % BATCH == 0 && THREADS % (BN / 8) == 0, "whole batches; a thread has the same columns in all rows");

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) gemm(OPERANDS
#if COLUMNS
                                                           , float* column_sums
#endif
                                                           EPILOGUE_PARAMS) {
    enter();
    extern __shared__ __align__(1024) unsigned char memory[];
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const u32 wm = warp % WARPS_M * (16 * TM), wn = warp / WARPS_M % WARPS_N * (8 * TN), part = warp / (WARPS_M * WARPS_N);
    const u32 row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    // Number `time` of a thread's groups: where it is, and whether that is inside.
    auto row_of = [&](u32 time) { return (time * THREADS + threadIdx.x) / (BN / 8); };
    const u32 col = threadIdx.x % (BN / 8) * 8;
    auto inside = [&](u32 time) { return row0 + row_of(time) < M && col0 + col < N; };
    auto group = [&](u32 time) { return u32(row0 + row_of(time)) * (N / 8) + (col0 + col) / 8; };
    // The last one's elements for what is outside: a load that may not happen would be waited for, to choose what it gives.
    auto read_from = [&](u32 time) {
        const u32 row = row0 + row_of(time), last = M - 1, at = (col0 + col < N ? col0 + col : N - 8) / 8;
        return (row < last ? row : last) * (N / 8) + at;
    };
    Fixed fixed;
    Reads next[BATCH];
    auto read = [&](u32 first) {
#pragma unroll
        for (u32 j = 0; j < BATCH; j++) next[j] = epilogue_reads(read_from(first + j) EPILOGUE_ARGS);
    };
    auto read_first = [&] {
        fixed = fixed_reads(read_from(0) EPILOGUE_ARGS);
        read(0);
    };
    if (READ_AHEAD) read_first();
    float sums[TM][TN][4] = {};
    multiply(sums, (T*)memory, GIVEN, row0, col0);
    if (!READ_AHEAD) read_first();
    float* out = (float*)memory;
#pragma unroll
    for (u32 k = 0; k < WARPS_K; k++) {
        __syncthreads();
        if (k != part) continue;
#pragma unroll
        for (int i = 0; i < TM; i++)
#pragma unroll
            for (int j = 0; j < TN; j++)
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    float2* to = (float2*)(out + (wm + i * 16 + lane / 4 + half * 8) * PITCH + wn + j * 8 + lane % 4 * 2);
                    const float2 before = k > 0 ? *to : make_float2(0.0f, 0.0f);
                    *to = make_float2(before.x + sums[i][j][half * 2], before.y + sums[i][j][half * 2 + 1]);
                }
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
