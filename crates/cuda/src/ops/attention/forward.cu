// attention on tensor cores (float: rounded to TF32): o, and the logarithm of each row's sum of exponentials.
//
// A warp owns 16 queries and walks over tiles of 16 keys: scores (mma), weights in registers, dropout by one Philox call a lane
// and tile, weights rounded to T, times values (mma). Weights are not relative to the maximum of their row: it is enough that
// none overflows and that the sum of each row is no tiny number. That is checked when a tile of queries is done; one that fails
// is done again, with the running maximum of each row (SAFE).
// WHOLE 1: all keys and values of HEADS heads of a sample lie in shared memory; a warp that has done a tile of queries takes
//   the next one, the longest first (the results do not depend on who does what): grid (1, H / HEADS, B). WHOLE 0: blocks of
//   BLOCK keys stream through two buffers, a warp takes 16 queries: grid (ceil(TQ / (16 WARPS)), H, B). Threads 32 WARPS.
// Dynamic shared memory: 2 ROW elements times (WHOLE ? 16 KEY_TILES HEADS : 2 BLOCK).

template <typename E> constexpr bool NARROW = false;
template <> constexpr bool NARROW<f16> = true;
// Between these a row's sum has lost nothing: weights of f16 are then at most 2^15, and 2^-14 or negligible.
constexpr float LOW = NARROW<T> ? 1.0f / 64 : 1e-30f, HIGH = NARROW<T> ? 32768.0f : 1e30f;
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

// Moves the maxima of the rows on, and what was summed with them; scores become relative to them.
__device__ __forceinline__ void raise(Queries& w, float (&s)[2][4]) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int n = 2 * half;
        float top = warp_max<4>(fmaxf(fmaxf(s[0][n], s[0][n + 1]), fmaxf(s[1][n], s[1][n + 1])));
        top = fmaxf(top, w.top[half]);
        float shrink = exp2_quick(w.top[half] - top);
        w.top[half] = top;
        w.sum[half] *= shrink;
#pragma unroll
        for (int c = 0; c < COLS; c++) w.o[c][n] *= shrink, w.o[c][n + 1] *= shrink;
#pragma unroll
        for (int c = 0; c < 4; c++) s[c / 2][n + c % 2] -= top;
    }
}

// Takes N tiles of keys from `tile` on; `keys` and `values` are a lane's places in the first. UPPER: only the first 8 queries matter.
template <int N, int KIND, bool UPPER, bool SAFE>
__device__ __forceinline__ void attend(Queries& w, u32 keys, u32 values, int tile, const Decisions& drop, int lane) {
    constexpr int STEP = 16 * ROW * sizeof(T);
    float s[N][2][4] = {};
    uint4 words[N];
#pragma unroll
    for (int i = 0; i < N; i++) {
        words[i] = drop.tile(w.first / 16, tile + i, lane);
        product(s[i], w.q, keys + i * STEP, lane_b(lane));
#pragma unroll
        for (int n = 0; n < 8; n++) s[i][n / 4][n % 4] *= FACTOR;
        if (KIND == SOME)
#pragma unroll
            for (int n = 0; n < 8; n++) {
                int key = (tile + i) * 16 + n / 4 * 8 + lane % 4 * 2 + n % 2;
                if (key >= w.limit[n % 4 / 2]) s[i][n / 4][n % 4] = -INF;
            }
        if (SAFE) raise(w, s[i]);
    }
#pragma unroll
    for (int i = 0; i < N; i++) {
#pragma unroll
        for (int n = 0; n < 8; n++) {
            // Where no lane has anything to see; and on the diagonal.
            bool none = (UPPER && n % 4 >= 2) || (KIND == DIAGONAL && n >= 4 && n % 4 < 2), half = n / 4 == n % 4 / 2;
            float& x = s[i][n / 4][n % 4];
            x = none ? 0.0f : exp2_quick(x);
            if (KIND == DIAGONAL && half && lane % 4 * 2 + n % 2 > lane / 4) x = 0;
        }
        w.sum[0] += (s[i][0][0] + s[i][0][1]) + (s[i][1][0] + s[i][1][1]);
        if (!UPPER) w.sum[1] += (s[i][0][2] + s[i][0][3]) + (s[i][1][2] + s[i][1][3]);
    }
#pragma unroll
    for (int i = 0; i < N; i++) {
        u32 a[PACKED];
        pack_kept(a, s[i], words[i]);
        spread(w.o, a, values + i * STEP, lane_bt(lane));
    }
}

