// attention_grad on tensor cores in one launch, for 16 bits, where a (sample, head) fits in shared memory and H = G.
//
// First a warp owns 16 keys and walks over tiles of 16 queries: scores and weights recomputed, dk and dv in registers, the
// score gradients kept in shared memory (rounded to T). Then a warp owns 16 queries and sums dq over these. WARPS warps share
// a head, HEADS heads a block: grid (1, H / HEADS, B), threads 32 WARPS HEADS. Dynamic shared memory: HEADS times (32 ROW
// (2 QUERY_TILES + KEY_TILES) + 192 QUERY_TILES + 512 times the pairs of tiles), these being
// QUERY_TILES (QUERY_TILES + 1) / 2 if causal, else QUERY_TILES KEY_TILES.
// The formulas are those of backward_tile.cuh; m (do v) - r delta is rounded to T before it meets the weight, rounded likewise,
// so that dropout works on pairs.

// Keeps score gradients: blocks 0 to 3 (8 x 8) as 8 rows of 16 bytes each, ready for a transposing ldmatrix.
__device__ __forceinline__ void keep(u32 pair, const u32 (&ds)[4], int lane) {
#if __CUDA_ARCH__ >= 900
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%4], {%0,%1,%2,%3};"
                 ::"r"(ds[0]), "r"(ds[1]), "r"(ds[2]), "r"(ds[3]), "r"(pair + lane * 16) : "memory");
#else
#pragma unroll
    for (int n = 0; n < 4; n++) asm volatile("st.shared.u32 [%0], %1;" ::"r"(pair + n * 128 + lane * 4), "r"(ds[n]) : "memory");
#endif
}

// A lane's addresses in shared memory at a tile of queries: for `product`, for `spread`, and of the statistics.
struct Spot {
    u32 b, bt, stats;
    __device__ __forceinline__ void step(int tiles) { b += tiles * TILE, bt += tiles * TILE, stats += tiles * STATS; }
};
__device__ __forceinline__ float4 read4(u32 at) {
    float4 r;
    asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(r.x), "=f"(r.y), "=f"(r.z), "=f"(r.w) : "r"(at) : "memory");
    return r;
}

// A tile of keys and what is summed up for it; `pair` is the address of its pair with the tile of queries at hand.
struct Keys {
    u32 k[STEPS][4], v[STEPS][4];
    float dk[COLS][4], dv[COLS][4];
    int tile;
    u32 pair;
};

// From the weights s and dp = do v - r delta: the weights that dropout leaves, and the score gradients.
template <int KIND, bool UPPER>
__device__ __forceinline__ void gradients(u32 (&p)[4], u32 (&ds)[4], const float (&s)[2][4], const float (&dp)[2][4],
                                          const u32 (&rest)[2], uint4 words) {
    // Drawn with queries down: an 8 x 8 block of 16-bit decisions is transposed like a matrix.
    u32 kept[4] = {words.x, words.z, words.y, words.w}, x[4];
    pack_a(p, s);
    pack_a(x, dp);
#pragma unroll
    for (int n = 0; n < 4; n++) {
        if ((UPPER && n >= 2) || (KIND == DIAGONAL && n == 1)) {
            p[n] = ds[n] = 0;
            continue;
        }
#if DROPOUT
        u32 mask = Decisions::halves(transpose8(kept[n]));
        ds[n] = mul2<T>(p[n], (x[n] & mask) | (rest[n / 2] & ~mask));
        p[n] &= mask;
#else
        ds[n] = mul2<T>(p[n], x[n]);
#endif
    }
}

