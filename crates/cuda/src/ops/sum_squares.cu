// The sum of squares of chunks of tensors, then of the chunks' sums, each in a fixed order.

__device__ __forceinline__ float block_sum(float x) {
    __shared__ float warps[8];
    x = warp_sum(x);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = x;
    __syncthreads();
    return warp_sum(threadIdx.x % 32 < 8 ? warps[threadIdx.x % 32] : 0.0f);
}

extern "C" __global__ void __launch_bounds__(256) sum_squares(const Entry* table, float* sums) {
    const Entry e = table[blockIdx.x];
    enter();
    const T* x = (const T*)e.address;
    const u32 n = u32(e.count);
    float a = 0.0f, b = 0.0f, c = 0.0f, d = 0.0f;
    u32 i = threadIdx.x;
    for (; i + 768 < n; i += 1024) {
        const float p = to_f32(x[i]), q = to_f32(x[i + 256]), r = to_f32(x[i + 512]), s = to_f32(x[i + 768]);
        a += p * p, b += q * q, c += r * r, d += s * s;
    }
    for (; i < n; i += 256) a += to_f32(x[i]) * to_f32(x[i]);
    const float sum = block_sum((a + b) + (c + d));
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

extern "C" __global__ void __launch_bounds__(256) add_parts(const float* sums, float* out) {
    enter();
    float a = 0.0f;
    for (u32 i = threadIdx.x; i < PARTS; i += 256) a += sums[i];
    a = block_sum(a);
    if (threadIdx.x == 0) *out = a;
}
