// Sequences of a pass, and their keys and values.
//
// A pass describes its sequences in one array of 64-bit integers (`pass.rs`). Its records are the structs below. The
// keys and values of a part have the layout (layers, 2, kv_heads, capacity, d).

#pragma once

#include "elements.cuh"

// Consecutive tokens of a sequence.
struct Part {
    long long address;
    long long capacity;
    long long tokens;
};

struct Sequence {
    long long first_part;
    long long parts;
};

// A new token, which is one row of the queries.
struct Row {
    // Part that stores its key and value, and the index of the token in this part.
    long long address;
    long long capacity;
    long long slot;
    // Position in the sequence, and the end of the positions that it attends to.
    long long position;
    long long end;
};

// Rows of one sequence that a block processes, and the positions of their keys.
struct Task {
    long long sequence;
    long long first_row;
    long long rows;
    long long first_key;
    long long end_key;
    // Index of the first row among the partial results, or -1 if the task covers all keys.
    long long partial;
};

// A row whose keys several tasks share: the indices of its partial results.
struct Combination {
    long long row;
    long long first;
    long long count;
    long long step;
};

struct Shape {
    int layer;
    int heads;
    int kv_heads;
    int head_size;
    // Factor of the scores times log2(e).
    float scale;
    // Number of positions that a token attends to; 0 for all.
    int window;
};

// Returns the keys of a head in a part. The values follow after kv_heads * capacity * head_size elements.
template <typename T>
__device__ inline T* keys_of(long long address, long long capacity, const Shape& shape, int kv_head) {
    const long long first_head = 2ll * shape.layer * shape.kv_heads + kv_head;
    return reinterpret_cast<T*>(address) + first_head * capacity * shape.head_size;
}

// First position that a token attends to.
__device__ inline long long first_visible(const Row& row, const Shape& shape) {
    return shape.window == 0 ? 0 : max(0ll, row.position + 1 - shape.window);
}

// Defines a kernel of attention.
#define ATTEND(kernel, T, suffix, threads, ...)                                                                        \
    extern "C" __global__ void __launch_bounds__(threads)                                                              \
        kernel##_##suffix(const T* q, const Part* parts, const Sequence* sequences, const Row* rows,                   \
                          const Task* tasks, T* out, float* partial, int layer, int heads, int kv_heads,               \
                          int head_size, float scale, int window) {                                                    \
        kernel<T, __VA_ARGS__>(q, parts, sequences, rows, tasks, out, partial,                                         \
                               {layer, heads, kv_heads, head_size, scale, window});                                    \
    }
