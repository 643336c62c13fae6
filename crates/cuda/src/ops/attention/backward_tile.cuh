// One 16 x 16 tile of the attention gradient, keys down and queries along, so that weights and score gradients
// come out as the a fragments of the products that need them.
//
// With m the mask of dropout, r its rate of keeping and P the softmax: dv = sum(P m do) / r and
// ds = P (m (do v) - r delta), dk = SCALE / r sum(ds q), dq = SCALE / r sum(ds k). The factors 1 / r are left to the end.
#pragma once

// What a lane needs of the 4 queries of its columns: the logarithm of the sum of exponentials in units of log 2
// (infinity for rows beyond TQ, whose weights are then 0) and r delta.
struct Stats {
    float2 top[2], delta[2];
};

__device__ __forceinline__ Stats load_stats(const float* top, const float* delta, int lane) {
    Stats s;
#pragma unroll
    for (int n = 0; n < 2; n++) {
        s.top[n] = *(const float2*)(top + n * 8 + lane % 4 * 2);
        s.delta[n] = *(const float2*)(delta + n * 8 + lane % 4 * 2);
    }
    return s;
}

// From scores s = k q and dp = v do (before), the weights that dropout leaves and the score gradients, as a fragments.
template <bool MASKED>
__device__ __forceinline__ void weigh(float (&s)[2][4], float (&dp)[2][4], u32 (&p)[4], u32 (&ds)[4], const Stats& stats, int key,
                                      int query, int valid, const Decisions& drop, int lane) {
    uint4 words = drop.tile(query / 16, key / 16, lane);
#if DROPOUT
    // Drawn with queries down: an 8 x 8 block of 16-bit decisions is transposed like a matrix.
    words.x = transpose8(words.x), words.y = transpose8(words.y), words.z = transpose8(words.z), words.w = transpose8(words.w);
#endif
#pragma unroll
    for (int n = 0; n < 8; n++) {
        int along = n / 4, down = n % 4 / 2, odd = n % 2;
        float top = odd ? stats.top[along].y : stats.top[along].x, delta = odd ? stats.delta[along].y : stats.delta[along].x;
        float weight = exp2_quick(fmaf(s[along][n % 4], FACTOR, -top));
        if (MASKED) {
            int j = key + down * 8 + lane / 4, i = query + along * 8 + lane % 4 * 2 + odd;
            if (j >= visible(i, valid)) weight = 0;
        }
        bool keeps = Decisions::keeps(word_of(words, down * 2 + along), odd);
        dp[along][n % 4] = weight * ((keeps ? dp[along][n % 4] : 0.0f) - delta);
        s[along][n % 4] = keeps ? weight : 0.0f;
    }
    pack_a(p, s);
    pack_a(ds, dp);
}

// Adds a tile of queries to dk and dv of 16 keys, whose fragments are `ka` and `va`; gives the score gradients.
template <bool MASKED>
__device__ __forceinline__ void add_tile(float (&dk)[COLS][4], float (&dv)[COLS][4], u32 (&ds)[4], const u32 (&ka)[STEPS][4],
                                         const u32 (&va)[STEPS][4], const T* q, const T* dy, const Stats& stats, int key, int query,
                                         int valid, const Decisions& drop, int lane) {
    float s[2][4] = {}, dp[2][4] = {};
    product(s, ka, q, lane);
    product(dp, va, dy, lane);
    u32 p[4];
    weigh<MASKED>(s, dp, p, ds, stats, key, query, valid, drop, lane);
    spread(dv, p, dy, lane);
    spread(dk, ds, q, lane);
}

// True if every query of the tile sees every key of the tile.
__device__ __forceinline__ bool sees_all(int query, int key, int valid) { return key + 16 <= visible(query, valid); }
