// Sums of columns. A block takes 32 columns; eight groups of threads take every eighth row, and their sums are added in order.
extern "C" __global__ void __launch_bounds__(256) column_sum(const float* from, T* to) {
    enter();
    __shared__ float parts[8][33];
    const u32 lane = threadIdx.x % 32, group = threadIdx.x / 32, col = blockIdx.x * 32 + lane;
    float sum = 0.0f;
    if (col < COLS)
        for (u32 row = group; row < ROWS; row += 8) sum += from[u64(row) * COLS + col];
    parts[group][lane] = sum;
    __syncthreads();
    if (group == 0 && col < COLS) {
        float all = 0.0f;
#pragma unroll
        for (int g = 0; g < 8; g++) all += parts[g][lane];
        to[col] = from_f32<T>(all);
    }
}