// Adds N tiles of queries, one below the other, to the sums of a tile of keys and keeps their score gradients. UPPER: only the first
// 8 queries matter. Several tiles at once keep more independent instructions under way.
template <int N, int KIND, bool UPPER>
__device__ __forceinline__ void advance(Keys& w, const Spot& at, int query, int valid, const Decisions& drop, int lane) {
    float s[N][2][4] = {}, dp[N][2][4];
    uint4 words[N];
    float4 top[N];
    u32 rest[N][2];
#pragma unroll
    for (int n = 0; n < N; n++) {
        u32 stats = at.stats + n * STATS;
        words[n] = drop.tile(query + n, w.tile, lane);
        top[n] = read4(stats);
        float4 x = read4(stats + 64);
#pragma unroll
        for (int i = 0; i < 8; i++) dp[n][i / 4][i % 4] = i < 4 ? (i % 2 ? x.y : x.x) : (i % 2 ? x.w : x.z);
        asm volatile("ld.shared.v2.u32 {%0,%1}, [%2];" : "=r"(rest[n][0]), "=r"(rest[n][1]) : "r"(stats + 128) : "memory");
        product<UPPER>(s[n], w.k, at.b + n * TILE, lane_b(lane));
        product<UPPER>(dp[n], w.v, at.b + DY + n * TILE, lane_b(lane));
    }
#pragma unroll
    for (int n = 0; n < N; n++) {
        float tops[4] = {top[n].x, top[n].y, top[n].z, top[n].w};
#pragma unroll
        for (int i = 0; i < 8; i++) {
            // Where no lane has anything to see; and on the diagonal.
            bool none = (UPPER && i >= 4) || (KIND == DIAGONAL && (i == 2 || i == 3)), half = i < 2 || i >= 6;
            float& x = s[n][i / 4][i % 4];
            x = none ? 0.0f : exp2_quick(fmaf(x, FACTOR, -tops[i / 4 * 2 + i % 2]));
            int key = w.tile * 16 + i % 4 / 2 * 8 + lane / 4, row = (query + n) * 16 + i / 4 * 8 + lane % 4 * 2 + i % 2;
            if (KIND == SOME && key >= visible(row, valid)) x = 0;
            if (KIND == DIAGONAL && half && lane / 4 > lane % 4 * 2 + i % 2) x = 0;
        }
        u32 p[4], ds[4];
        gradients<KIND, UPPER>(p, ds, s[n], dp[n], rest[n], words[n]);
        keep(w.pair + n * PAIR, ds, lane);
        spread(w.dv, p, at.bt + DY + n * TILE, lane_bt(lane));
        spread(w.dk, ds, at.bt + n * TILE, lane_bt(lane));
    }
    w.pair += N * PAIR;
}

// Walks over the queries that see a tile of keys; `at` starts at query tile 0, `w.pair` at the first that sees them.
__device__ __forceinline__ void walk(Keys& w, Spot at, int valid, const Decisions& drop, int lane) {
    constexpr int FULL = SHORT ? QUERY_TILES - 1 : QUERY_TILES;
    auto sees_all = [&](int query) { return w.tile * 16 + 16 <= visible(query * 16, valid); };
    int i = CAUSAL ? w.tile : 0;
    at.step(i);
#pragma unroll 1
    for (; i < FULL && !sees_all(i); i++, at.step(1)) advance<1, SQUARE ? DIAGONAL : SOME, false>(w, at, i, valid, drop, lane);
#pragma unroll 1
    for (; i + AT_ONCE <= FULL; i += AT_ONCE, at.step(AT_ONCE)) advance<AT_ONCE, ALL, false>(w, at, i, valid, drop, lane);
    if (AT_ONCE > 1 && i < FULL) {
        advance<1, ALL, false>(w, at, i, valid, drop, lane);
        i++, at.step(1);
    }
    if (!SHORT || i >= QUERY_TILES) return;
    if (sees_all(i)) advance<1, ALL, true>(w, at, i, valid, drop, lane);
    else advance<1, SOME, true>(w, at, i, valid, drop, lane);
}