// Makes `w` ready for a tile of queries, but for w.q.
__device__ __forceinline__ void begin(Queries& w, int tile, int valid, bool safe, int lane) {
    w.first = tile * 16;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        w.top[half] = safe ? -1e30f : 0.0f;
        w.sum[half] = 0;
        w.limit[half] = visible(w.first + lane / 4 + 8 * half, valid);
    }
#pragma unroll
    for (int n = 0; n < COLS; n++) w.o[n][0] = w.o[n][1] = w.o[n][2] = w.o[n][3] = 0;
}

// Key tiles `from`..`to` of a buffer whose first tile is `from`.
template <bool UPPER, bool SAFE>
__device__ __forceinline__ void walk(Queries& w, const T* keys, const T* values, int from, int to, int valid, const Decisions& drop,
                                     int lane) {
    constexpr int STEP = 16 * ROW * sizeof(T);
    u32 k = shared_address(keys + lane_b(lane)), v = shared_address(values + lane_bt(lane));
    int end = min(to, (visible(w.first + 15, valid) + 15) / 16), full = min(end, visible(w.first, valid) / 16), tile = from;
    if (!SAFE) {
#pragma unroll 1
        for (; tile + AT_ONCE <= full; tile += AT_ONCE, k += AT_ONCE * STEP, v += AT_ONCE * STEP)
            attend<AT_ONCE, ALL, UPPER, false>(w, k, v, tile, drop, lane);
        if (AT_ONCE > 1 && tile < full) {
            attend<1, ALL, UPPER, false>(w, k, v, tile, drop, lane);
            tile++, k += STEP, v += STEP;
        }
        if (SQUARE) {
            if (tile < end) attend<1, DIAGONAL, UPPER, false>(w, k, v, tile, drop, lane);
            return;
        }
    }
#pragma unroll 1
    for (; tile < end; tile++, k += STEP, v += STEP) attend<1, SOME, UPPER, SAFE>(w, k, v, tile, drop, lane);
}

// Sums whole rows up; true if they will do.
__device__ __forceinline__ bool sum_up(Queries& w, int lane) {
    bool fine = true;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float sum = warp_sum<4>(w.sum[half]);
        w.sum[half] = sum;
        // Rows that see no key have no sum, and rows beyond TQ do not matter.
        bool any = w.limit[half] > 0 && w.first + lane / 4 + 8 * half < TQ;
        fine = fine && (!any || (sum >= LOW && sum <= HIGH));
    }
    return fine;
}

