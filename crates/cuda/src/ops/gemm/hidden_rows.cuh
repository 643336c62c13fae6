// The sums of a block whose left operand is a hidden layer: two warpgroups have 64 rows and all BN columns, and go through the
// layer in slices, each with half of a slice's columns, so that each has the sums of half of them. What is made goes on in
// registers: first products leave it as `wgmma` takes a left operand. Warpgroups share the weights and nothing else: while some
// make values, products of the others run.
static_assert(BM == 16 * WARPS_M && WARPS_N == 1 && WARPS_K == 2 && TM == 1, "warpgroups have all columns of their rows");
constexpr int SLICES = H / SLICE, STAGES = 4;

// A slice's values, as a left operand.
__device__ __forceinline__ void make_slice(u32 (&u)[2][4], const float (&s)[FIRSTS][4][4]) {
    make(s, [&](int j, int half, float (&pairs)[2][MADE]) {
        u[j / 2][j % 2 * 2 + half] = pack2<T>(pairs[0][LAST_MADE], pairs[1][LAST_MADE]);
    });
}

__device__ __forceinline__ void multiply(float (&sums)[1][TN][4], T* operands, OPERANDS, u32 row0, u32) {
    // Slices of weights that have arrived, and that all warps are done with.
    __shared__ u64 arrived[STAGES], done[STAGES];
    T* stages = operands + A_ELEMENTS;
    unsigned char* bias = (unsigned char*)(stages + STAGES * W_ELEMENTS);
    const u32 group = __shfl_sync(FULL_WARP, threadIdx.x / 128, 0), part = group / (WARPS_M / 4);
    if (threadIdx.x == 0)
        for (int i = 0; i < STAGES; i++) barrier_init(arrived + i, THREADS), barrier_init(done + i, THREADS / 32);
    __syncthreads();
    load_operands<THREADS>(operands, row0, threadIdx.x, GIVEN);
    load_bias<H>(bias, 0, GIVEN);
    auto load = [&](int slice) {
        load_weights(stages + slice % STAGES * W_ELEMENTS, slice, GIVEN);
        barrier_arrive_copied(arrived + slice % STAGES);
    };
#pragma unroll
    for (int slice = 0; slice < STAGES - 1 && slice < SLICES; slice++) load(slice);
    const u32 rows = uniform(operands) + group % (WARPS_M / 4) * (64 * 8), weights = uniform(stages);
#pragma unroll 1
    for (int slice = 0; slice < SLICES; slice++) {
        const int next = slice + STAGES - 1;
        if (next < SLICES) {
            if (slice > 0) barrier_wait(done + next % STAGES, (slice - 1) / STAGES & 1);
            load(next);
        }
        barrier_wait(arrived + slice % STAGES, slice / STAGES & 1);
        shared_fence();
        float s[FIRSTS][4][4];
        start<H>(s, bias, slice * SLICE + part * 32);
        const u32 stage = weights + slice % STAGES * (W_ELEMENTS / 8);
        wgmma_fence();
        first_products(s, rows, stage, part);
        wgmma_commit();
        wgmma_wait<0>();
        u32 u[2][4];
        make_slice(u, s);
        wgmma_fence();
        last_product(sums[0], u, stage, part);
        wgmma_commit();
        wgmma_wait<0>();
        if (threadIdx.x % 32 == 0) barrier_arrive(done + slice % STAGES);
    }
}
