// Gradients of the weights at both ends of a hidden layer, and of a bias: for two made values u, the products of u^T and the
// rows of a first product's operand, and the sums of one u's columns.
//
// A block has 64 columns of the layer (blockIdx.x) and a part of the rows (blockIdx.y). Two pairs of warpgroups take tiles of 64
// rows in turn, each pair by itself: one multiplies while the other makes. Of a pair, each makes half of the columns, and then
// has one of the products. The pairs' sums are added at the end, and stored for each part of the rows: [part, H, WIDE], or
// [part, WIDE, H] where a product is wanted turned, and [part, H].
constexpr int PAIR = THREADS / 2, TILE = SLICE * 64;
constexpr u32 TILES = (M + 63) / 64;

__device__ __forceinline__ void pair_sync(u32 pair) { asm volatile("bar.sync %0, 256;" ::"r"(pair + 1) : "memory"); }

extern "C" __global__ void __launch_bounds__(THREADS, 1) hidden_weights(OPERANDS, float* parts0, float* parts1, float* sums) {
    enter();
    extern __shared__ __align__(1024) unsigned char memory[];
    const u32 lane = threadIdx.x % 32, thread = threadIdx.x % PAIR, group = __shfl_sync(FULL_WARP, threadIdx.x / 128, 0);
    const u32 pair = group / 2, half_of = group % 2;
    T* weights = (T*)memory;
    // Of each pair: two stages of rows, and what is made of a tile.
    constexpr int OWN = 2 * A_ELEMENTS + MADE * TILE;
    T* stages = weights + W_ELEMENTS + pair * OWN;
    T* made = stages + 2 * A_ELEMENTS;
    unsigned char* bias = (unsigned char*)(weights + W_ELEMENTS + 2 * OWN);
    const u32 begin = u32(u64(TILES) * blockIdx.y / gridDim.y), end = u32(u64(TILES) * (blockIdx.y + 1) / gridDim.y);
    u32 tile = begin + pair;
    load_weights(weights, blockIdx.x, GIVEN);
    load_bias<SLICE>(bias, blockIdx.x * SLICE, GIVEN);
    if (tile < end) load_operands<PAIR>(stages, tile * 64, thread, GIVEN);
    cp_async_commit();
    cp_async_wait<0>();
    shared_fence();
    __syncthreads();
    // This thread's first row and, in bytes, its place in a tile that is made, as `place` has it: 16 bytes a chunk, 128 a row.
    const u32 row = thread % 128 / 32 * 16 + lane / 4, own = row * 128 + lane / 4 * 16 + lane % 4 * 4;
    const u32 weights_at = uniform(weights), stages_at = uniform(stages), made_at = uniform(made);
    float products[WIDE / 8][4] = {};
    float columns[4][2] = {};
#pragma unroll 1
    for (u32 turn = 0; tile < end; tile += 2, turn ^= 1) {
        cp_async_wait<0>();
        shared_fence();
        // The stage that is written next, and `made`, were read by the products of the tile before.
        wgmma_wait<0>();
        pair_sync(pair);
        if (tile + 2 < end) load_operands<PAIR>(stages + (turn ^ 1) * A_ELEMENTS, (tile + 2) * 64, thread, GIVEN);
        cp_async_commit();
        const u32 rows = stages_at + turn * (A_ELEMENTS / 8);
        float s[FIRSTS][4][4];
        start<SLICE>(s, bias, half_of * 32);
        wgmma_fence();
        first_products(s, rows, weights_at, half_of);
        wgmma_commit();
        wgmma_wait<0>();
        make(s, [&](int j, int half, float (&pairs)[2][MADE]) {
            const bool inside = M % 64 == 0 || tile * 64 + row + half * 8 < M;
            u32* to = (u32*)((unsigned char*)made + (own ^ (half_of * 4 + j) * 16) + half * 1024);
#pragma unroll
            for (int i = 0; i < MADE; i++) {
                const float left = inside ? pairs[0][i] : 0.0f, right = inside ? pairs[1][i] : 0.0f;
                to[i * (TILE / 2)] = pack2<T>(left, right);
                if (i == SUM_MADE) columns[j][0] += left, columns[j][1] += right;
            }
        });
        shared_fence();
        pair_sync(pair);
        wgmma_fence();
        const u32 a = made_at + (half_of ? WEIGHT_MADE[1] : WEIGHT_MADE[0]) * (TILE / 8);
        const u32 b = rows + (half_of ? WEIGHT_ROWS[1] : WEIGHT_ROWS[0]) / 8;
#pragma unroll
        for (int k = 0; k < 4; k++) wgmma_weights(products, descriptor(a + k * 128, 1), descriptor(b + k * 128, 64 * 8));
        wgmma_commit();
    }
    wgmma_wait<0>();
    // As often as the other pair, which the tool that looks for races counts on.
    if (pair == 1 && (end - begin) % 2 == 1) {
        pair_sync(pair);
        pair_sync(pair);
    }
    // Rows of one warp, then warps and pairs in their order.
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
        for (int e = 0; e < 2; e++)
#pragma unroll
            for (int step = 4; step < 32; step *= 2) columns[j][e] += __shfl_xor_sync(FULL_WARP, columns[j][e], step);
    __syncthreads();
    float* given = (float*)memory;
    float* warps = given + WIDE / 2 * PAIR;
    if (lane < 4)
#pragma unroll
        for (int j = 0; j < 4; j++)
#pragma unroll
            for (int e = 0; e < 2; e++) warps[threadIdx.x / 32 * 32 + j * 8 + lane * 2 + e] = columns[j][e];
    // Each pair has the other's sums of half of the columns, and gives it those of the other half.
    constexpr int SHARE = WIDE / 4;
#pragma unroll
    for (int n = 0; n < WIDE / 2; n++)
        if (n / SHARE != pair) given[n * PAIR + thread] = products[n / 4][n % 4];
    __syncthreads();
    const u32 first = blockIdx.x * SLICE;
    if (SUM_MADE >= 0 && threadIdx.x < SLICE) {
        float sum = 0.0f;
#pragma unroll
        for (int n = 0; n < 8; n++) sum += warps[(n / 4 * 8 + threadIdx.x / 32 * 4 + n % 4) * 32 + lane];
        sums[u64(blockIdx.y) * H + first + threadIdx.x] = sum;
    }
    const u32 col = lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        if (half_of != i) continue;
        float* to = (i == 0 ? parts0 : parts1) + u64(blockIdx.y) * H * WIDE;
        to += WEIGHT_TURNED[i] ? col * H + first + row : (first + row) * WIDE + col;
#pragma unroll
        for (int n = 0; n < WIDE / 2; n++) {
            if (n / SHARE != pair) continue;
            const int down = n % 4 / 2 * 8, right = n / 4 * 8 + n % 2;
            to[WEIGHT_TURNED[i] ? right * H + down : down * WIDE + right] =
                products[n / 4][n % 4] + given[n * PAIR + thread];
        }
    }
}
