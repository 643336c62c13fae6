// attention on tensor cores (float: rounded to TF32): o, and the logarithm of each row's sum of exponentials.
//
// A warp owns 16 queries and walks over tiles of 16 keys: scores (mma), softmax in registers, dropout by one Philox call a
// lane and tile, weights rounded to T, times values (mma). The reference maximum of a row is 0 until the first tile's weights
// fall below FLOOR or a tile's exceed CEILING: then it becomes the true maximum. So almost no tile pays for a maximum or for
// rescaling, weights stay below CEILING, and a row's sum above FLOOR.
// WHOLE 1: all keys and values of HEADS heads of a sample lie in shared memory; a warp that has done a tile of queries takes
//   the next one, the longest first (the results do not depend on who does what): grid (1, H / HEADS, B). WHOLE 0: blocks of
//   BLOCK keys stream through two buffers, a warp takes 16 queries: grid (ceil(TQ / (16 WARPS)), H, B). Threads 32 WARPS.
// Dynamic shared memory: 2 ROW elements times (WHOLE ? 16 KEY_TILES HEADS : 2 BLOCK).

constexpr float CEILING = 256.0f, FLOOR = 1.0f / 64;
// Tiles of keys taken at once: more independent instructions, fewer branches.
#ifndef AT_ONCE
#define AT_ONCE (sizeof(T) == 2 && HEAD <= 32 ? 2 : 1)
#endif

// 16 queries on their way.
struct Queries {
    u32 q[STEPS][4];
    float o[COLS][4];
    float top[2], sum[2];
    int first, limit[2];
};

// The larger score once FACTOR is applied.
__device__ __forceinline__ float outer(float a, float b) { return FACTOR < 0 ? fminf(a, b) : fmaxf(a, b); }

// Moves the reference maxima up to the true ones (at the `first` tile, from anywhere) and rescales what was summed.
template <int N> __device__ __forceinline__ void raise(Queries& w, const float (&s)[N][2][4], bool first) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int n = 2 * half;
        float top = s[0][0][n];
#pragma unroll
        for (int i = 0; i < N; i++) top = outer(outer(top, outer(s[i][0][n], s[i][0][n + 1])), outer(s[i][1][n], s[i][1][n + 1]));
        top = warp_max<4>(FACTOR * top);
        float old = first ? -1e30f : w.top[half];
        w.top[half] = fmaxf(old, top);
        float shrink = exp2_quick(old - w.top[half]);
        w.sum[half] *= shrink;
#pragma unroll
        for (int c = 0; c < COLS; c++) w.o[c][n] *= shrink, w.o[c][n + 1] *= shrink;
    }
}

// Weights of tiles of scores, and their sums by row.
template <int N> __device__ __forceinline__ float2 weights(float (&p)[N][2][4], const float (&s)[N][2][4], const Queries& w) {
    float2 sums = make_float2(0, 0);
#pragma unroll
    for (int i = 0; i < N; i++) {
#pragma unroll
        for (int n = 0; n < 8; n++) p[i][n / 4][n % 4] = exp2_quick(fmaf(s[i][n / 4][n % 4], FACTOR, -w.top[n % 4 / 2]));
        float up = (p[i][0][0] + p[i][0][1]) + (p[i][1][0] + p[i][1][1]);
        float down = (p[i][0][2] + p[i][0][3]) + (p[i][1][2] + p[i][1][3]);
        sums = i == 0 ? make_float2(up, down) : make_float2(sums.x + up, sums.y + down);
    }
    return sums;
}

