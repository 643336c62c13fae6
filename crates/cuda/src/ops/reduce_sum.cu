// Sums over axes of a view; KEPT and SUMMED turn numbers of results and of terms into offsets.

// A block takes 32 results and one of SPLITS ranges of terms; eight groups of threads share the range.
extern "C" __global__ void __launch_bounds__(256) sum_by_threads(const T* x, TO* to) {
    enter();
    __shared__ float parts[8][33];
    const u32 lane = threadIdx.x % 32, group = threadIdx.x / 32, result = blockIdx.x * 32 + lane;
    const u32 per = (TERMS + SPLITS - 1) / SPLITS, start = blockIdx.y * per;
    const u32 end = start + per < TERMS ? start + per : TERMS;
    float a = 0.0f, b = 0.0f;
    if (result < RESULTS) {
        const T* from = x + KEPT(result);
        u32 i = start + group;
        for (; i + 8 < end; i += 16) a += to_f32(from[SUMMED(i)]), b += to_f32(from[SUMMED(i + 8)]);
        if (i < end) a += to_f32(from[SUMMED(i)]);
    }
    parts[group][lane] = a + b;
    __syncthreads();
    if (group == 0 && result < RESULTS) {
        float all = 0.0f;
#pragma unroll
        for (int g = 0; g < 8; g++) all += parts[g][lane];
        to[u64(blockIdx.y) * RESULTS + result] = from_f32<TO>(all);
    }
}

// A warp takes one result and one of SPLITS ranges of terms.
extern "C" __global__ void __launch_bounds__(256) sum_by_warps(const T* x, TO* to) {
    enter();
    const u32 result = blockIdx.x * 8 + threadIdx.x / 32;
    if (result >= RESULTS) return;
    const u32 per = (TERMS + SPLITS - 1) / SPLITS, start = blockIdx.y * per;
    const u32 end = start + per < TERMS ? start + per : TERMS;
    const T* from = x + KEPT(result);
    float sum = 0.0f;
    for (u32 i = start + threadIdx.x % 32; i < end; i += 32) sum += to_f32(from[SUMMED(i)]);
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) to[u64(blockIdx.y) * RESULTS + result] = from_f32<TO>(sum);
}
