// attention_grad on tensor cores in one launch, where a (sample, head) fits in shared memory and H = G.
//
// First a warp owns 16 keys and walks over tiles of 16 queries: scores and weights recomputed, dk and dv in registers, the
// score gradients kept in shared memory (rounded to T). Then a warp owns 16 queries and sums dq over these. WARPS warps share
// a head, HEADS heads a block: grid (1, H / HEADS, B), threads 32 WARPS HEADS. Dynamic shared memory: HEADS times (32 ROW
// (2 QUERY_TILES + KEY_TILES) + 192 QUERY_TILES + 512 times the pairs of tiles), these being
// QUERY_TILES (QUERY_TILES + 1) / 2 if causal, else QUERY_TILES KEY_TILES.

// Tiles of queries taken at once, and blocks that share a multiprocessor's registers.
#ifndef AT_ONCE
#define AT_ONCE (HEAD <= 16 ? 2 : 1)
#endif
#ifndef BLOCKS_AT_ONCE
#define BLOCKS_AT_ONCE (HEAD > 16 || WARPS * HEADS >= 16 ? 1 : 16 / (WARPS * HEADS))
#endif

constexpr int PAIRS = CAUSAL ? QUERY_TILES * (QUERY_TILES + 1) / 2 : QUERY_TILES * KEY_TILES;
constexpr int BYTES = 32 * ROW * (2 * QUERY_TILES + KEY_TILES) + 192 * QUERY_TILES + 512 * PAIRS;

// Place of a pair of tiles among the stored ones.
__device__ __forceinline__ int pair(int query, int key) { return CAUSAL ? query * (query + 1) / 2 + key : query * KEY_TILES + key; }

// The statistics of every row. Lanes side by side take its chunks of 8 elements, as far as these are a power of 2; all loads
// are started before the first sum.
__device__ __forceinline__ void prepare(const Stats& stats, const T* o, const T* dy, const float* lse) {
    constexpr int PARTS = COLS % 8 == 0 ? 8 : COLS % 4 == 0 ? 4 : COLS % 2 == 0 ? 2 : 1, EACH = COLS / PARTS;
    constexpr int STRIDE = WARPS * 32 / PARTS, ROUNDS = (QUERY_TILES * 16 + STRIDE - 1) / STRIDE;
    int first = threadIdx.x % (WARPS * 32) / PARTS, part = threadIdx.x % PARTS;
    uint4 a[ROUNDS][EACH], b[ROUNDS][EACH];
    float log[ROUNDS];
#pragma unroll
    for (int n = 0; n < ROUNDS; n++) {
        int row = min(first + n * STRIDE, TQ - 1);
        log[n] = lse[row];
#pragma unroll
        for (int c = 0; c < EACH; c++) {
            int at = (c * PARTS + part) * 8;
            a[n][c] = *(const uint4*)(o + size_t(row) * O_ST + at);
            b[n][c] = *(const uint4*)(dy + size_t(row) * DO_ST + at);
        }
    }
#pragma unroll
    for (int n = 0; n < ROUNDS; n++) {
        float sum = 0;
#pragma unroll
        for (int c = 0; c < EACH; c++)
#pragma unroll
            for (int m = 0; m < 4; m++) {
                float2 x = unpack2<T>(word_of(a[n][c], m)), y = unpack2<T>(word_of(b[n][c], m));
                sum = fmaf(x.x, y.x, fmaf(x.y, y.y, sum));
            }
        sum = warp_sum<PARTS>(sum);
        int row = first + n * STRIDE;
        if (part == 0 && row < QUERY_TILES * 16) stats.set(row, log[n], sum, row < TQ);
    }
}

// Keeps score gradients: block n (8 x 8) as 8 rows of 16 bytes, ready for a transposing ldmatrix.
__device__ __forceinline__ void keep(u32* at, const u32 (&ds)[4], int lane) {
#pragma unroll
    for (int n = 0; n < 4; n++) at[n * 32 + lane] = ds[n];
}

