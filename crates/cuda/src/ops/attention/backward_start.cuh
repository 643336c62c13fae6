// How backward.cu starts: what a block holds in shared memory, the statistics of its queries, and what it asks for its successor.
#pragma once

// Tiles of queries taken at once, and blocks that share a multiprocessor's registers.
#ifndef AT_ONCE
#define AT_ONCE (HEAD <= 16 ? 2 : 1)
#endif
#ifndef BLOCKS_AT_ONCE
#define BLOCKS_AT_ONCE (HEAD > 16 ? 1 : 2)
#endif

constexpr int PAIRS = CAUSAL ? QUERY_TILES * (QUERY_TILES + 1) / 2 : QUERY_TILES * KEY_TILES;
constexpr int STATS = 192, TILE = 32 * ROW, DY = QUERY_TILES * TILE, PAIR = 512;
constexpr int BYTES = TILE * (2 * QUERY_TILES + KEY_TILES) + STATS * QUERY_TILES + PAIR * PAIRS;

// Place of the pair of a tile of keys with tile 0 of queries (which need not be there) among the stored ones.
__device__ __forceinline__ int pairs_of(int key) { return CAUSAL ? key * QUERY_TILES - key * (key + 1) / 2 : key * QUERY_TILES; }

// What shared memory holds of the queries, STATS bytes a tile: the logarithms of the sums of exponentials in units of log 2 (infinity
// for rows beyond TQ, whose weights are then 0); -r delta; and -r delta in T, each with 16 bytes for pair q of both halves of the tile.
struct Stats {
    unsigned char* at;
    __device__ __forceinline__ void set(int row, float lse, float delta, bool inside) const {
        float rest = inside ? -Decisions::rate() * delta : 0.0f;
        int place = row % 8 / 2 * 4 + row % 16 / 8 * 2 + row % 2;
        unsigned char* tile = at + row / 16 * STATS;
        ((float*)tile)[place] = inside ? lse * LOG2E : INF;
        ((float*)tile)[16 + place] = rest;
        ((T*)(tile + 128))[row % 8 / 2 * 8 + row % 16 / 8 * 2 + row % 2] = from_f32<T>(rest);
    }
};

// 16 bytes; all of their line is brought to L2 at once.
__device__ __forceinline__ uint4 read_line(const T* at) {
    uint4 x;
    asm volatile("ld.global.L2::128B.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "l"(at));
    return x;
}

// The statistics of every row, in two steps: `read` starts the loads, `write` takes do from shared memory, where it has arrived.
// Lanes side by side take a row's chunks of 8 elements, as far as these are a power of 2.
struct Preparation {
    static constexpr int PARTS = COLS % 8 == 0 ? 8 : COLS % 4 == 0 ? 4 : COLS % 2 == 0 ? 2 : 1, EACH = COLS / PARTS;
    static constexpr int STRIDE = WARPS * 32 / PARTS, ROUNDS = (QUERY_TILES * 16 + STRIDE - 1) / STRIDE;
    // Wide rows of do are read once more from memory: that costs little, and saves a barrier.
    static constexpr bool DIRECT = HEAD >= 32;
    uint4 o[ROUNDS][EACH], dy[DIRECT ? ROUNDS : 1][EACH];
    float log[ROUNDS];
    __device__ __forceinline__ void read(const T* from, const T* from_dy, const float* lse) {
        int first = threadIdx.x % (WARPS * 32) / PARTS, part = threadIdx.x % PARTS;
#pragma unroll
        for (int n = 0; n < ROUNDS; n++) {
            int row = min(first + n * STRIDE, TQ - 1);
            log[n] = lse[row];
#pragma unroll
            for (int c = 0; c < EACH; c++) {
                int at = (c * PARTS + part) * 8;
                o[n][c] = read_line(from + size_t(row) * O_ST + at);
                if (DIRECT) dy[DIRECT ? n : 0][c] = read_line(from_dy + size_t(row) * DO_ST + at);
            }
        }
    }
    __device__ __forceinline__ void write(const Stats& stats, const T* dys) const {
        int first = threadIdx.x % (WARPS * 32) / PARTS, part = threadIdx.x % PARTS;
#pragma unroll
        for (int n = 0; n < ROUNDS; n++) {
            int row = first + n * STRIDE;
            float sum = 0;
#pragma unroll
            for (int c = 0; c < EACH; c++) {
                uint4 g = dy[DIRECT ? n : 0][c];
                if (!DIRECT) g = *(const uint4*)(dys + place(min(row, QUERY_TILES * 16 - 1), c * PARTS + part));
#pragma unroll
                for (int m = 0; m < 4; m++) {
                    float2 x = unpack2<T>(word_of(o[n][c], m)), y = unpack2<T>(word_of(g, m));
                    sum = fmaf(x.x, y.x, fmaf(x.y, y.y, sum));
                }
            }
            sum = warp_sum<PARTS>(sum);
            if (part == 0 && row < QUERY_TILES * 16) stats.set(row, log[n], sum, row < TQ);
        }
    }
};

// Brings to L2 what the block reads that will take this one's place, so that its start does not wait for memory. Wide heads have no
// such block: enough of theirs run at once.
__device__ __forceinline__ void prefetch_later(const T* q, const T* k, const T* v, const T* o, const T* dy) {
    if (HEAD > 32) return;
    int sample = blockIdx.z;
    u32 unit = blockIdx.z * gridDim.y + blockIdx.y + multiprocessors() * BLOCKS_AT_ONCE;
    // Of heads that share lines, one suffices.
    constexpr int SHARED_LINES = Q_SH == HEAD && K_SH == HEAD && V_SH == HEAD && O_SH == HEAD && DO_SH == HEAD ? (64 + HEAD - 1) / HEAD : 1;
    if (unit >= gridDim.y * gridDim.z || blockIdx.y * HEADS % SHARED_LINES != 0) return;
    int samples = int(unit / gridDim.y) - sample, heads = int(unit % gridDim.y - blockIdx.y) * HEADS;
    for (int row = threadIdx.x % (32 * WARPS); row < max(TQ, TK); row += 32 * WARPS) {
        if (row < TQ) {
            prefetch_l2(q + (i64(samples) * Q_SB + heads * Q_SH + row * Q_ST));
            prefetch_l2(o + (i64(samples) * O_SB + heads * O_SH + row * O_ST));
            prefetch_l2(dy + (i64(samples) * DO_SB + heads * DO_SH + row * DO_ST));
        }
        if (row < TK) {
            prefetch_l2(k + (i64(samples) * K_SB + heads * K_SH + row * K_ST));
            prefetch_l2(v + (i64(samples) * V_SB + heads * V_SH + row * V_ST));
        }
    }
}
