// attention_grad on tensor cores in one launch, where a (sample, head) fits in shared memory and H = G.
//
// First a warp owns 16 keys and walks over tiles of 16 queries: scores and weights recomputed, dk and dv in registers, the
// score gradients kept in shared memory (rounded to T). Then a warp owns 16 queries and sums dq over these. Grid (1, H, B),
// threads 32 WARPS. Dynamic shared memory: 2 ROW bytes times 16 (2 QUERY_TILES + KEY_TILES), plus
// 128 QUERY_TILES, plus 512 times the pairs of tiles (causal: QUERY_TILES (QUERY_TILES + 1) / 2, else QUERY_TILES KEY_TILES).

#if HEAD <= 16
#define BLOCKS_AT_ONCE (WARPS < 18 ? 18 / WARPS : 1)
#else
#define BLOCKS_AT_ONCE 1
#endif

// Place of a pair of tiles among the stored ones.
__device__ __forceinline__ int pair(int query, int key) { return CAUSAL ? query * (query + 1) / 2 + key : query * KEY_TILES + key; }

// r delta = r sum(do o) and the scaled lse of every row, by one thread a row.
__device__ __forceinline__ void prepare(float* top, float* delta, const T* o, const T* dy, const float* lse) {
    for (int row = threadIdx.x; row < QUERY_TILES * 16; row += WARPS * 32) {
        float sum = 0;
        if (row < TQ)
#pragma unroll
            for (int c = 0; c < COLS; c++) {
                uint4 a = *(const uint4*)(o + size_t(row) * O_ST + c * 8), b = *(const uint4*)(dy + size_t(row) * DO_ST + c * 8);
#pragma unroll
                for (int n = 0; n < 4; n++) {
                    float2 x = unpack2<T>(word_of(a, n)), y = unpack2<T>(word_of(b, n));
                    sum = fmaf(x.x, y.x, fmaf(x.y, y.y, sum));
                }
            }
        delta[row] = sum * Decisions::rate();
        top[row] = row < TQ ? lse[row] * LOG2E : INF;
    }
}

extern "C" __global__ void __launch_bounds__(WARPS * 32, BLOCKS_AT_ONCE)
attention_backward(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v, const T* __restrict__ o,
                   const float* __restrict__ lse, const T* __restrict__ dy EXTRA_PARAMS, T* __restrict__ dq, T* __restrict__ dk,
                   T* __restrict__ dv) {
    extern __shared__ __align__(16) unsigned char memory[];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, head = blockIdx.y, sample = blockIdx.z;
    q += size_t(sample) * Q_SB + head * Q_SH;
    k += size_t(sample) * K_SB + head * K_SH;
    v += size_t(sample) * V_SB + head * V_SH;
    o += size_t(sample) * O_SB + head * O_SH;
    dy += size_t(sample) * DO_SB + head * DO_SH;
    lse += (size_t(sample) * H + head) * TQ;
    int valid = VALID_KEYS(sample);
    Decisions drop = DROPOUT_OF(sample, head);

    T *qs = (T*)memory, *dys = qs + QUERY_TILES * 16 * ROW, *ks = dys + QUERY_TILES * 16 * ROW;
    float *top = (float*)(ks + KEY_TILES * 16 * ROW), *delta = top + QUERY_TILES * 16;
    u32* pairs = (u32*)(delta + QUERY_TILES * 16);
    fetch<WARPS * 32>(qs, q, Q_ST, 0, QUERY_TILES * 16, TQ);
    fetch<WARPS * 32>(dys, dy, DO_ST, 0, QUERY_TILES * 16, TQ);
    fetch<WARPS * 32>(ks, k, K_ST, 0, KEY_TILES * 16, valid);
    cp_async_commit();
    prepare(top, delta, o, dy, lse);
    cp_async_wait<0>();
    __syncthreads();

    int key_tiles = (valid + 15) / 16;
    float up = Decisions::scale(), up_scaled = up * float(SCALE);
#pragma unroll 1
    for (int turn = 0; turn * WARPS < KEY_TILES; turn++) {
        int tile = turn_tile(KEY_TILES, turn, warp), key = tile * 16;
        if (tile < 0) continue;
        float dks[COLS][4] = {}, dvs[COLS][4] = {};
        if (tile < key_tiles) {
            u32 ka[STEPS][4], va[STEPS][4], ds[4];
            load_rows(va, v, V_ST, key, valid, lane);
#pragma unroll
            for (int n = 0; n < STEPS; n++) load_a(ka[n], ks + key * ROW, n, lane);
#pragma unroll 1
            for (int i = CAUSAL ? tile : 0; i < QUERY_TILES; i++) {
                Stats stats = load_stats(top + i * 16, delta + i * 16, lane);
                const T *qt = qs + i * 16 * ROW, *dyt = dys + i * 16 * ROW;
                if (sees_all(i * 16, key, valid))
                    add_tile<false>(dks, dvs, ds, ka, va, qt, dyt, stats, key, i * 16, valid, drop, lane);
                else
                    add_tile<true>(dks, dvs, ds, ka, va, qt, dyt, stats, key, i * 16, valid, drop, lane);
                // Block n (8 x 8) as 8 rows of 16 bytes: ready for a transposing ldmatrix.
                u32* at = pairs + pair(i, tile) * 128 + lane;
#pragma unroll
                for (int n = 0; n < 4; n++) at[n * 32] = ds[n];
            }
        }
        store_rows(dk + size_t(sample) * DK_SB + head * DK_SH, DK_ST, key, TK, dks, up_scaled, up_scaled, lane);
        store_rows(dv + size_t(sample) * DV_SB + head * DV_SH, DV_ST, key, TK, dvs, up, up, lane);
    }
    __syncthreads();
#pragma unroll 1
    for (int turn = 0; turn * WARPS < QUERY_TILES; turn++) {
        int tile = turn_tile(QUERY_TILES, turn, warp);
        if (tile < 0) continue;
        float dqs[COLS][4] = {};
        int end = CAUSAL ? min(key_tiles, tile + 1) : key_tiles;
        // Matrix n of the fragment is block 0, 2, 1, 3: (keys, queries) become (queries, keys).
        const u32* at = pairs + pair(tile, 0) * 128 + (lane / 8 % 2 * 2 + lane / 16) * 32 + lane % 8 * 4;
#pragma unroll 2
        for (int j = 0; j < end; j++) {
            u32 ds[4];
            ldmatrix4_trans(ds, at + j * 128);
            spread(dqs, ds, ks + j * 16 * ROW, lane);
        }
        store_rows(dq + size_t(sample) * DQ_SB + head * DQ_SH, DQ_ST, tile * 16, TQ, dqs, up_scaled, up_scaled, lane);
    }
}
