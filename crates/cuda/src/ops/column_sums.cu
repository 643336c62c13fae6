// Sums of columns of many matrices. A block takes the columns of two entries of `table`: from, with the rows in the lower and
// their distance in the upper half of the count, and to. Where there are up to 32 columns, each of GROUPS warps takes every
// GROUPS-th row, and their sums are added in order; of more columns, each thread takes one.

extern "C" __global__ void __launch_bounds__(32 * GROUPS) column_sums(const Entry* table) {
    const Entry a = table[u64(blockIdx.x) * 2], b = table[u64(blockIdx.x) * 2 + 1];
    enter();
    __shared__ float parts[GROUPS][33];
    const u32 lane = threadIdx.x % 32, group = threadIdx.x / 32, rows = u32(a.count), pitch = u32(a.count >> 32);
    float sum = 0.0f;
    if (b.count > 32) {
        const float* from = (const float*)a.address + threadIdx.x;
        if (threadIdx.x >= u32(b.count)) return;
#pragma unroll 8
        for (u32 row = 0; row < rows; row++) sum += from[u64(row) * pitch];
        ((float*)b.address)[threadIdx.x] = sum;
        return;
    }
    const float* from = (const float*)a.address + lane;
    if (lane < u32(b.count)) {
#pragma unroll 8
        for (u32 row = group; row < rows; row += GROUPS) sum += from[u64(row) * pitch];
    }
    parts[group][lane] = sum;
    __syncthreads();
    if (group == 0 && lane < u32(b.count)) {
        float all = 0.0f;
#pragma unroll
        for (int g = 0; g < GROUPS; g++) all += parts[g][lane];
        ((float*)b.address)[lane] = all;
    }
}