// Brings to L2 what the block reads that will take this one's place, so that its start does not wait for memory.
__device__ __forceinline__ void prefetch_later(const T* q, const T* k, const T* v, const T* o, const T* dy) {
    int sample = blockIdx.z;
    u32 unit = blockIdx.z * gridDim.y + blockIdx.y + multiprocessors() * BLOCKS_AT_ONCE;
    if (unit >= gridDim.y * gridDim.z) return;
    int samples = int(unit / gridDim.y) - sample, heads = int(unit % gridDim.y - blockIdx.y) * HEADS;
    for (int row = threadIdx.x % (32 * WARPS); row < max(TQ, TK); row += 32 * WARPS) {
        if (row < TQ) {
            prefetch_l2(q + (i64(samples) * Q_SB + heads * Q_SH + row * Q_ST));
            prefetch_l2(o + (i64(samples) * O_SB + heads * O_SH + row * O_ST));
            prefetch_l2(dy + (i64(samples) * DO_SB + heads * DO_SH + row * DO_ST));
        }
        if (row < TK) {
            prefetch_l2(k + (i64(samples) * K_SB + heads * K_SH + row * K_ST));
            prefetch_l2(v + (i64(samples) * V_SB + heads * V_SH + row * V_ST));
        }
    }
}

// What a block holds of one head.
struct Held {
    T *q, *dy, *k;
    Stats stats;
    u32* pairs;
};

// Adds N tiles of queries to the sums of a tile of keys and keeps their score gradients.
template <int N, bool MASKED>
__device__ __forceinline__ void advance(float (&dk)[COLS][4], float (&dv)[COLS][4], const u32 (&ka)[STEPS][4],
                                        const u32 (&va)[STEPS][4], const Held& held, int query, int key, int valid,
                                        const Decisions& drop, int lane) {
    u32 ds[N][4];
    Stats stats = {held.stats.top + query * 16, held.stats.rest + query * 32};
    add_tiles<N, MASKED>(dk, dv, ds, ka, va, held.q + query * 16 * ROW, held.dy + query * 16 * ROW, stats, key * 16, query * 16, valid,
                         drop, lane);
#pragma unroll
    for (int n = 0; n < N; n++) keep(held.pairs + pair(query + n, key) * 128, ds[n], lane);
}

