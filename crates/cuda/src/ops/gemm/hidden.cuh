// A hidden layer's tiles: 64 of its H columns at a time, which first products make from OPERANDS and `hidden` changes element
// by element. A warpgroup has half of the columns for 64 rows: four warpgroups hide each other's waiting. What is made from the layer's own description comes before this text: how many first products there are (FIRSTS)
// and their biases (`load_bias`, `bias_pair`); `load_operands` and `load_weights`; `first_products`; `hidden`, which makes
// MADE values of one of each first product. A_ELEMENTS and W_ELEMENTS are the sizes of the operands' rows and of a slice of the weights.
constexpr int SLICE = 64;

// First products start from their bias: columns `col` on of the COUNT elements of each, as they lie in memory.
template <int COUNT> __device__ __forceinline__ void start(float (&s)[FIRSTS][4][4], const unsigned char* bias, int col) {
#pragma unroll
    for (int i = 0; i < FIRSTS; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const float2 add = bias_pair<COUNT>(bias, i, col + j * 8 + threadIdx.x % 4 * 2);
            s[i][j][0] = s[i][j][2] = add.x;
            s[i][j][1] = s[i][j][3] = add.y;
        }
}

// What is made of first products, two neighbours of each value at a time: `take(j, half, pairs)`, for columns 8 j + 2 (lane % 4)
// of a warpgroup's 32, and row lane / 4 + 8 half of a warp's sixteen.
template <typename Take> __device__ __forceinline__ void make(const float (&s)[FIRSTS][4][4], Take take) {
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float left[FIRSTS], right[FIRSTS], pairs[2][MADE];
#pragma unroll
            for (int i = 0; i < FIRSTS; i++) left[i] = s[i][j][half * 2], right[i] = s[i][j][half * 2 + 1];
            hidden(left, pairs[0]);
            hidden(right, pairs[1]);
            take(j, half, pairs);
        }
}
