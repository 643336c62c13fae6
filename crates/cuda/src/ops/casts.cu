// Chunks of tensors in another type. A chunk is two entries of `table` (address, count): from and to.
template <typename E> struct alignas(sizeof(E) * 4) Four { E e[4]; };

extern "C" __global__ void __launch_bounds__(256) casts(const Entry* table) {
    const Entry a = table[u64(blockIdx.x) * 2], b = table[u64(blockIdx.x) * 2 + 1];
    enter();
    const FROM* from = (const FROM*)a.address;
    TO* to = (TO*)b.address;
    const u32 n = u32(a.count), fours = ALIGNED ? n / 4 : 0;
    for (u32 i = threadIdx.x; i < fours; i += 256) {
        const Four<FROM> x = ((const Four<FROM>*)from)[i];
        Four<TO> y;
#pragma unroll
        for (int k = 0; k < 4; k++) y.e[k] = from_f32<TO>(to_f32(x.e[k]));
        ((Four<TO>*)to)[i] = y;
    }
    for (u32 i = fours * 4 + threadIdx.x; i < n; i += 256) to[i] = from_f32<TO>(to_f32(from[i]));
}
