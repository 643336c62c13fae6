// What the tensor-core attention kernels do with rows and fragments, whatever their type.
#pragma once

// The last tile of queries has 8 rows or fewer; tiles on the diagonal are triangles.
constexpr bool SHORT = TQ % 16 > 0 && TQ % 16 <= 8, SQUARE = CAUSAL && !KV_LEN && TQ == TK;
// What a tile of keys is to a tile of queries: seen by all of them, to be looked at, or on the diagonal.
enum { ALL, SOME, DIAGONAL };

// 16 bytes to shared memory; heads of a row share lines: all of a line is brought to L2 at once.
__device__ __forceinline__ void cp_async_line(void* to, const void* from, bool valid) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(valid ? 16 : 0)
                 : "memory");
}
// Starts the copy of rows `from`..`from + count` to shared memory; rows from `end` on become zeros. Thread n takes chunks n,
// n + THREADS and so on; where these lie in one column, and their places in one order, the addresses just step on.
// SIDE > 1: the same of so many heads, `head` elements apart in memory and `apart` in shared memory.
template <int THREADS, int SIDE = 1>
__device__ __forceinline__ void fetch(T* to, const T* source, int stride, int from, int count, int end, int head = 0, int apart = 0) {
    constexpr int ACROSS = SIDE * CHUNKS, ROWS = THREADS / ACROSS;
    int thread = threadIdx.x % THREADS;
    if constexpr (THREADS % ACROSS == 0 && ROWS % 8 == 0) {
        int row = thread / ACROSS, chunk = thread % CHUNKS, which = thread % ACROSS / CHUNKS;
        bool inside = chunk * CHUNK < HEAD;
        T* at = to + (which * apart + place(row, chunk));
        const T* next = source + (size_t(from + row) * stride + which * head + (inside ? chunk * CHUNK : 0));
#pragma unroll 4
        for (; row < count; row += ROWS, at += ROWS * ROW, next += ROWS * stride)
            cp_async_line(at, next, inside && from + row < end);
    } else {
        for (int n = thread; n < count * ACROSS; n += THREADS) {
            int row = n / ACROSS, chunk = n % CHUNKS, which = n % ACROSS / CHUNKS;
            bool valid = from + row < end && chunk * CHUNK < HEAD;
            const T* next = source + (size_t(from + row) * stride + which * head + chunk * CHUNK);
            cp_async_line(to + (which * apart + place(row, chunk)), valid ? next : source, valid);
        }
    }
}

// The same for a tile itself.
__device__ __forceinline__ void product(float (&c)[2][4], const u32 (&a)[STEPS][4], const T* tile, int lane) {
    product(c, a, shared_address(tile + lane_b(lane)), lane_b(lane));
}
__device__ __forceinline__ void spread(float (&c)[COLS][4], const u32 (&a)[PACKED], const T* tile, int lane) {
    spread(c, a, shared_address(tile + lane_bt(lane)), lane_bt(lane));
}

// Shares `tiles` out to the warps so that causal work is even: turn 0 takes the first (the longest), forth; turn 1 the next,
// back; and so on. `tiles` or more: no tile in this turn.
__device__ __forceinline__ int turn_tile(int turn, int warp) { return turn % 2 ? (turn + 1) * WARPS - 1 - warp : turn * WARPS + warp; }