// Takes N tiles of keys.
template <int N, bool MASKED>
__device__ __forceinline__ void attend(Queries& w, const T* keys, const T* values, int tile, const Decisions& drop, int lane) {
    float s[N][2][4] = {}, p[N][2][4];
    uint4 words[N];
#pragma unroll
    for (int i = 0; i < N; i++) {
        words[i] = drop.tile(w.first / 16, tile + i, lane);
        product(s[i], w.q, keys + i * 16 * ROW, lane);
    }
    if (MASKED) {
#pragma unroll
        for (int i = 0; i < N; i++)
#pragma unroll
            for (int n = 0; n < 8; n++) {
                int key = (tile + i) * 16 + n / 4 * 8 + lane % 4 * 2 + n % 2;
                if (key >= w.limit[n % 4 / 2]) s[i][n / 4][n % 4] = HIDDEN;
            }
    }
    float2 sums = weights(p, s, w);
#pragma unroll
    for (int i = 0; i < N; i++) pin(words[i]);
    bool first = tile == 0, fine = fmaxf(sums.x, sums.y) <= CEILING && fminf(sums.x, sums.y) >= (first ? FLOOR : 0.0f);
    if (__any_sync(FULL_WARP, !fine)) {
        raise(w, s, first);
        sums = weights(p, s, w);
    }
    w.sum[0] += sums.x;
    w.sum[1] += sums.y;
#pragma unroll
    for (int i = 0; i < N; i++) {
#pragma unroll
        for (int n = 0; n < 8; n++) Decisions::drop(p[i][n / 4][n % 4], word_of(words[i], n / 4 * 2 + n % 4 / 2), n % 2);
        u32 a[PACKED];
        pack_a(a, p[i]);
        spread(w.o, a, values + i * 16 * ROW, lane);
    }
}

// Makes `w` ready for a tile of queries, but for w.q.
__device__ __forceinline__ void begin(Queries& w, int tile, int valid, int lane) {
    w.first = tile * 16;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        w.top[half] = 0;
        w.sum[half] = 0;
        w.limit[half] = visible(w.first + lane / 4 + 8 * half, valid);
    }
#pragma unroll
    for (int n = 0; n < COLS; n++) w.o[n][0] = w.o[n][1] = w.o[n][2] = w.o[n][3] = 0;
}

// Key tiles `from`..`to` of a buffer whose first tile is `base`.
__device__ __forceinline__ void walk(Queries& w, const T* keys, const T* values, int base, int from, int to, int valid,
                                     const Decisions& drop, int lane) {
    int end = min(to, (visible(w.first + 15, valid) + 15) / 16), full = min(end, visible(w.first, valid) / 16);
    int tile = from;
#pragma unroll 1
    for (; tile + AT_ONCE <= full; tile += AT_ONCE) {
        int at = (tile - base) * 16 * ROW;
        attend<AT_ONCE, false>(w, keys + at, values + at, tile, drop, lane);
    }
#pragma unroll 1
    for (; tile < end; tile++) {
        int at = (tile - base) * 16 * ROW;
        attend<1, true>(w, keys + at, values + at, tile, drop, lane);
    }
}

// A row that saw no key has sum 0: it gives 0, and 0 for the logarithm.
__device__ __forceinline__ void finish(Queries& w, T* o, float* lse, int lane) {
    float factor[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float sum = warp_sum<4>(w.sum[half]);
        int row = w.first + lane / 4 + 8 * half;
        factor[half] = sum > 0 ? Decisions::scale() * recip_quick(sum) : 0.0f * sum;
        if (lane % 4 == 0 && row < TQ) lse[row] = sum == 0 ? 0.0f : (w.top[half] + log2_quick(sum)) * LN2;
    }
    store_rows(o, O_ST, w.first, TQ, w.o, factor[0], factor[1], lane);
}

// Registers for as many blocks at once as 24 warps allow.
#ifndef BLOCKS_AT_ONCE
#define BLOCKS_AT_ONCE (!WHOLE || HEAD > 16 || WARPS > 24 ? 1 : 24 / WARPS)
#endif

