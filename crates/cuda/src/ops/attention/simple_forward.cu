// attention without tensor cores: f32, or heads that these do not take. LANES lanes own a query and walk over tiles of 16
// keys in shared memory. Grid (ceil(TQ / (64 / LANES)), H, B), threads 64, no dynamic shared memory.

extern "C" __global__ void __launch_bounds__(THREADS)
attention_forward(const T* q, const T* k, const T* v EXTRA_PARAMS, T* o,
                  float* lse) {
    enter();
    __shared__ __align__(16) float keys[BLOCK * WIDTH], values[BLOCK * WIDTH];
    int part = threadIdx.x % LANES, head = blockIdx.y, sample = blockIdx.z, first = blockIdx.x * ROWS;
    int row = first + threadIdx.x / LANES, valid = VALID_KEYS(sample), limit = row < TQ ? visible(row, valid) : 0;
    q += size_t(sample) * Q_SB + head * Q_SH;
    k += size_t(sample) * K_SB + head / GROUP * K_SH;
    v += size_t(sample) * V_SB + head / GROUP * V_SH;
    Decisions drop = DROPOUT_OF(sample, head);
    Row query = read_row(q + size_t(row) * Q_ST, row < TQ, part), sum = zeros();
    float top = -1e30f, total = 0;
    int all = visible(min(first + ROWS, TQ) - 1, valid);
    for (int base = 0; base < all; base += BLOCK) {
        __syncthreads();
        read_block(keys, k, K_ST, base, valid);
        read_block(values, v, V_ST, base, valid);
        __syncthreads();
        // Lanes of one warp stop together: the sums over LANES need them all.
        for (int tile = 0; tile < BLOCK && __any_sync(FULL_WARP, base + tile < limit); tile += 16) {
            float s[16], most = top;
#pragma unroll
            for (int j = 0; j < 16; j++) {
                s[j] = dot(query, keys + (tile + j) * WIDTH, part) * FACTOR;
                if (base + tile + j >= limit) s[j] = -INF;
                most = fmaxf(most, s[j]);
            }
            float shrink = exp2_quick(top - most);
            top = most;
            total *= shrink;
#pragma unroll
            for (int n = 0; n < QUADS; n++) sum.x[n].x *= shrink, sum.x[n].y *= shrink, sum.x[n].z *= shrink, sum.x[n].w *= shrink;
#pragma unroll
            for (int n = 0; n < 4; n++) {
                uint4 words = drop.tile(row / 16, (base + tile) / 16, row % 8 * 4 + n);
#pragma unroll
                for (int c = 0; c < 4; c++) {
                    int j = column(n, c);
                    float p = exp2_quick(s[j] - top);
                    total += p;
                    add(sum, keeps_column(words, row, c) ? p : 0.0f, values + (tile + j) * WIDTH, part);
                }
            }
        }
    }
    if (row >= TQ) return;
    float factor = total == 0 ? 0.0f : Decisions::scale() / total;
    write_row(o + size_t(sample) * O_SB + size_t(row) * O_ST + head * O_SH, sum, factor, part);
    if (part == 0) lse[(size_t(sample) * H + head) * TQ + row] = total == 0 ? 0.0f : top * LN2 + logf(total);
}
