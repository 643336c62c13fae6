// Tiles of a product's operands on their way to shared memory, in steps of BK along K, through STAGES buffers.
//
// a is M x K, element (m, k) at m LDA + k, or k LDA + m if A_TURNED; b is K x N, element (k, n) at n LDB + k, or k LDB + n
// if B_TURNED. K, N, LDA, LDB and (if A_TURNED) M are multiples of 8, addresses of 16.
#define OPERANDS const T* a, const T* b
#define GIVEN a, b
constexpr int A_TILE = BM * BK, B_TILE = BN * BK, STAGE = A_TILE + B_TILE;
constexpr int STEPS = (K + BK - 1) / BK;

// Copies tiles of one operand: `SIDE` of the result's side by BK of K a step. A thread's chunks are GAP rows apart, so that
// all their addresses differ by constants, and the permutation is the same in all.
template <int SIDE, bool TURNED, int PITCH> struct Loader {
    static constexpr int CHUNKS = TURNED ? SIDE / 8 : BK / 8, ROWS = TURNED ? BK : SIDE;
    // Chunks of a row in shared memory. `wgmma` reads rows of 128 bytes: wider tiles are several side by side.
    static constexpr int WIDE = WGMMA ? 8 : CHUNKS;
    static constexpr int GAP = THREADS / CHUNKS, COUNT = ROWS * CHUNKS / THREADS;
    static_assert(THREADS % CHUNKS == 0 && ROWS * CHUNKS % THREADS == 0 && GAP % 8 == 0, "threads share a tile evenly");
    const T *source, *next;
    u32 to, inside;
    int k;

    __device__ __forceinline__ Loader(const T* at, u32 from, u32 side) : source(at), inside(0) {
        const u32 row = threadIdx.x / CHUNKS, chunk = threadIdx.x % CHUNKS;
        to = chunk / WIDE * (ROWS * WIDE * 8) + place<WIDE>(row, chunk % WIDE);
        if (TURNED) {
            next = at + u64(row) * PITCH + from + chunk * 8;
            inside = from + chunk * 8 < side ? ~0u : 0u;
            k = row;
        } else {
            next = at + u64(from + row) * PITCH + chunk * 8;
#pragma unroll
            for (int i = 0; i < COUNT; i++) inside |= (from + row + i * GAP < side ? 1u : 0u) << i;
            k = chunk * 8;
        }
    }

    // Starts the copy of the next step.
    __device__ __forceinline__ void load(T* tile) {
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            const bool within = K % BK == 0 || (TURNED ? k + i * GAP < K : k < K);
            const bool valid = (inside >> i & 1) && within;
            cp_async16(tile + to + i * GAP * WIDE * 8, valid ? next + u64(i) * GAP * PITCH : source, valid);
        }
        next += TURNED ? u64(BK) * PITCH : u64(BK);
        k += BK;
    }
};

// Both operands' tiles of a step, into the stage that is its turn.
struct Tiles {
    Loader<BM, A_TURNED, LDA> a;
    Loader<BN, B_TURNED, LDB> b;
    T* stages;

    __device__ __forceinline__ void operator()(int step) {
        T* stage = stages + step % STAGES * STAGE;
        a.load(stage);
        b.load(stage + A_TILE);
    }
};
