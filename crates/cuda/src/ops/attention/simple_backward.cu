// attention_grad without tensor cores: f32, or heads that these do not take; after attention_backward_delta.
//
// attention_backward_queries: LANES lanes own a query and walk over keys; grid (ceil(TQ / (64 / LANES)), H, B).
// attention_backward_keys: LANES lanes own a key and walk over the queries of every head of the group;
// grid (ceil(TK / (64 / LANES)), G, B). Threads 64, no dynamic shared memory. `delta` is what attention_backward_delta wrote.
// The formulas are those of backward_tile.cuh, with the factor 1 / r at once.

extern "C" __global__ void __launch_bounds__(THREADS)
attention_backward_queries(const T* q, const T* k, const T* v,
                           const float* lse, const T* dy EXTRA_PARAMS, T* dq,
                           const float* delta) {
    enter();
    __shared__ __align__(16) float keys[BLOCK * WIDTH], values[BLOCK * WIDTH];
    int part = threadIdx.x % LANES, head = blockIdx.y, sample = blockIdx.z, first = blockIdx.x * ROWS;
    int row = first + threadIdx.x / LANES, valid = VALID_KEYS(sample), limit = row < TQ ? visible(row, valid) : 0;
    k += size_t(sample) * K_SB + head / GROUP * K_SH;
    v += size_t(sample) * V_SB + head / GROUP * V_SH;
    Decisions drop = DROPOUT_OF(sample, head);
    Row query = read_row(q + size_t(sample) * Q_SB + size_t(row) * Q_ST + head * Q_SH, row < TQ, part);
    Row gradient = read_row(dy + size_t(sample) * DO_SB + size_t(row) * DO_ST + head * DO_SH, row < TQ, part), sum = zeros();
    size_t at = (size_t(sample) * H + head) * TQ + row;
    float top = row < TQ ? lse[at] * LOG2E : 0, mine = row < TQ ? delta[at] : 0;
    int all = visible(min(first + ROWS, TQ) - 1, valid);
    for (int base = 0; base < all; base += BLOCK) {
        __syncthreads();
        read_block(keys, k, K_ST, base, valid);
        read_block(values, v, V_ST, base, valid);
        __syncthreads();
        for (int tile = 0; tile < BLOCK && __any_sync(FULL_WARP, base + tile < limit); tile += 16)
#pragma unroll
            for (int n = 0; n < 4; n++) {
                uint4 words = drop.tile(row / 16, (base + tile) / 16, row % 8 * 4 + n);
#pragma unroll
                for (int c = 0; c < 4; c++) {
                    int j = tile + column(n, c);
                    float s = dot(query, keys + j * WIDTH, part), dp = dot(gradient, values + j * WIDTH, part);
                    float p = base + j < limit ? exp2_quick(fmaf(s, FACTOR, -top)) : 0.0f;
                    float kept = keeps_column(words, row, c) ? Decisions::scale() * dp : 0.0f;
                    add(sum, p * (kept - mine), keys + j * WIDTH, part);
                }
            }
    }
    if (row < TQ) write_row(dq + size_t(sample) * DQ_SB + size_t(row) * DQ_ST + head * DQ_SH, sum, float(SCALE), part);
}

extern "C" __global__ void __launch_bounds__(THREADS)
attention_backward_keys(const T* q, const T* k, const T* v,
                        const float* lse, const T* dy EXTRA_PARAMS, T* dk,
                        T* dv, const float* delta) {
    enter();
    __shared__ __align__(16) float queries[BLOCK * WIDTH], gradients[BLOCK * WIDTH];
    __shared__ float tops[BLOCK], deltas[BLOCK];
    int part = threadIdx.x % LANES, group = blockIdx.y, sample = blockIdx.z, first = blockIdx.x * ROWS;
    int key = first + threadIdx.x / LANES, valid = VALID_KEYS(sample);
    Row mine = read_row(k + size_t(sample) * K_SB + size_t(key) * K_ST + group * K_SH, key < valid, part);
    Row value = read_row(v + size_t(sample) * V_SB + size_t(key) * V_ST + group * V_SH, key < valid, part);
    Row dks = zeros(), dvs = zeros();
    int from = CAUSAL ? first / BLOCK * BLOCK : 0;
    for (int head = group * GROUP; head < (group + 1) * GROUP && first < valid; head++) {
        Decisions drop = DROPOUT_OF(sample, head);
        size_t at = (size_t(sample) * H + head) * TQ;
        for (int base = from; base < TQ; base += BLOCK) {
            __syncthreads();
            read_block(queries, q + size_t(sample) * Q_SB + head * Q_SH, Q_ST, base, TQ);
            read_block(gradients, dy + size_t(sample) * DO_SB + head * DO_SH, DO_ST, base, TQ);
            for (int n = threadIdx.x; n < BLOCK; n += THREADS) {
                tops[n] = base + n < TQ ? lse[at + base + n] * LOG2E : INF;
                deltas[n] = base + n < TQ ? delta[at + base + n] : 0.0f;
            }
            __syncthreads();
            for (int tile = 0; tile < BLOCK && base + tile < TQ; tile += 16) {
                if (!__any_sync(FULL_WARP, key < visible(base + tile + 15, valid))) continue;
#pragma unroll 1
                for (int r = 0; r < 8; r++) {
                    uint4 words = drop.tile((base + tile) / 16, key / 16, r * 4 + key % 8 / 2);
#pragma unroll
                    for (int down = 0; down < 2; down++) {
                        int i = tile + r + 8 * down;
                        float s = dot(mine, queries + i * WIDTH, part), dp = dot(value, gradients + i * WIDTH, part);
                        float p = key < visible(base + i, valid) ? exp2_quick(fmaf(s, FACTOR, -tops[i])) : 0.0f;
                        float kept = Decisions::keeps(dropout_word(words, down, key % 16 / 8), key % 2) ? Decisions::scale() : 0.0f;
                        add(dvs, p * kept, gradients + i * WIDTH, part);
                        add(dks, p * (kept * dp - deltas[i]), queries + i * WIDTH, part);
                    }
                }
            }
        }
    }
    if (key >= TK) return;
    write_row(dk + size_t(sample) * DK_SB + size_t(key) * DK_ST + group * DK_SH, dks, float(SCALE), part);
    write_row(dv + size_t(sample) * DV_SB + size_t(key) * DV_ST + group * DV_SH, dvs, 1.0f, part);
}
