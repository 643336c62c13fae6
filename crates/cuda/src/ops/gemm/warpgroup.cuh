// What `wgmma` needs (sm_90a): matrices in shared memory, and the order of its work with that of others.
//
// Tiles have rows of 128 bytes with the 128-byte swizzle, eight of them 1,024 bytes apart from the next eight; wider
// matrices are several tiles side by side (PTX manual, "Matrix descriptor" and "Strides" of wgmma).

// An address in shared memory in units of 16 bytes, known to be the same in all of a warp: then descriptors cost nothing.
__device__ __forceinline__ u32 uniform(const void* at) { return __shfl_sync(FULL_WARP, shared_address(at) >> 4, 0); }
// Where an operand lies, from its address in such units; `side_by_side` is the distance of tiles, if rows run along K.
__device__ __forceinline__ u64 descriptor(u32 at, u32 side_by_side) {
    return u64(64u | 1u << 30) << 32 | (at + (side_by_side << 16));
}
// Before products that read registers, or that add to what other instructions wrote.
__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int PENDING> __device__ __forceinline__ void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}
// Before products that read what this thread wrote to shared memory.
__device__ __forceinline__ void shared_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Copies a tile of ROWS x COLS elements, in tiles of 64 columns; thread number `thread` of BY. `inside` rows are there,
// or all of them if WHOLE: then no address is chosen.
template <int ROWS, int COLS, int APART, int BY, bool WHOLE>
__device__ __forceinline__ void load_tile(T* to, const T* from, u32 inside, u32 thread) {
    constexpr int CHUNKS = COLS / 8;
    static_assert(BY % CHUNKS == 0 && ROWS * CHUNKS % BY == 0 && BY / CHUNKS % 8 == 0, "threads share a tile evenly");
    const u32 row = thread / CHUNKS, chunk = thread % CHUNKS;
    const T* next = from + u64(row) * APART + chunk * 8;
    T* at = to + chunk / 8 * (ROWS * 64) + place<8>(row, chunk % 8);
#pragma unroll
    for (int i = 0; i < ROWS * CHUNKS / BY; i++) {
        const bool valid = WHOLE || row + i * (BY / CHUNKS) < inside;
        cp_async16(at + i * (BY / CHUNKS) * 64, valid ? next + u64(i) * (BY / CHUNKS) * APART : from, valid);
    }
}

// Barriers in shared memory, for parts of a block that go their own ways. `arrivals` times somebody arrives, then a phase is over.
__device__ __forceinline__ void barrier_init(u64* barrier, u32 arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
}
__device__ __forceinline__ void barrier_arrive(u64* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}
// Arrives when this thread's copies so far have arrived.
__device__ __forceinline__ void barrier_arrive_copied(u64* barrier) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(barrier)) : "memory");
}
// Waits until the phase of this parity (the first is 0) is over.
__device__ __forceinline__ void barrier_wait(u64* barrier, u32 parity) {
    asm volatile(
        "{\n .reg .pred done;\nagain:\n mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n @done bra end;\n bra again;\n"
        "end:\n}" ::"r"(shared_address(barrier)), "r"(parity) : "memory");
}
