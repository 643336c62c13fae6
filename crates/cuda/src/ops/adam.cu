// One step of Adam or AdamW on chunks of parameters. A chunk is eight entries of `table` (address, count): p, m, v, g, where
// the new p, m, v go, which may be the same places, and (if HALVES, and its count is not 0) where the new p goes in 16 bits,
// which holds p in 16 bits before. If ALIGNED, addresses are multiples of 16.
struct alignas(8) Half4 { TH e[4]; };

__device__ __forceinline__ void adam_one(float& p, float& m, float& v, float g, float scale, float lr, float size, float root) {
    g *= scale;
    if (DECOUPLED) p *= 1.0f - lr * DECAY; else g += DECAY * p;
    m = BETA1 * m + KEEP1 * g;
    v = BETA2 * v + KEEP2 * g * g;
    p -= size * m / (sqrtf(v) * root + EPS);
}

extern "C" __global__ void __launch_bounds__(256) adam(const Entry* table, const float* scale, const float* rate,
                                                      const u32* step, const u32* apply) {
    const Entry* e = table + u64(blockIdx.x) * 8;
    const Entry ep = e[0], em = e[1], ev = e[2], eg = e[3], to_p = e[4], to_m = e[5], to_v = e[6], to_h = e[7];
    enter();
    const u32 n = u32(ep.count);
    const float *p = (const float*)ep.address, *m = (const float*)em.address, *v = (const float*)ev.address,
                *g = (const float*)eg.address;
    float *np = (float*)to_p.address, *nm = (float*)to_m.address, *nv = (float*)to_v.address;
    TH* nh = HALVES && to_h.count != 0 ? (TH*)to_h.address : nullptr;
    if (*apply == 0) {
        // A skipped step leaves everything as it was.
        if (np == p && nm == m && nv == v) return;
        for (u32 i = threadIdx.x; i < n; i += 256) {
            const float a = p[i], b = m[i], c = v[i];
            np[i] = a, nm[i] = b, nv[i] = c;
            if (nh) nh[i] = from_f32<TH>(a);
        }
        return;
    }
    const float t = float(*step), lr = *rate, factor = *scale;
    const float size = lr / -expm1f(t * LOG_BETA1), root = rsqrtf(-expm1f(t * LOG_BETA2));
    const u32 quads = ALIGNED ? n / 4 : 0;
    for (u32 i = threadIdx.x; i < quads; i += 256) {
        float4 a = ((const float4*)p)[i], b = ((const float4*)m)[i], c = ((const float4*)v)[i];
        const float4 d = ((const float4*)g)[i];
        adam_one(a.x, b.x, c.x, d.x, factor, lr, size, root);
        adam_one(a.y, b.y, c.y, d.y, factor, lr, size, root);
        adam_one(a.z, b.z, c.z, d.z, factor, lr, size, root);
        adam_one(a.w, b.w, c.w, d.w, factor, lr, size, root);
        ((float4*)np)[i] = a, ((float4*)nm)[i] = b, ((float4*)nv)[i] = c;
        if (nh) ((Half4*)nh)[i] = {{from_f32<TH>(a.x), from_f32<TH>(a.y), from_f32<TH>(a.z), from_f32<TH>(a.w)}};
    }
    for (u32 i = quads * 4 + threadIdx.x; i < n; i += 256) {
        float a = p[i], b = m[i], c = v[i];
        adam_one(a, b, c, g[i], factor, lr, size, root);
        np[i] = a, nm[i] = b, nv[i] = c;
        if (nh) nh[i] = from_f32<TH>(a);
    }
}
