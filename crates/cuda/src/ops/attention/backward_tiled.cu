// attention_grad on tensor cores (float: rounded to TF32) for any T and any grouping, in two launches after attention_backward_delta.
//
// attention_backward_keys: a warp owns 16 keys, a block 16 WARPS; queries and do stream through two buffers, for every query
// head of the group. Grid (ceil(TK / (16 WARPS)), G, B). Shared memory: 4 ROW BLOCK elements, 24 BLOCK bytes.
// attention_backward_queries: a warp owns 16 queries, keys and values stream. Grid (ceil(TQ / (16 WARPS)), H, B). Shared
// memory: 4 ROW BLOCK elements.
// Threads 32 WARPS. BLOCK is a multiple of 16. `delta` is the workspace that attention_backward_delta filled.

constexpr int TILES = BLOCK / 16, STAGE = BLOCK * ROW;
constexpr int THREADS = WARPS * 32;

extern "C" __global__ void __launch_bounds__(THREADS)
attention_backward_keys(const T* q, const T* k, const T* v,
                        const float* lse, const T* dy EXTRA_PARAMS, T* dk,
                        T* dv, const float* delta) {
    enter();
    extern __shared__ __align__(16) unsigned char memory[];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = blockIdx.y, sample = blockIdx.z;
    k += size_t(sample) * K_SB + group * K_SH;
    v += size_t(sample) * V_SB + group * V_SH;
    int valid = VALID_KEYS(sample);
    T *qs = (T*)memory, *dys = qs + 2 * STAGE;
    float *tops = (float*)(dys + 2 * STAGE), *rests = tops + 2 * BLOCK;
    int first = blockIdx.x * WARPS * 16, key = first + warp * 16;
    // Blocks of queries that see this block's first key.
    constexpr int BLOCKS = (TQ + BLOCK - 1) / BLOCK;
    int from = CAUSAL ? first / BLOCK : 0, count = first < valid ? max(BLOCKS - from, 0) : 0;

    float dks[COLS][4] = {}, dvs[COLS][4] = {};
    u32 ka[STEPS][4], va[STEPS][4];
    load_rows(ka, k, K_ST, key, valid, lane);
    load_rows(va, v, V_ST, key, valid, lane);
    // Turn n: block from + n % count of head group * GROUP + n / count.
    auto start = [&](int turn) {
        int head = group * GROUP + turn / count, row = (from + turn % count) * BLOCK, stage = turn % 2;
        fetch<THREADS>(qs + stage * STAGE, q + size_t(sample) * Q_SB + head * Q_SH, Q_ST, row, BLOCK, TQ);
        fetch<THREADS>(dys + stage * STAGE, dy + size_t(sample) * DO_SB + head * DO_SH, DO_ST, row, BLOCK, TQ);
        size_t at = (size_t(sample) * H + head) * TQ;
        for (int n = threadIdx.x; n < BLOCK; n += THREADS) {
            bool inside = row + n < TQ;
            Stats of = {tops + stage * BLOCK, rests + stage * 2 * BLOCK};
            of.set(n, inside ? lse[at + row + n] : 0.0f, inside ? delta[at + row + n] : 0.0f, inside);
        }
    };
    int turns = count * GROUP;
    if (turns > 0) start(0);
    cp_async_commit();
#pragma unroll 1
    for (int turn = 0; turn < turns; turn++) {
        if (turn + 1 < turns) start(turn + 1);
        cp_async_commit();
        cp_async_wait<1>();
        int stage = turn % 2;
        settle(qs + stage * STAGE, BLOCK);
        settle(dys + stage * STAGE, BLOCK);
        __syncthreads();
        int row = (from + turn % count) * BLOCK;
        Decisions drop = DROPOUT_OF(sample, group * GROUP + turn / count);
#pragma unroll 1
        for (int n = 0; n < TILES; n++) {
            int query = row + n * 16;
            if (query >= TQ || key >= visible(query + 15, valid)) continue;
            u32 ds[1][PACKED];
            Stats stats = {tops + stage * BLOCK + n * 16, rests + stage * 2 * BLOCK + n * 32};
            const T *qt = qs + stage * STAGE + n * 16 * ROW, *dyt = dys + stage * STAGE + n * 16 * ROW;
            if (sees_all(query, key, valid))
                add_tiles<1, false>(dks, dvs, ds, ka, va, qt, dyt, stats, key, query, valid, drop, lane);
            else
                add_tiles<1, true>(dks, dvs, ds, ka, va, qt, dyt, stats, key, query, valid, drop, lane);
        }
        __syncthreads();
    }
    float up = Decisions::scale(), up_scaled = up * float(SCALE);
    store_rows(dk + size_t(sample) * DK_SB + group * DK_SH, DK_ST, key, TK, dks, up_scaled, up_scaled, lane);
    store_rows(dv + size_t(sample) * DV_SB + group * DV_SH, DV_ST, key, TK, dvs, up, up, lane);
}

