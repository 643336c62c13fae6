// What the tensor-core attention kernels do with rows and fragments, whatever their type.
#pragma once

// Starts the copy of rows `from`..`from + count` to shared memory; rows from `end` on become zeros. Thread n takes chunks n,
// n + THREADS and so on; where these lie in one column, and their places in one order, the addresses just step on.
template <int THREADS> __device__ __forceinline__ void fetch(T* to, const T* source, int stride, int from, int count, int end) {
    constexpr int ROWS = THREADS / CHUNKS;
    int thread = threadIdx.x % THREADS, row = thread / CHUNKS, chunk = thread % CHUNKS;
    if constexpr (THREADS % CHUNKS == 0 && ROWS % 8 == 0) {
        bool inside = chunk * CHUNK < HEAD;
        T* at = to + place(row, chunk);
        const T* next = source + (size_t(from + row) * stride + (inside ? chunk * CHUNK : 0));
#pragma unroll 4
        for (; row < count; row += ROWS, at += ROWS * ROW, next += ROWS * stride)
            cp_async16(at, next, inside && from + row < end);
    } else {
        for (int n = thread; n < count * CHUNKS; n += THREADS) {
            int row = n / CHUNKS, chunk = n % CHUNKS;
            bool valid = from + row < end && chunk * CHUNK < HEAD;
            cp_async16(to + place(row, chunk), valid ? source + size_t(from + row) * stride + chunk * CHUNK : source, valid);
        }
    }
}

// Forces the decisions to be drawn here, among instructions that wait, and not where they are used.
__device__ __forceinline__ void pin(uint4& w) {
#if DROPOUT
    asm volatile("" : "+r"(w.x), "+r"(w.y), "+r"(w.z), "+r"(w.w));
#endif
}

// Shares `tiles` out to the warps so that causal work is even: turn 0 takes the first (the longest), forth; turn 1 the next,
// back; and so on. `tiles` or more: no tile in this turn.
__device__ __forceinline__ int turn_tile(int turn, int warp) { return turn % 2 ? (turn + 1) * WARPS - 1 - warp : turn * WARPS + warp; }
