// Gradients of norms of rows. With h = (x - mean) rstd and t = dy gamma: dx = rstd (t - mean(t) - h mean(t h)), where
// mean(t) is 0 unless MEAN. dx is handed to `epilogue` in groups of PACK, whose number counts the whole matrix row by row.
// Each block sums dy h (and dy) of its rows for the gradients of scale (and shift), and what the epilogue adds to `columns`:
// SUMS in all.
constexpr int STEPS = (COLS + 32 * PACK - 1) / (32 * PACK);

extern "C" __global__ void __launch_bounds__(32 * WARPS) norm_rows_grad(const TX* x, const TG* gamma,
#if MEAN
                                                                       const float* mean_in,
#endif
                                                                       const float* rstd_in, const TDY* dy, float* sums EPILOGUE_PARAMS) {
    enter();
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float sum_h[STEPS][PACK] = {}, sum_1[STEPS][PACK] = {};
#if COLUMNS
    float more[STEPS][COLUMNS][PACK] = {};
#define columns more[s]
#endif
    for (u32 row = blockIdx.x * WARPS + warp; row < ROWS; row += gridDim.x * WARPS) {
        const TX* xr = x + u64(row) * COLS;
        const TDY* dyr = dy + u64(row) * COLS;
        const float rstd = rstd_in[row];
#if MEAN
        const float mean = mean_in[row];
#else
        const float mean = 0.0f;
#endif
        float h[STEPS][PACK], t[STEPS][PACK], mean_t = 0.0f, mean_th = 0.0f;
        Reads reads[STEPS];
#pragma unroll
        for (int s = 0; s < STEPS; s++) {
            const u32 at = (s * 32 + lane) * PACK;
            if (COLS % (32 * PACK) == 0 || at < COLS) reads[s] = epilogue_reads(row * (COLS / PACK) + at / PACK EPILOGUE_ARGS);
        }
#pragma unroll
        for (int s = 0; s < STEPS; s++) {
            const u32 at = (s * 32 + lane) * PACK;
            if (COLS % (32 * PACK) == 0 || at < COLS) {
                const Pack<TX> px = *(const Pack<TX>*)(xr + at);
                const Pack<TDY> pd = *(const Pack<TDY>*)(dyr + at);
                const Pack<TG> pg = *(const Pack<TG>*)(gamma + at);
#pragma unroll
                for (int i = 0; i < PACK; i++) {
                    const float d = to_f32(pd.e[i]);
                    h[s][i] = (to_f32(px.e[i]) - mean) * rstd;
                    t[s][i] = d * to_f32(pg.e[i]);
                    mean_t += t[s][i];
                    mean_th += t[s][i] * h[s][i];
                    sum_h[s][i] += d * h[s][i];
                    sum_1[s][i] += d;
                }
            }
        }
        mean_t = MEAN ? warp_sum(mean_t) / COLS : 0.0f;
        mean_th = warp_sum(mean_th) / COLS;
#pragma unroll
        for (int s = 0; s < STEPS; s++) {
            const u32 at = (s * 32 + lane) * PACK;
            if (COLS % (32 * PACK) == 0 || at < COLS) {
                float d[PACK];
#pragma unroll
                for (int i = 0; i < PACK; i++) d[i] = rstd * (t[s][i] - mean_t - h[s][i] * mean_th);
                const u32 group = row * (COLS / PACK) + at / PACK;
                epilogue(group, d, fixed_reads(group EPILOGUE_ARGS), reads[s] EPILOGUE_COLUMNS EPILOGUE_ARGS);
            }
        }
    }
    // The warps' sums, in their order.
    __shared__ float shared[WARPS][32 * PACK];
#pragma unroll
    for (int what = 0; what < SUMS; what++) {
#pragma unroll
        for (int s = 0; s < STEPS; s++) {
            __syncthreads();
#pragma unroll
            for (int i = 0; i < PACK; i++) {
                float& one = shared[warp][lane * PACK + i];
                one = what ? sum_1[s][i] : sum_h[s][i];
#if COLUMNS
                if (what > MEAN) one = more[s][what - MEAN - 1][i];
#endif
            }
            __syncthreads();
            for (u32 c = threadIdx.x; c < 32 * PACK; c += 32 * WARPS) {
                const u32 at = s * 32 * PACK + c;
                float sum = 0.0f;
#pragma unroll
                for (int w = 0; w < WARPS; w++) sum += shared[w][c];
                if (at < COLS) sums[(u64(blockIdx.x) * SUMS + what) * COLS + at] = sum;
            }
        }
    }
}
