// Sums of columns. A block takes 32 columns, or fewer if there are fewer; groups of threads take every so many-th row, and their
// sums are added in a fixed order, by halves.
constexpr int WIDE = COLS >= 32 ? 32 : COLS > 8 ? 16 : COLS > 4 ? 8 : COLS > 2 ? 4 : COLS > 1 ? 2 : 1, GROUPS = 256 / WIDE;

extern "C" __global__ void __launch_bounds__(256) column_sum(const float* from, T* to) {
    enter();
    __shared__ float parts[256];
    const u32 lane = threadIdx.x % WIDE, group = threadIdx.x / WIDE, col = blockIdx.x * WIDE + lane;
    float sum = 0.0f;
    if (col < COLS)
#pragma unroll 8
        for (u32 row = group; row < ROWS; row += GROUPS) sum += from[u64(row) * COLS + col];
    parts[threadIdx.x] = sum;
#pragma unroll
    for (u32 half = GROUPS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (group < half) parts[threadIdx.x] += parts[threadIdx.x + half * WIDE];
    }
    if (group == 0 && col < COLS) to[col] = from_f32<T>(parts[threadIdx.x]);
}
