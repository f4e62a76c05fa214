// Storage of the keys and values of new tokens.

#include "cache.cuh"

// Rotates queries and keys of new tokens by their positions, and stores keys and values in the cache.
// One block per token and head: first the query heads, then the key heads.
template <typename T>
__device__ void store(const T* q, const T* k, const T* v, const float* cos, const float* sin, const Row* rows,
                      T* rotated, const Shape shape) {
    const Row row = rows[blockIdx.x];
    const int d = shape.head_size, half = d / 2;
    const int head = blockIdx.y, kv_head = head - shape.heads;
    const long long token = blockIdx.x;
    const T* from = kv_head < 0 ? q + (token * shape.heads + head) * d : k + (token * shape.kv_heads + kv_head) * d;
    T* to = kv_head < 0 ? rotated + (token * shape.heads + head) * d
                        : keys_of<T>(row.address, row.capacity, shape, kv_head) + row.slot * d;
    for (int pair = threadIdx.x; pair < half; pair += blockDim.x) {
        const float c = cos[row.position * half + pair], s = sin[row.position * half + pair];
        const float first = to_float(from[pair]), second = to_float(from[pair + half]);
        to[pair] = from_float<T>(first * c - second * s);
        to[pair + half] = from_float<T>(second * c + first * s);
    }
    if (kv_head < 0) return;
    T* value = to + shape.kv_heads * row.capacity * d;
    for (int i = threadIdx.x; i < d; i += blockDim.x) value[i] = v[(token * shape.kv_heads + kv_head) * d + i];
}

#define STORE(T, name)                                                                                                 \
    extern "C" __global__ void __launch_bounds__(128)                                                                  \
        store_##name(const T* q, const T* k, const T* v, const float* cos, const float* sin, const Row* rows,          \
                     T* rotated, int layer, int heads, int kv_heads, int head_size) {                                  \
        store<T>(q, k, v, cos, sin, rows, rotated, {layer, heads, kv_heads, head_size, 0, 0});                         \
    }

STORE(float, f32)
STORE(__half, f16)
STORE(__nv_bfloat16, bf16)