extern "C" __global__ void __launch_bounds__(WARPS * 32, BLOCKS_AT_ONCE)
attention_forward(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v EXTRA_PARAMS, T* __restrict__ o,
                  float* __restrict__ lse) {
    extern __shared__ __align__(16) unsigned char memory[];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, sample = blockIdx.z;
    q += size_t(sample) * Q_SB;
    k += size_t(sample) * K_SB;
    v += size_t(sample) * V_SB;
    o += size_t(sample) * O_SB;
    lse += size_t(sample) * H * TQ;
    int valid = VALID_KEYS(sample);
    Decisions drop = DROPOUT_OF(sample, blockIdx.y);
    Queries w;
#if WHOLE
    constexpr int ITEMS = QUERY_TILES * HEADS, ROWS = KEY_TILES * 16;
    static_assert(WARPS <= ITEMS, "every warp has a tile");
    // Queries are read an item ahead, where registers allow it.
    constexpr bool AHEAD = HEAD <= 16;
    __shared__ int taken;
    T* keys = (T*)memory;
    if (threadIdx.x == 0) taken = WARPS;
    int first = blockIdx.y * HEADS;
#pragma unroll
    for (int n = 0; n < HEADS; n++) {
        fetch<WARPS * 32>(keys + 2 * n * ROWS * ROW, k + (first + n) / GROUP * K_SH, K_ST, 0, ROWS, valid);
        fetch<WARPS * 32>(keys + (2 * n + 1) * ROWS * ROW, v + (first + n) / GROUP * V_SH, V_ST, 0, ROWS, valid);
    }
    cp_async_commit();
    u32 next[STEPS][4];
    auto read = [&](int item) {
        load_rows(next, q + (first + item % HEADS) * Q_SH, Q_ST, (QUERY_TILES - 1 - item / HEADS) * 16, TQ, lane);
    };
    int item = warp;
    read(item);
    cp_async_wait<0>();
#pragma unroll
    for (int n = 0; n < 2 * HEADS; n++) settle(keys + n * ROWS * ROW, ROWS);
    __syncthreads();
#pragma unroll 1
    while (item < ITEMS) {
        int after = lane == 0 ? atomicAdd(&taken, 1) : 0;
        after = __shfl_sync(FULL_WARP, after, 0);
        int part = item % HEADS, head = first + part;
        begin(w, QUERY_TILES - 1 - item / HEADS, valid, lane);
#pragma unroll
        for (int n = 0; n < STEPS; n++)
#pragma unroll
            for (int m = 0; m < 4; m++) w.q[n][m] = next[n][m];
        if (AHEAD && after < ITEMS) read(after);
        const T* mine = keys + 2 * part * ROWS * ROW;
        drop.of_head(head);
        walk(w, mine, mine + ROWS * ROW, 0, 0, KEY_TILES, valid, drop, lane);
        finish(w, o + head * O_SH, lse + head * TQ, lane);
        if (!AHEAD && after < ITEMS) read(after);
        item = after;
    }
#else
    constexpr int TILES = BLOCK / 16, STAGE = BLOCK * ROW;
    int head = blockIdx.y;
    k += head / GROUP * K_SH;
    v += head / GROUP * V_SH;
    T *keys = (T*)memory, *values = keys + 2 * STAGE;
    // The longest rows first: the short ones fill the gaps at the end.
    int first = (CAUSAL ? gridDim.x - 1 - blockIdx.x : blockIdx.x) * WARPS;
    load_rows(w.q, q + head * Q_SH, Q_ST, (first + warp) * 16, TQ, lane);
    begin(w, first + warp, valid, lane);
    int blocks = (visible((first + WARPS) * 16 - 1, valid) + BLOCK - 1) / BLOCK;
    auto start = [&](int block) {
        fetch<WARPS * 32>(keys + block % 2 * STAGE, k, K_ST, block * BLOCK, BLOCK, valid);
        fetch<WARPS * 32>(values + block % 2 * STAGE, v, V_ST, block * BLOCK, BLOCK, valid);
    };
    if (blocks > 0) start(0);
    cp_async_commit();
#pragma unroll 1
    for (int block = 0; block < blocks; block++) {
        if (block + 1 < blocks) start(block + 1);
        cp_async_commit();
        cp_async_wait<1>();
        int base = block * TILES, at = block % 2 * STAGE;
        settle(keys + at, BLOCK);
        settle(values + at, BLOCK);
        __syncthreads();
        walk(w, keys + at, values + at, base, base, base + TILES, valid, drop, lane);
        __syncthreads();
    }
    finish(w, o + head * O_SH, lse + head * TQ, lane);
#endif
}
