// Operations of decoder and encoder layers that candle composes of several kernels.

#include "elements.cuh"

// Sum of a value over a block of 512 threads.
__device__ inline float sum_over_block(float value) {
    __shared__ float sums[16];
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffff, value, offset);
    // An earlier sum can still be in use.
    __syncthreads();
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
    __syncthreads();
    float sum = 0;
    for (int i = 0; i < 16; ++i) sum += sums[i];
    return sum;
}

// RMS norm of rows of `size` values, times `weight`. One block of 512 threads per row.
template <typename T> __device__ void rms_norm(const float* x, const float* weight, T* out, int size, float eps) {
    x += static_cast<long long>(blockIdx.x) * size;
    out += static_cast<long long>(blockIdx.x) * size;
    float squares = 0;
    for (int i = threadIdx.x; i < size; i += blockDim.x) squares += x[i] * x[i];
    const float scale = rsqrtf(sum_over_block(squares) / size + eps);
    for (int i = threadIdx.x; i < size; i += blockDim.x) out[i] = from_float<T>(x[i] * scale * weight[i]);
}

// Layer norm of rows of `size` values. One block of 512 threads per row.
extern "C" __global__ void __launch_bounds__(512)
    layer_norm_f32(const float* x, const float* weight, const float* bias, float* out, int size, float eps) {
    x += static_cast<long long>(blockIdx.x) * size;
    out += static_cast<long long>(blockIdx.x) * size;
    float sum = 0, squares = 0;
    for (int i = threadIdx.x; i < size; i += blockDim.x) sum += x[i];
    const float mean = sum_over_block(sum) / size;
    for (int i = threadIdx.x; i < size; i += blockDim.x) squares += (x[i] - mean) * (x[i] - mean);
    const float scale = rsqrtf(sum_over_block(squares) / size + eps);
    for (int i = threadIdx.x; i < size; i += blockDim.x) out[i] = (x[i] - mean) * scale * weight[i] + bias[i];
}

// Four elements per thread.
__device__ inline long long first_element() {
    return 4 * (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x);
}

template <typename T> __device__ inline void write(T* to, const float (&values)[4]) {
    Elements<T, 4> elements;
    for (int i = 0; i < 4; ++i) elements.elements[i] = from_float<T>(values[i]);
    *reinterpret_cast<Elements<T, 4>*>(to) = elements;
}

// gate · σ(gate) · up.
template <typename T> __device__ void swiglu(const T* gate, const T* up, T* out, long long count) {
    const long long at = first_element();
    if (at >= count) return;
    float g[4], u[4];
    load(g, gate + at, true);
    load(u, up + at, true);
    for (int i = 0; i < 4; ++i) g[i] = g[i] / (1 + expf(-g[i])) * u[i];
    write(out + at, g);
}

// Adds four elements.
template <typename T> __device__ inline void add_four(const float* x, const T* y, float* out) {
    float a[4], b[4];
    load(a, x, true);
    load(b, y, true);
    for (int i = 0; i < 4; ++i) a[i] += b[i];
    write(out, a);
}

// x + y.
template <typename T> __device__ void add(const float* x, const T* y, float* out, long long count) {
    const long long at = first_element();
    if (at < count) add_four(x + at, y + at, out + at);
}

// Adds a bias of `size` values to each row.
extern "C" __global__ void add_bias_f32(const float* x, const float* bias, float* out, long long count, int size) {
    const long long at = first_element();
    if (at < count) add_four(x + at, bias + at % size, out + at);
}

#define LAYERS(T, name)                                                                                                \
    extern "C" __global__ void __launch_bounds__(512)                                                                  \
        rms_norm_##name(const float* x, const float* weight, T* out, int size, float eps) {                            \
        rms_norm<T>(x, weight, out, size, eps);                                                                        \
    }                                                                                                                  \
    extern "C" __global__ void swiglu_##name(const T* gate, const T* up, T* out, long long count) {                    \
        swiglu<T>(gate, up, out, count);                                                                               \
    }                                                                                                                  \
    extern "C" __global__ void add_##name(const float* x, const T* y, float* out, long long count) {                   \
        add<T>(x, y, out, count);                                                                                      \
    }

LAYERS(float, f32)
LAYERS(__half, f16)
LAYERS(__nv_bfloat16, bf16)
