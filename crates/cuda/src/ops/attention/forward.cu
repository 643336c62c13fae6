// attention on tensor cores (T is bf16 or f16): o, and the logarithm of each row's sum of exponentials.
//
// A warp owns 16 queries and walks over tiles of 16 keys: scores (mma), softmax in registers, dropout by one Philox call a
// lane and tile, weights rounded to T, times values (mma). The reference maximum of a row is moved only when a score
// exceeds it by 2^SLACK, so that almost no tile pays for rescaling; sums and weights stay below 2^SLACK times the keys.
// WHOLE 1: all keys and values of a (sample, head) lie in shared memory, a warp takes several tiles of queries:
//   grid (1, H, B). WHOLE 0: blocks of BLOCK keys stream through two buffers, a warp takes one tile:
//   grid (ceil(TQ / (16 WARPS)), H, B). Threads 32 WARPS.
// Dynamic shared memory: 4 ROW bytes times (WHOLE ? 16 KEY_TILES : 2 BLOCK).

constexpr float SLACK = 6.0f;

// 16 queries on their way.
struct Queries {
    u32 q[STEPS][4];
    float o[COLS][4];
    float top[2], sum[2];
    int first, limit[2];
};

// The larger score once FACTOR is applied.
__device__ __forceinline__ float outer(float a, float b) { return FACTOR < 0 ? fminf(a, b) : fmaxf(a, b); }

template <bool MASKED>
__device__ __forceinline__ void attend(Queries& w, const T* keys, const T* values, int tile, const Decisions& drop, int lane) {
    uint4 words = drop.tile(w.first / 16, tile, lane);
    float s[2][4] = {};
    product(s, w.q, keys, lane);
    if (MASKED) {
#pragma unroll
        for (int n = 0; n < 8; n++) {
            int key = tile * 16 + n / 4 * 8 + lane % 4 * 2 + n % 2;
            if (key >= w.limit[n % 4 / 2]) s[n / 4][n % 4] = HIDDEN;
        }
    }
    float up = FACTOR * outer(outer(s[0][0], s[0][1]), outer(s[1][0], s[1][1]));
    float down = FACTOR * outer(outer(s[0][2], s[0][3]), outer(s[1][2], s[1][3]));
    if (__any_sync(FULL_WARP, up > w.top[0] + SLACK || down > w.top[1] + SLACK)) {
        float old[2] = {w.top[0], w.top[1]};
        w.top[0] = fmaxf(old[0], warp_max<4>(up));
        w.top[1] = fmaxf(old[1], warp_max<4>(down));
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float shrink = exp2_quick(old[half] - w.top[half]);
            w.sum[half] *= shrink;
#pragma unroll
            for (int n = 0; n < COLS; n++) w.o[n][2 * half] *= shrink, w.o[n][2 * half + 1] *= shrink;
        }
    }
#pragma unroll
    for (int n = 0; n < 8; n++) {
        float& p = s[n / 4][n % 4];
        p = exp2_quick(fmaf(p, FACTOR, -w.top[n % 4 / 2]));
        w.sum[n % 4 / 2] += p;
        p = Decisions::keeps(word_of(words, n / 4 * 2 + n % 4 / 2), n % 2) ? p : 0.0f;
    }
    u32 a[4];
    pack_a(a, s);
    spread(w.o, a, values, lane);
}

__device__ __forceinline__ void begin(Queries& w, const T* q, int tile, int valid, int lane) {
    w.first = tile * 16;
    load_rows(w.q, q, Q_ST, w.first, TQ, lane);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        w.top[half] = -1e30f;
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
    for (; tile < full; tile++) {
        int at = (tile - base) * 16 * ROW;
        attend<false>(w, keys + at, values + at, tile, drop, lane);
    }
#pragma unroll 1
    for (; tile < end; tile++) {
        int at = (tile - base) * 16 * ROW;
        attend<true>(w, keys + at, values + at, tile, drop, lane);
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

#if WHOLE && HEAD <= 16
#define BLOCKS_AT_ONCE (WARPS < 36 ? 36 / WARPS : 1)
#else
#define BLOCKS_AT_ONCE 1
#endif

extern "C" __global__ void __launch_bounds__(WARPS * 32, BLOCKS_AT_ONCE)
attention_forward(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v EXTRA_PARAMS, T* __restrict__ o,
                  float* __restrict__ lse) {
    extern __shared__ __align__(16) unsigned char memory[];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, head = blockIdx.y, sample = blockIdx.z;
    q += size_t(sample) * Q_SB + head * Q_SH;
    k += size_t(sample) * K_SB + head / GROUP * K_SH;
    v += size_t(sample) * V_SB + head / GROUP * V_SH;
    o += size_t(sample) * O_SB + head * O_SH;
    lse += (size_t(sample) * H + head) * TQ;
    int valid = VALID_KEYS(sample);
    Decisions drop = DROPOUT_OF(sample, head);
    Queries w;
    T* keys = (T*)memory;
#if WHOLE
    T* values = keys + KEY_TILES * 16 * ROW;
    fetch<WARPS * 32>(keys, k, K_ST, 0, KEY_TILES * 16, valid);
    fetch<WARPS * 32>(values, v, V_ST, 0, KEY_TILES * 16, valid);
    cp_async_commit();
    cp_async_wait<0>();
    __syncthreads();
#pragma unroll 1
    for (int turn = 0; turn * WARPS < QUERY_TILES; turn++) {
        int tile = turn_tile(QUERY_TILES, turn, warp);
        if (tile < 0) continue;
        begin(w, q, tile, valid, lane);
        walk(w, keys, values, 0, 0, KEY_TILES, valid, drop, lane);
        finish(w, o, lse, lane);
    }
#else
    constexpr int TILES = BLOCK / 16, STAGE = BLOCK * ROW;
    T* values = keys + 2 * STAGE;
    // The longest rows first: the short ones fill the gaps at the end.
    int first = (CAUSAL ? gridDim.x - 1 - blockIdx.x : blockIdx.x) * WARPS;
    begin(w, q, first + warp, valid, lane);
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
        __syncthreads();
        int base = block * TILES, at = block % 2 * STAGE;
        walk(w, keys + at, values + at, base, base, base + TILES, valid, drop, lane);
        __syncthreads();
    }
    finish(w, o, lse, lane);
#endif
}
