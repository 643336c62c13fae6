// attention_grad for few queries, in one launch.
//
// A block takes all keys of a key head, and the ROWS = TQ GROUP queries of its heads; LANES lanes own a key, whose gradients are
// theirs alone; dq is brought together at the end. Grid (1, G, B), threads 32 WARPS, no dynamic shared memory. The formulas are
// those of backward_tile.cuh, with the factor 1 / r at once.

extern "C" __global__ void __launch_bounds__(WARPS * 32)
attention_backward(const T* q, const T* k, const T* v, const T* o,
                   const float* lse, const T* dy EXTRA_PARAMS, T* dq, T* dk,
                   T* dv) {
    enter();
    static_assert(ROWS == TQ * GROUP, "a block takes all queries of a key head");
    __shared__ float sums[ROWS][WARPS][WIDTH];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, part = threadIdx.x % LANES, slot = threadIdx.x / LANES;
    int group = blockIdx.y, sample = blockIdx.z, valid = VALID_KEYS(sample);
    k += size_t(sample) * K_SB + group * K_SH;
    v += size_t(sample) * V_SB + group * V_SH;
    dk += size_t(sample) * DK_SB + group * DK_SH;
    dv += size_t(sample) * DV_SB + group * DV_SH;
    Decisions drop = DROPOUT_OF(sample, group * GROUP);
    Piece query[ROWS], gradient[ROWS], dqs[ROWS];
    float top[ROWS], delta[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        int head = group * GROUP + r / TQ, row = r % TQ;
        query[r] = read_piece(q + size_t(sample) * Q_SB + size_t(row) * Q_ST + head * Q_SH, true, part);
        gradient[r] = read_piece(dy + size_t(sample) * DO_SB + size_t(row) * DO_ST + head * DO_SH, true, part);
        delta[r] = dot(gradient[r], read_piece(o + size_t(sample) * O_SB + size_t(row) * O_ST + head * O_SH, true, part));
        top[r] = lse[(size_t(sample) * H + head) * TQ + row] * LOG2E;
        dqs[r] = zeros();
    }
#pragma unroll 1
    for (int base = 0; base < TK; base += SLOTS * UNROLL) {
        Piece keys[UNROLL], values[UNROLL], dks[UNROLL], dvs[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            int key = base + u * SLOTS + slot;
            keys[u] = read_piece(k + size_t(key) * K_ST, key < valid, part);
            values[u] = read_piece(v + size_t(key) * V_ST, key < valid, part);
            dks[u] = dvs[u] = zeros();
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            drop.of_head(group * GROUP + r / TQ);
            Kept kept(drop, r % TQ, base + slot);
            int limit = visible(r % TQ, valid);
#pragma unroll
            for (int u = 0; u < UNROLL; u++) {
                float s = dot(query[r], keys[u]), dp = dot(gradient[r], values[u]);
                float p = base + u * SLOTS + slot < limit ? exp2_quick(fmaf(s, FACTOR, -top[r])) : 0.0f;
                float scale = kept[u] ? Decisions::scale() : 0.0f, ds = p * fmaf(scale, dp, -delta[r]);
                add(dvs[u], p * scale, gradient[r]);
                add(dks[u], ds, query[r]);
                add(dqs[r], ds, keys[u]);
            }
        }
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            int key = base + u * SLOTS + slot;
            if (key >= TK) continue;
            write_piece(dk + size_t(key) * DK_ST, dks[u], float(SCALE), part);
            write_piece(dv + size_t(key) * DV_ST, dvs[u], 1.0f, part);
        }
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        sum_slots(dqs[r]);
        if (lane >= LANES) continue;
#pragma unroll
        for (int n = 0; n < EACH; n++) sums[r][warp][part * EACH + n] = dqs[r].x[n];
    }
    __syncthreads();
    for (int n = threadIdx.x; n < ROWS * WIDTH; n += WARPS * 32) {
        int r = n / WIDTH, i = n % WIDTH, head = group * GROUP + r / TQ;
        if (i >= HEAD) continue;
        float sum = 0;
#pragma unroll
        for (int w = 0; w < WARPS; w++) sum += sums[r][w][i];
        dq[size_t(sample) * DQ_SB + size_t(r % TQ) * DQ_ST + head * DQ_SH + i] = from_f32<T>(sum * float(SCALE));
    }
}
