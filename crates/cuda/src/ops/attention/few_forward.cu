// attention for few queries: o, and the logarithm of each row's sum of exponentials.
//
// A block takes ROWS queries of a head and all keys that they see; LANES lanes own a key, with a maximum and sums of their own
// that are brought together at the end. Grid (ceil(TQ / ROWS), H, B), threads 32 WARPS, no dynamic shared memory.

// What a slot has summed up: weights relative to `top`.
struct Sums {
    float top, total;
    Piece o;
    // To another maximum.
    __device__ __forceinline__ void move(float to) {
        float shrink = exp2_quick(top - to);
        top = to;
        total *= shrink;
#pragma unroll
        for (int n = 0; n < EACH; n++) o.x[n] *= shrink;
    }
};

extern "C" __global__ void __launch_bounds__(WARPS * 32)
attention_forward(const T* q, const T* k, const T* v EXTRA_PARAMS, T* o,
                  float* lse) {
    enter();
    __shared__ float sums[ROWS][WARPS][WIDTH], tops[ROWS][WARPS], totals[ROWS][WARPS];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, part = threadIdx.x % LANES, slot = threadIdx.x / LANES;
    int head = blockIdx.y, sample = blockIdx.z, first = blockIdx.x * ROWS, valid = VALID_KEYS(sample);
    q += size_t(sample) * Q_SB + head * Q_SH;
    k += size_t(sample) * K_SB + head / GROUP * K_SH;
    v += size_t(sample) * V_SB + head / GROUP * V_SH;
    Decisions drop = DROPOUT_OF(sample, head);
    Piece query[ROWS];
    Sums mine[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        query[r] = read_piece(q + size_t(first + r) * Q_ST, first + r < TQ, part);
        mine[r] = {-1e30f, 0.0f, zeros()};
    }
    int end = visible(min(first + ROWS, TQ) - 1, valid);
#pragma unroll 1
    for (int base = 0; base < end; base += SLOTS * UNROLL) {
        Piece keys[UNROLL], values[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            int key = base + u * SLOTS + slot;
            keys[u] = read_piece(k + size_t(key) * K_ST, key < end, part);
            values[u] = read_piece(v + size_t(key) * V_ST, key < end, part);
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            Kept kept(drop, first + r, base + slot);
            int limit = visible(first + r, valid);
            float s[UNROLL], top = mine[r].top;
#pragma unroll
            for (int u = 0; u < UNROLL; u++) {
                s[u] = dot(query[r], keys[u]) * FACTOR;
                if (base + u * SLOTS + slot >= limit) s[u] = -INF;
                top = fmaxf(top, s[u]);
            }
            mine[r].move(top);
#pragma unroll
            for (int u = 0; u < UNROLL; u++) {
                float p = exp2_quick(s[u] - top);
                mine[r].total += p;
                add(mine[r].o, kept[u] ? p : 0.0f, values[u]);
            }
        }
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        float top = mine[r].top;
#pragma unroll
        for (int d = LANES; d < 32; d *= 2) top = fmaxf(top, __shfl_xor_sync(FULL_WARP, top, d));
        mine[r].move(top);
#pragma unroll
        for (int d = LANES; d < 32; d *= 2) mine[r].total += __shfl_xor_sync(FULL_WARP, mine[r].total, d);
        sum_slots(mine[r].o);
        if (lane < LANES) {
            tops[r][warp] = mine[r].top;
            totals[r][warp] = mine[r].total;
#pragma unroll
            for (int n = 0; n < EACH; n++) sums[r][warp][part * EACH + n] = mine[r].o.x[n];
        }
    }
    __syncthreads();
    for (int n = threadIdx.x; n < ROWS * WIDTH; n += WARPS * 32) {
        int r = n / WIDTH, i = n % WIDTH, row = first + r;
        if (row >= TQ || i >= HEAD) continue;
        float top = tops[r][0], total = 0, sum = 0;
#pragma unroll
        for (int w = 1; w < WARPS; w++) top = fmaxf(top, tops[r][w]);
#pragma unroll
        for (int w = 0; w < WARPS; w++) {
            float shrink = exp2_quick(tops[r][w] - top);
            total = fmaf(totals[r][w], shrink, total);
            sum = fmaf(sums[r][w][i], shrink, sum);
        }
        // A row that saw no key has total 0: it gives 0, and 0 for the logarithm.
        float factor = total > 0 ? Decisions::scale() / total : 0.0f * total;
        o[size_t(sample) * O_SB + size_t(row) * O_ST + head * O_SH + i] = from_f32<T>(sum * factor);
        if (i == 0) lse[(size_t(sample) * H + head) * TQ + row] = total == 0 ? 0.0f : top * LN2 + logf(total);
    }
}
