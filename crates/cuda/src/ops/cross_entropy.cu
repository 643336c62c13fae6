// The logarithm of the sum of exponentials of each row of logits, and the weighted loss of each block's eight rows. A row of
// weight 0, or whose target is outside, adds exactly 0.
extern "C" __global__ void __launch_bounds__(256) cross_entropy(const T* logits, const u32* targets, const float* weights,
                                                               float* lse_out, float* sums) {
    enter();
    __shared__ float losses[8];
    const u32 warp = threadIdx.x / 32, row = blockIdx.x * 8 + warp, lane = threadIdx.x % 32;
    float loss = 0.0f;
    if (row < ROWS) {
        const T* x = logits + u64(row) * COLS;
        float most = -INF, sum = 0.0f;
        for (u32 c = lane; c < COLS; c += 32) most = fmaxf(most, to_f32(x[c]));
        most = warp_max(most);
        for (u32 c = lane; c < COLS; c += 32) sum += expf(to_f32(x[c]) - most);
        const float lse = most + logf(warp_sum(sum)), weight = weights[row];
        const u32 target = targets[row];
        if (lane == 0) lse_out[row] = lse;
        if (weight != 0.0f && target < COLS) loss = weight * (lse - to_f32(x[target]));
    }
    if (lane == 0) losses[warp] = loss;
    __syncthreads();
    if (threadIdx.x == 0) {
        float sum = 0.0f;
        for (int w = 0; w < 8; w++) sum += losses[w];
        sums[blockIdx.x] = sum;
    }
}