extern "C" __global__ void __launch_bounds__(WARPS * HEADS * 32, BLOCKS_AT_ONCE)
attention_backward(const T* q, const T* k, const T* v, const T* o,
                   const float* lse, const T* dy EXTRA_PARAMS, T* dq, T* dk,
                   T* dv) {
    enter();
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

    T *qs = (T*)(memory + part * BYTES), *dys = qs + QUERY_TILES * 16 * ROW, *ks = dys + QUERY_TILES * 16 * ROW;
    Stats stats = {(unsigned char*)(ks + KEY_TILES * 16 * ROW)};
    u32 pairs = shared_address(stats.at + QUERY_TILES * STATS);
    // Where a tile of 16 values is as large as a pair, values wait in the place of their last pair.
    constexpr bool STAGED = TILE == PAIR && HEAD == 16;
    T* last = (T*)(stats.at + QUERY_TILES * STATS + (QUERY_TILES - 1) * PAIR);
    fetch<WARPS * 32>(dys, dy, DO_ST, 0, QUERY_TILES * 16, TQ);
    if constexpr (STAGED)
        for (int n = threadIdx.x % (WARPS * 32); n < KEY_TILES * 32; n += WARPS * 32) {
            int row = n / 2, tile = n / 32, chunk = n % 2;
            const T* from = v + (size_t(min(row, TK - 1)) * V_ST + chunk * 8);
            cp_async_line(last + pairs_of(tile) * (PAIR / 2) + place(row % 16, chunk), from, row < valid);
        }
    fetch<WARPS * 32>(qs, q, Q_ST, 0, QUERY_TILES * 16, TQ);
    fetch<WARPS * 32>(ks, k, K_ST, 0, KEY_TILES * 16, valid);
    cp_async_commit();
    Preparation preparation;
    preparation.read(o, dy, lse);
    int key_tiles = (valid + 15) / 16;
    float up = Decisions::scale(), up_scaled = up * float(SCALE);
    Spot start = {shared_address(qs + lane_b(lane)), shared_address(qs + lane_bt(lane)), shared_address(stats.at + lane % 4 * 16)};
    // Behind the loads, which it would hold up.
    Decisions drop = DROPOUT_OF(sample, head);
    Keys w;
    if constexpr (!STAGED) load_rows(w.v, v, V_ST, warp * 16, valid, lane);
    if constexpr (Preparation::DIRECT) preparation.write(stats, dys);
    cp_async_wait<0>();
    __syncthreads();
    if constexpr (!Preparation::DIRECT) preparation.write(stats, dys);
    prefetch_later(q, k, v, o, dy);
    if constexpr (!Preparation::DIRECT) __syncthreads();

#pragma unroll 1
    for (int turn = 0; turn * WARPS < KEY_TILES; turn++) {
        int tile = turn_tile(turn, warp);
        if (tile >= KEY_TILES) continue;
        w.tile = tile;
        w.pair = pairs + (pairs_of(tile) + (CAUSAL ? tile : 0)) * PAIR;
        // Read without transposing, rows are a fragments where they are transposed b fragments.
        u32 rows = shared_address(ks + tile * 16 * ROW + lane_bt(lane));
#pragma unroll
        for (int n = 0; n < STEPS; n++) ldmatrix4(w.k[n], piece(rows, lane_bt(lane), n));
        if constexpr (STAGED) ldmatrix4(w.v[0], shared_address(last + pairs_of(tile) * (PAIR / 2) + lane_bt(lane)));
        else if (turn > 0) load_rows(w.v, v, V_ST, tile * 16, valid, lane);
#pragma unroll
        for (int c = 0; c < COLS; c++)
#pragma unroll
            for (int n = 0; n < 4; n++) w.dk[c][n] = w.dv[c][n] = 0;
        __syncwarp();
        if (tile < key_tiles) walk(w, start, valid, drop, lane);
        store_rows(dk + size_t(sample) * DK_SB + head * DK_SH, DK_ST, tile * 16, TK, w.dk, up_scaled, up_scaled, lane);
        store_rows(dv + size_t(sample) * DV_SB + head * DV_SH, DV_ST, tile * 16, TK, w.dv, up, up, lane);
    }
    __syncthreads();
#pragma unroll 1
    for (int turn = 0; turn * WARPS < QUERY_TILES; turn++) {
        int tile = QUERY_TILES - 1 - turn_tile(turn, warp);
        if (tile < 0) continue;
        // Two sums side by side, of even and odd tiles, so that a product need not wait for the one before.
        float dqs[2][COLS][4] = {};
        int end = CAUSAL ? min(key_tiles, tile + 1) : key_tiles;
        // Matrix n of the fragment is block 0, 2, 1, 3: (keys, queries) become (queries, keys).
        u32 ds = pairs + tile * PAIR + (lane / 8 % 2 * 2 + lane / 16) * 128 + lane % 8 * 16, keys = start.bt + 2 * DY;
        // From a pair to that of the next tile of keys.
        int gap = (CAUSAL ? QUERY_TILES - 1 : QUERY_TILES) * PAIR;
        auto add = [&](int n) {
            u32 a[4];
            ldmatrix4_trans(a, ds);
            spread(dqs[n], a, keys, lane_bt(lane));
            ds += gap;
            if (CAUSAL) gap -= PAIR;
            keys += TILE;
        };
        int j = 0;
#pragma unroll 2
        for (; j + 1 < end; j += 2) {
            add(0);
            add(1);
        }
        if (j < end) add(0);
#pragma unroll
        for (int c = 0; c < COLS; c++)
#pragma unroll
            for (int n = 0; n < 4; n++) dqs[0][c][n] += dqs[1][c][n];
        store_rows(dq + size_t(sample) * DQ_SB + head * DQ_SH, DQ_ST, tile * 16, TQ, dqs[0], up_scaled, up_scaled, lane);
    }
}
