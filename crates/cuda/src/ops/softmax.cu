// Softmax of rows, a warp a row; the row is read three times, from cache after the first.
extern "C" __global__ void __launch_bounds__(256) softmax(const TX* x, TY* y) {
    enter();
    const u32 row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= ROWS) return;
    x += u64(row) * COLS, y += u64(row) * COLS;
    float most = -INF, sum = 0.0f;
    for (u32 c = lane; c < COLS; c += 32) most = fmaxf(most, to_f32(x[c]));
    most = warp_max(most);
    for (u32 c = lane; c < COLS; c += 32) sum += expf(to_f32(x[c]) - most);
    sum = warp_sum(sum);
    for (u32 c = lane; c < COLS; c += 32) y[c] = from_f32<TY>(expf(to_f32(x[c]) - most) / sum);
}