// A tile of keys: with queries down, dq += ds k.
template <bool MASKED>
__device__ __forceinline__ void add_keys(float (&dq)[COLS][4], const u32 (&qa)[STEPS][4], const u32 (&dya)[STEPS][4], const T* k,
                                         const T* v, const float (&top)[2], const float (&rest)[2], int query, int key, int valid,
                                         const Decisions& drop, int lane) {
    uint4 words = drop.tile(query / 16, key / 16, lane);
    float s[2][4] = {}, dp[2][4];
#pragma unroll
    for (int n = 0; n < 8; n++) dp[n / 4][n % 4] = rest[n % 4 / 2];
    product(s, qa, k, lane);
    product(dp, dya, v, lane);
#pragma unroll
    for (int n = 0; n < 8; n++) {
        int along = n / 4, down = n % 4 / 2, odd = n % 2;
        float weight = exp2_quick(fmaf(s[along][n % 4], FACTOR, -top[down]));
        if (MASKED && key + along * 8 + lane % 4 * 2 + odd >= visible(query + down * 8 + lane / 4, valid)) weight = 0;
        Decisions::drop_gradient(dp[along][n % 4], weight, rest[down], word_of(words, along * 2 + down), odd);
    }
    u32 ds[PACKED];
    pack_a(ds, dp);
    spread(dq, ds, k, lane);
}

extern "C" __global__ void __launch_bounds__(THREADS)
attention_backward_queries(const T* q, const T* k, const T* v,
                           const float* lse, const T* dy EXTRA_PARAMS, T* dq,
                           const float* delta) {
    enter();
    extern __shared__ __align__(16) unsigned char memory[];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, head = blockIdx.y, sample = blockIdx.z;
    k += size_t(sample) * K_SB + head / GROUP * K_SH;
    v += size_t(sample) * V_SB + head / GROUP * V_SH;
    int valid = VALID_KEYS(sample);
    Decisions drop = DROPOUT_OF(sample, head);
    T *ks = (T*)memory, *vs = ks + 2 * STAGE;
    // The longest rows first: the short ones fill the gaps at the end.
    int first = (CAUSAL ? gridDim.x - 1 - blockIdx.x : blockIdx.x) * WARPS * 16, query = first + warp * 16;
    float dqs[COLS][4] = {}, top[2], rests[2];
    u32 qa[STEPS][4], dya[STEPS][4];
    load_rows(qa, q + size_t(sample) * Q_SB + head * Q_SH, Q_ST, query, TQ, lane);
    load_rows(dya, dy + size_t(sample) * DO_SB + head * DO_SH, DO_ST, query, TQ, lane);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int row = query + lane / 4 + half * 8;
        size_t at = (size_t(sample) * H + head) * TQ + row;
        top[half] = row < TQ ? lse[at] * LOG2E : INF;
        rests[half] = row < TQ ? -Decisions::rate() * delta[at] : 0.0f;
    }
    int blocks = (visible(first + WARPS * 16 - 1, valid) + BLOCK - 1) / BLOCK;
    auto start = [&](int block) {
        fetch<THREADS>(ks + block % 2 * STAGE, k, K_ST, block * BLOCK, BLOCK, valid);
        fetch<THREADS>(vs + block % 2 * STAGE, v, V_ST, block * BLOCK, BLOCK, valid);
    };
    if (blocks > 0) start(0);
    cp_async_commit();
#pragma unroll 1
    for (int block = 0; block < blocks; block++) {
        if (block + 1 < blocks) start(block + 1);
        cp_async_commit();
        cp_async_wait<1>();
        settle(ks + block % 2 * STAGE, BLOCK);
        settle(vs + block % 2 * STAGE, BLOCK);
        __syncthreads();
#pragma unroll 1
        for (int n = 0; n < TILES; n++) {
            int key = block * BLOCK + n * 16, at = block % 2 * STAGE + n * 16 * ROW;
            if (key >= visible(query + 15, valid)) break;
            if (sees_all(query, key, valid))
                add_keys<false>(dqs, qa, dya, ks + at, vs + at, top, rests, query, key, valid, drop, lane);
            else
                add_keys<true>(dqs, qa, dya, ks + at, vs + at, top, rests, query, key, valid, drop, lane);
        }
        __syncthreads();
    }
    float up = Decisions::scale() * float(SCALE);
    store_rows(dq + size_t(sample) * DQ_SB + head * DQ_SH, DQ_ST, query, TQ, dqs, up, up, lane);
}
