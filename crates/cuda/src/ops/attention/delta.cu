// delta = sum(do o) of every query, f32 [B, H, TQ]: the workspace (4 B H TQ bytes) of attention_grad's launches that follow.
// Eight lanes share a row. Grid (ceil(TQ / 16), H, B), threads 128. Compiled with or without SIMPLE; any T, any HEAD.

extern "C" __global__ void __launch_bounds__(128)
attention_backward_delta(const T* o, const T* dy, float* delta) {
    enter();
    int row = blockIdx.x * 16 + threadIdx.x / 8, lane = threadIdx.x % 8, head = blockIdx.y, sample = blockIdx.z;
    float sum = 0;
    if (row < TQ) {
        o += size_t(sample) * O_SB + size_t(row) * O_ST + head * O_SH;
        dy += size_t(sample) * DO_SB + size_t(row) * DO_ST + head * DO_SH;
        for (int c = lane; c < HEAD; c += 8) sum = fmaf(to_f32(o[c]), to_f32(dy[c]), sum);
    }
    sum = warp_sum<8>(sum);
    if (lane == 0 && row < TQ) delta[(size_t(sample) * H + head) * TQ + row] = sum;
}
