// Inputs of a program, from where a batch arrived to where the program reads them. Of each: where it lies, where it goes, how
// many, and their width in bytes: 1 or 2 for indices that become u32, 16 for pieces of anything else.
struct alignas(16) Piece { u32 words[4]; };

template <typename E, typename To>
__device__ __forceinline__ void move(const E* from, To* to, u32 count) {
    const u32 step = gridDim.x * 256u;
    for (u32 i = blockIdx.x * 256u + threadIdx.x; i < count; i += step) to[i] = from[i];
}

__device__ __forceinline__ void take(u64 from, u64 to, u64 count, u64 width) {
    if (width == 1) move((const u8*)from, (u32*)to, u32(count));
    else if (width == 2) move((const u16*)from, (u32*)to, u32(count));
    else move((const Piece*)from, (Piece*)to, u32(count));
}

extern "C" __global__ void __launch_bounds__(256) unpack(
    u64 from0, u64 to0, u64 count0, u64 width0, u64 from1, u64 to1, u64 count1, u64 width1,
    u64 from2, u64 to2, u64 count2, u64 width2, u64 from3, u64 to3, u64 count3, u64 width3,
    u64 from4, u64 to4, u64 count4, u64 width4, u64 from5, u64 to5, u64 count5, u64 width5) {
    enter();
    take(from0, to0, count0, width0);
    take(from1, to1, count1, width1);
    take(from2, to2, count2, width2);
    take(from3, to3, count3, width3);
    take(from4, to4, count4, width4);
    take(from5, to5, count5, width5);
}

// One row of a store, or zeros.
template <typename E>
__device__ __forceinline__ void fetch(const E* from, E* to, u32 count) {
    for (u32 i = blockIdx.x * 256u + threadIdx.x; i < count; i += gridDim.x * 256u) to[i] = from ? from[i] : E{};
}

// Rows of a store, by their numbers, one behind the other to where a program reads them. A row is `count` pieces of `width`
// bytes (16, 4 or 1); the number 0xffffffff stands for zeros. Blocks with one y share a row.
extern "C" __global__ void __launch_bounds__(256) gather(
    u64 store, u64 numbers, u64 to, u64 rows, u64 count, u64 width) {
    enter();
    const u64 bytes = count * width;
    for (u32 r = blockIdx.y; r < u32(rows); r += gridDim.y) {
        const u32 number = ((const u32*)numbers)[r];
        const u64 row = number == 0xffffffffu ? 0 : store + number * bytes;
        const u64 out = to + r * bytes;
        if (width == 16) fetch((const Piece*)row, (Piece*)out, u32(count));
        else if (width == 4) fetch((const u32*)row, (u32*)out, u32(count));
        else fetch((const u8*)row, (u8*)out, u32(count));
    }
}
