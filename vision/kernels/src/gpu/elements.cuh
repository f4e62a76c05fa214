// Elements of tensors in f32, f16 and bf16.

#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

__device__ inline float to_float(float x) { return x; }
__device__ inline float to_float(__half x) { return __half2float(x); }
__device__ inline float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }

template <typename T> __device__ inline T from_float(float x);
template <> __device__ inline float from_float<float>(float x) { return x; }
template <> __device__ inline __half from_float<__half>(float x) { return __float2half(x); }
template <> __device__ inline __nv_bfloat16 from_float<__nv_bfloat16>(float x) { return __float2bfloat16(x); }

// Consecutive elements that are loaded at once.
template <typename T, int E> struct alignas(sizeof(T) * E) Elements {
    T elements[E];
};

// Loads E elements, or zeros.
template <typename T, int E> __device__ inline void load(float (&to)[E], const T* from, bool is_stored) {
    Elements<T, E> loaded = {};
    if (is_stored) loaded = *reinterpret_cast<const Elements<T, E>*>(from);
#pragma unroll
    for (int e = 0; e < E; ++e) to[e] = to_float(loaded.elements[e]);
}