extern "C" __global__ void __launch_bounds__(WARPS * HEADS * 32, BLOCKS_AT_ONCE)
attention_backward(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v, const T* __restrict__ o,
                   const float* __restrict__ lse, const T* __restrict__ dy EXTRA_PARAMS, T* __restrict__ dq, T* __restrict__ dk,
                   T* __restrict__ dv) {
    extern __shared__ __align__(16) unsigned char memory[];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % WARPS, part = threadIdx.x / (32 * WARPS);
    int head = blockIdx.y * HEADS + part, sample = blockIdx.z;
    q += size_t(sample) * Q_SB + head * Q_SH;
    k += size_t(sample) * K_SB + head * K_SH;
    v += size_t(sample) * V_SB + head * V_SH;
    o += size_t(sample) * O_SB + head * O_SH;
    dy += size_t(sample) * DO_SB + head * DO_SH;
    lse += (size_t(sample) * H + head) * TQ;
    int valid = VALID_KEYS(sample);
    Decisions drop = DROPOUT_OF(sample, head);

    Held held;
    held.q = (T*)(memory + part * BYTES);
    held.dy = held.q + QUERY_TILES * 16 * ROW;
    held.k = held.dy + QUERY_TILES * 16 * ROW;
    held.stats.top = (float*)(held.k + KEY_TILES * 16 * ROW);
    held.stats.rest = held.stats.top + QUERY_TILES * 16;
    held.pairs = (u32*)(held.stats.rest + QUERY_TILES * 32);
    fetch<WARPS * 32>(held.q, q, Q_ST, 0, QUERY_TILES * 16, TQ);
    fetch<WARPS * 32>(held.dy, dy, DO_ST, 0, QUERY_TILES * 16, TQ);
    cp_async_commit();
    // The keys of all tiles are wanted for dq only.
    fetch<WARPS * 32>(held.k, k, K_ST, 0, KEY_TILES * 16, valid);
    cp_async_commit();
    prepare(held.stats, o, dy, lse);
    int key_tiles = (valid + 15) / 16;
    float up = Decisions::scale(), up_scaled = up * float(SCALE);
    u32 ka[STEPS][4], va[STEPS][4];
    load_rows(ka, k, K_ST, warp * 16, valid, lane);
    load_rows(va, v, V_ST, warp * 16, valid, lane);
    cp_async_wait<1>();
    __syncthreads();
    prefetch_later(q, k, v, o, dy);


#pragma unroll 1
    for (int turn = 0; turn * WARPS < KEY_TILES; turn++) {
        int tile = turn_tile(turn, warp), key = tile * 16;
        if (tile >= KEY_TILES) continue;
        float dks[COLS][4] = {}, dvs[COLS][4] = {};
        if (turn > 0) {
            load_rows(ka, k, K_ST, key, valid, lane);
            load_rows(va, v, V_ST, key, valid, lane);
        }
        if (tile < key_tiles) {
            int i = CAUSAL ? tile : 0;
#pragma unroll 1
            for (; i < QUERY_TILES && !sees_all(i * 16, key, valid); i++)
                advance<1, true>(dks, dvs, ka, va, held, i, tile, valid, drop, lane);
#pragma unroll 1
            for (; i + AT_ONCE <= QUERY_TILES; i += AT_ONCE)
                advance<AT_ONCE, false>(dks, dvs, ka, va, held, i, tile, valid, drop, lane);
            if (AT_ONCE > 1 && i < QUERY_TILES) advance<1, false>(dks, dvs, ka, va, held, i, tile, valid, drop, lane);
        }
        store_rows(dk + size_t(sample) * DK_SB + head * DK_SH, DK_ST, key, TK, dks, up_scaled, up_scaled, lane);
        store_rows(dv + size_t(sample) * DV_SB + head * DV_SH, DV_ST, key, TK, dvs, up, up, lane);
    }
    cp_async_wait<0>();
    __syncthreads();
#pragma unroll 1
    for (int turn = 0; turn * WARPS < QUERY_TILES; turn++) {
        int tile = QUERY_TILES - 1 - turn_tile(turn, warp);
        if (tile < 0) continue;
        // Two sums side by side, of even and odd tiles, so that a product need not wait for the one before.
        float dqs[2][COLS][4] = {};
        int end = CAUSAL ? min(key_tiles, tile + 1) : key_tiles;
        // Matrix n of the fragment is block 0, 2, 1, 3: (keys, queries) become (queries, keys).
        const u32* at = held.pairs + pair(tile, 0) * 128 + (lane / 8 % 2 * 2 + lane / 16) * 32 + lane % 8 * 4;
        auto add = [&](int j, int n) {
            u32 ds[4];
            ldmatrix4_trans(ds, at + j * 128);
            spread(dqs[n], ds, held.k + j * 16 * ROW, lane);
        };
        int j = 0;
#pragma unroll 2
        for (; j + 1 < end; j += 2) {
            add(j, 0);
            add(j + 1, 1);
        }
        if (j < end) add(j, 0);
#pragma unroll
        for (int c = 0; c < COLS; c++)
#pragma unroll
            for (int n = 0; n < 4; n++) dqs[0][c][n] += dqs[1][c][n];
        store_rows(dq + size_t(sample) * DQ_SB + head * DQ_SH, DQ_ST, tile * 16, TQ, dqs[0], up_scaled, up_scaled, lane);
    }
}