// A row that saw no key has sum 0: it gives 0, and 0 for the logarithm.
__device__ __forceinline__ void finish(Queries& w, T* o, float* lse, int lane) {
    float factor[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float sum = w.sum[half];
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
attention_forward(const T* q, const T* k, const T* v EXTRA_PARAMS, T* o,
                  float* lse) {
    enter();
    extern __shared__ __align__(16) unsigned char memory[];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, sample = blockIdx.z;
    q += size_t(sample) * Q_SB;
    k += size_t(sample) * K_SB;
    v += size_t(sample) * V_SB;
    o += size_t(sample) * O_SB;
    lse += size_t(sample) * H * TQ;
    int valid = VALID_KEYS(sample);
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
    if constexpr (GROUP == 1 && sizeof(T) == 2) {
        // Heads side by side are read side by side.
        fetch<WARPS * 32, HEADS>(keys, k + first * K_SH, K_ST, 0, ROWS, valid, K_SH, 2 * ROWS * ROW);
        fetch<WARPS * 32, HEADS>(keys + ROWS * ROW, v + first * V_SH, V_ST, 0, ROWS, valid, V_SH, 2 * ROWS * ROW);
    } else {
        // TF32: a thread rounds what it has read (`settle`).
#pragma unroll
        for (int n = 0; n < HEADS; n++) {
            fetch<WARPS * 32>(keys + 2 * n * ROWS * ROW, k + (first + n) / GROUP * K_SH, K_ST, 0, ROWS, valid);
            fetch<WARPS * 32>(keys + (2 * n + 1) * ROWS * ROW, v + (first + n) / GROUP * V_SH, V_ST, 0, ROWS, valid);
        }
    }
    cp_async_commit();
    u32 next[STEPS][4];
    auto read = [&](int item) {
        load_rows(next, q + (first + item % HEADS) * Q_SH, Q_ST, (QUERY_TILES - 1 - item / HEADS) * 16, TQ, lane);
    };
    int item = warp;
    read(item);
    // Behind the loads, which it would hold up.
    Decisions drop = DROPOUT_OF(sample, first);
    cp_async_wait<0>();
#pragma unroll
    for (int n = 0; n < 2 * HEADS; n++) settle(keys + n * ROWS * ROW, ROWS);
    __syncthreads();
#pragma unroll 1
    while (item < ITEMS) {
        int after = lane == 0 ? atomicAdd(&taken, 1) : 0;
        after = __shfl_sync(FULL_WARP, after, 0);
        int part = item % HEADS, head = first + part, tile = QUERY_TILES - 1 - item / HEADS;
        begin(w, tile, valid, false, lane);
#pragma unroll
        for (int n = 0; n < STEPS; n++)
#pragma unroll
            for (int m = 0; m < 4; m++) w.q[n][m] = next[n][m];
        if (AHEAD && after < ITEMS) read(after);
        const T* mine = keys + 2 * part * ROWS * ROW;
        drop.of_head(head);
        if (SHORT && tile == QUERY_TILES - 1)
            walk<SHORT, false>(w, mine, mine + ROWS * ROW, 0, KEY_TILES, valid, drop, lane);
        else
            walk<false, false>(w, mine, mine + ROWS * ROW, 0, KEY_TILES, valid, drop, lane);
        if (__any_sync(FULL_WARP, !sum_up(w, lane))) {
            begin(w, tile, valid, true, lane);
            walk<false, true>(w, mine, mine + ROWS * ROW, 0, KEY_TILES, valid, drop, lane);
            sum_up(w, lane);
        }
        finish(w, o + head * O_SH, lse + head * TQ, lane);
        if (!AHEAD && after < ITEMS) read(after);
        item = after;
    }
#else
    constexpr int TILES = BLOCK / 16, STAGE = BLOCK * ROW;
    int head = blockIdx.y;
    Decisions drop = DROPOUT_OF(sample, head);
    k += head / GROUP * K_SH;
    v += head / GROUP * V_SH;
    T *keys = (T*)memory, *values = keys + 2 * STAGE;
    // The longest rows first: the short ones fill the gaps at the end.
    int first = (CAUSAL ? gridDim.x - 1 - blockIdx.x : blockIdx.x) * WARPS;
    load_rows(w.q, q + head * Q_SH, Q_ST, (first + warp) * 16, TQ, lane);
    int blocks = (visible((first + WARPS) * 16 - 1, valid) + BLOCK - 1) / BLOCK;
    auto start = [&](int block) {
        fetch<WARPS * 32>(keys + block % 2 * STAGE, k, K_ST, block * BLOCK, BLOCK, valid);
        fetch<WARPS * 32>(values + block % 2 * STAGE, v, V_ST, block * BLOCK, BLOCK, valid);
    };
#pragma unroll 1
    for (int safe = 0; safe < 2; safe++) {
        begin(w, first + warp, valid, safe, lane);
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
            if (safe) walk<false, true>(w, keys + at, values + at, base, base + TILES, valid, drop, lane);
            else walk<false, false>(w, keys + at, values + at, base, base + TILES, valid, drop, lane);
            __syncthreads();
        }
        if (!__syncthreads_or(!sum_up(w, lane))) break;
    }
    finish(w, o + head * O_SH, lse + head * TQ, lane);
#endif
}
