// One 16 x 16 tile of the attention gradient, keys down and queries along, so that weights and score gradients
// come out as the a fragments of the products that need them.
//
// With m the mask of dropout, r its rate of keeping and P the softmax: dv = sum(P m do) / r and
// ds = P (m (do v) - r delta), dk = SCALE / r sum(ds q), dq = SCALE / r sum(ds k). The factors 1 / r are left to the end.
#pragma once

// What shared memory holds of the queries of a tile: the logarithm of the sum of exponentials in units of log 2 (infinity
// for rows beyond TQ, whose weights are then 0), and -r delta, each pair of queries twice: a lane's initial accumulator.
struct Stats {
    float *top, *rest;
    __device__ __forceinline__ void set(int row, float lse, float delta, bool inside) const {
        top[row] = inside ? lse * LOG2E : INF;
        float x = inside ? -Decisions::rate() * delta : 0.0f;
        rest[row / 2 * 4 + row % 2] = x;
        rest[row / 2 * 4 + row % 2 + 2] = x;
    }
};

// From scores s = k q and dp = v do - r delta, the weights that dropout leaves (in s) and the score gradients (in dp).
template <bool MASKED>
__device__ __forceinline__ void weigh(float (&s)[2][4], float (&dp)[2][4], const Stats& stats, int key, int query, int valid,
                                      uint4 words, int lane) {
#if DROPOUT
    // Drawn with queries down: an 8 x 8 block of 16-bit decisions is transposed like a matrix.
    words.x = transpose8(words.x), words.y = transpose8(words.y), words.z = transpose8(words.z), words.w = transpose8(words.w);
#endif
#pragma unroll
    for (int along = 0; along < 2; along++) {
        float2 top = *(const float2*)(stats.top + along * 8 + lane % 4 * 2);
        float2 rest = *(const float2*)(stats.rest + along * 16 + lane % 4 * 4);
#pragma unroll
        for (int n = 0; n < 4; n++) {
            int down = n / 2, odd = n % 2;
            float weight = exp2_quick(fmaf(s[along][n], FACTOR, odd ? -top.y : -top.x));
            if (MASKED) {
                int j = key + down * 8 + lane / 4, i = query + along * 8 + lane % 4 * 2 + odd;
                if (j >= visible(i, valid)) weight = 0;
            }
            Decisions::drop_gradient(dp[along][n], weight, odd ? rest.y : rest.x, word_of(words, down * 2 + along), odd);
            s[along][n] = weight;
        }
    }
}

// Adds N tiles of queries, one below the other, to dk and dv of 16 keys, whose fragments are `ka` and `va`; gives the score
// gradients. Several tiles at once keep more independent instructions under way.
template <int N, bool MASKED>
__device__ __forceinline__ void add_tiles(float (&dk)[COLS][4], float (&dv)[COLS][4], u32 (&ds)[N][PACKED], const u32 (&ka)[STEPS][4],
                                          const u32 (&va)[STEPS][4], const T* q, const T* dy, const Stats& stats, int key, int query,
                                          int valid, const Decisions& drop, int lane) {
    float s[N][2][4] = {}, dp[N][2][4];
    uint4 words[N];
#pragma unroll
    for (int n = 0; n < N; n++) {
        words[n] = drop.tile(query / 16 + n, key / 16, lane);
        product(s[n], ka, q + n * 16 * ROW, lane);
#pragma unroll
        for (int along = 0; along < 2; along++) {
            float4 rest = *(const float4*)(stats.rest + n * 32 + along * 16 + lane % 4 * 4);
            dp[n][along][0] = rest.x, dp[n][along][1] = rest.y, dp[n][along][2] = rest.z, dp[n][along][3] = rest.w;
        }
        product(dp[n], va, dy + n * 16 * ROW, lane);
    }
#pragma unroll
    for (int n = 0; n < N; n++) {
        Stats of = {stats.top + n * 16, stats.rest + n * 32};
        weigh<MASKED>(s[n], dp[n], of, key, query + n * 16, valid, words[n], lane);
    }
#pragma unroll
    for (int n = 0; n < N; n++) {
        u32 p[PACKED];
        pack_a(p, s[n]);
        pack_a(ds[n], dp[n]);
        spread(dv, p, dy + n * 16 * ROW, lane);
        spread(dk, ds[n], q + n * 16 * ROW, lane);
    }
}

// True if every query of the tile sees every key of the tile.
__device__ __forceinline__ bool sees_all(int query, int key, int valid) { return key + 16 <= visible(query, valid); }
