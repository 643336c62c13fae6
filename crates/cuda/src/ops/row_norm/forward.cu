// Rows to mean 0 (if MEAN) and mean square 1, then scaled (and shifted). A warp a row; the row stays in registers.
template <typename E> struct alignas(sizeof(E) * PACK > 16 ? 16 : sizeof(E) * PACK) Pack { E e[PACK]; };
constexpr int STEPS = (COLS + 32 * PACK - 1) / (32 * PACK);

extern "C" __global__ void __launch_bounds__(32 * WARPS) norm_rows(const TX* x, const TG* gamma,
#if MEAN
                                                                  const TB* beta,
#endif
                                                                  TY* y,
#if MEAN
                                                                  float* mean_out,
#endif
                                                                  float* rstd_out) {
    enter();
    const u32 row = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= ROWS) return;
    x += u64(row) * COLS, y += u64(row) * COLS;
    float a[STEPS][PACK];
    float sum = 0.0f;
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
        const u32 at = (s * 32 + lane) * PACK;
        if (COLS % (32 * PACK) == 0 || at < COLS) {
            const Pack<TX> p = *(const Pack<TX>*)(x + at);
#pragma unroll
            for (int i = 0; i < PACK; i++) sum += a[s][i] = to_f32(p.e[i]);
        }
    }
    const float mean = MEAN ? warp_sum(sum) / COLS : 0.0f;
    float squares = 0.0f;
#pragma unroll
    for (int s = 0; s < STEPS; s++)
        if (COLS % (32 * PACK) == 0 || (s * 32 + lane) * PACK < COLS) {
#pragma unroll
            for (int i = 0; i < PACK; i++) squares += (a[s][i] - mean) * (a[s][i] - mean);
        }
    const float rstd = 1.0f / sqrtf(warp_sum(squares) / COLS + EPS);
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
        const u32 at = (s * 32 + lane) * PACK;
        if (COLS % (32 * PACK) == 0 || at < COLS) {
            const Pack<TG> g = *(const Pack<TG>*)(gamma + at);
#if MEAN
            const Pack<TB> b = *(const Pack<TB>*)(beta + at);
#endif
            Pack<TY> p;
#pragma unroll
            for (int i = 0; i < PACK; i++) {
                float v = (a[s][i] - mean) * rstd * to_f32(g.e[i]);
#if MEAN
                v += to_f32(b.e[i]);
#endif
                p.e[i] = from_f32<TY>(v);
            }
            *(Pack<TY>*)(y + at) = p;
        }
    }
    if (lane == 0) {
#if MEAN
        mean_out[row] = mean;
#endif
        rstd_out[row] = rstd;
    }
}
