// Adds rows by index. Block (row, columns, range): the ids of the range are looked at 128 at a time; those that name the row
// are gathered in order, and their rows added.
extern "C" __global__ void __launch_bounds__(128) scatter_rows(const u32* ids, const T* rows, TO* to) {
    enter();
    __shared__ u32 mine[128], counts[4];
    const u32 row = blockIdx.x, col = blockIdx.y * 128 + threadIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const u32 per = (N + SPLITS - 1) / SPLITS, start = blockIdx.z * per, end = start + per < N ? start + per : N;
    float sum = 0.0f;
    for (u32 at = start; at < end; at += 128) {
        const u32 i = at + threadIdx.x;
        const bool hit = i < end && ids[i] == row;
        const u32 hits = __ballot_sync(FULL_WARP, hit);
        if (lane == 0) counts[warp] = __popc(hits);
        __syncthreads();
        u32 before = 0, all = 0;
        for (u32 w = 0; w < 4; w++) {
            if (w < warp) before += counts[w];
            all += counts[w];
        }
        if (hit) mine[before + __popc(hits & ((1u << lane) - 1u))] = i;
        __syncthreads();
        if (col < COLS) {
#pragma unroll 8
            for (u32 k = 0; k < all; k++) sum += to_f32(rows[u64(mine[k]) * COLS + col]);
        }
        __syncthreads();
    }
    if (col < COLS) to[(u64(blockIdx.z) * ROWS + row) * COLS + col] = from_f32<TO>(sum);
}
