// Attention of few rows of queries, for any type.
//
// The result for a token depends on its own sequence only: neither on the other sequences of the pass nor on the
// number of multiprocessors.

#include "cache.cuh"

// Attention of a few rows for head sizes up to 32 * E that are multiples of E. A block processes at most R rows that
// share a key head: the rows of a task times the query heads of a chunk. Each warp processes every eighth group of keys;
// its lanes share the elements of a key.
template <typename T, int E, int R>
__device__ void attend_rows(const T* q, const Part* parts, const Sequence* sequences, const Row* rows,
                            const Task* tasks, T* out, float* partial, const Shape shape) {
    constexpr int WARPS = 8, KEYS = 4;
    const int d = shape.head_size, group = shape.heads / shape.kv_heads;
    const int chunks = (group + R - 1) / R, chunk = blockIdx.y % chunks;
    const int kv_head = blockIdx.y / chunks;
    const int chunk_heads = min(R, group - chunk * R);
    const int first_head = kv_head * group + chunk * R;
    const Task task = tasks[blockIdx.x];
    const Sequence sequence = sequences[task.sequence];
    const int count = static_cast<int>(task.rows) * chunk_heads;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

    float query[R][E], sum[R][E], largest[R], total[R];
    long long first[R], end[R];
    long long task_first = 1ll << 62, task_end = 0;
#pragma unroll
    for (int r = 0; r < R; ++r) {
        largest[r] = -INFINITY;
        total[r] = 0;
        first[r] = end[r] = 0;
        const bool is_used = r < count;
        const long long at = task.first_row + (is_used ? r / chunk_heads : 0);
        const int head = first_head + (is_used ? r % chunk_heads : 0);
        if (is_used) {
            const Row row = rows[at];
            first[r] = max(first_visible(row, shape), task.first_key);
            end[r] = min(row.end, task.end_key);
            task_first = min(task_first, first[r]);
            task_end = max(task_end, end[r]);
        }
        load(query[r], q + (at * shape.heads + head) * d + lane * E, is_used && lane * E < d);
#pragma unroll
        for (int e = 0; e < E; ++e) {
            sum[r][e] = 0;
            query[r][e] *= shape.scale;
        }
    }

    long long start = 0;
    for (int p = 0; p < sequence.parts; ++p) {
        const Part part = parts[sequence.first_part + p];
        const T* keys = keys_of<T>(part.address, part.capacity, shape, kv_head);
        const T* values = keys + shape.kv_heads * part.capacity * d;
        const long long skipped = max(0ll, task_first - start) / (WARPS * KEYS) * (WARPS * KEYS);
        for (long long t = skipped + warp * KEYS; t < part.tokens && start + t < task_end; t += WARPS * KEYS) {
            float key[KEYS][E], value[KEYS][E];
#pragma unroll
            for (int u = 0; u < KEYS; ++u) {
                const bool is_stored = t + u < part.tokens && lane * E < d;
                load(key[u], keys + (t + u) * d + lane * E, is_stored);
                load(value[u], values + (t + u) * d + lane * E, is_stored);
            }
#pragma unroll
            for (int r = 0; r < R; ++r) {
                if (r >= count) break;
                float score[KEYS], top = largest[r];
#pragma unroll
                for (int u = 0; u < KEYS; ++u) {
                    float product = 0;
#pragma unroll
                    for (int e = 0; e < E; ++e) product += query[r][e] * key[u][e];
#pragma unroll
                    for (int offset = 16; offset > 0; offset /= 2) {
                        product += __shfl_xor_sync(0xffffffff, product, offset);
                    }
                    const long long position = start + t + u;
                    const bool is_visible = t + u < part.tokens && position >= first[r] && position < end[r];
                    score[u] = is_visible ? product : -INFINITY;
                    top = fmaxf(top, score[u]);
                }
                if (top == -INFINITY) continue;
                const float correction = exp2f(largest[r] - top);
                largest[r] = top;
                total[r] *= correction;
#pragma unroll
                for (int e = 0; e < E; ++e) sum[r][e] *= correction;
#pragma unroll
                for (int u = 0; u < KEYS; ++u) {
                    const float weight = exp2f(score[u] - top);
                    total[r] += weight;
#pragma unroll
                    for (int e = 0; e < E; ++e) sum[r][e] += weight * value[u][e];
                }
            }
        }
        start += part.tokens;
    }

    // Adds the sums of the warps, in their order.
    __shared__ float warp_largest[WARPS], warp_total[WARPS], warp_sum[WARPS][32 * E];
#pragma unroll
    for (int r = 0; r < R; ++r) {
        if (r >= count) break;
        if (lane == 0) {
            warp_largest[warp] = largest[r];
            warp_total[warp] = total[r];
        }
#pragma unroll
        for (int e = 0; e < E; ++e) warp_sum[warp][lane * E + e] = sum[r][e];
        __syncthreads();
        float top = -INFINITY, all = 0;
        for (int w = 0; w < WARPS; ++w) top = fmaxf(top, warp_largest[w]);
        // A part of the keys can be invisible.
        const float subtracted = top == -INFINITY ? 0 : top;
        for (int w = 0; w < WARPS; ++w) all += warp_total[w] * exp2f(warp_largest[w] - subtracted);
        const int token = r / chunk_heads, head = first_head + r % chunk_heads;
        float* part = partial + ((task.partial + token) * shape.heads + head) * (d + 2);
        if (task.partial >= 0 && threadIdx.x == 0) {
            part[0] = top;
            part[1] = all;
        }
        for (int i = threadIdx.x; i < d; i += blockDim.x) {
            float value = 0;
            for (int w = 0; w < WARPS; ++w) value += warp_sum[w][i] * exp2f(warp_largest[w] - subtracted);
            if (task.partial >= 0) {
                part[2 + i] = value;
            } else {
                out[((task.first_row + token) * shape.heads + head) * d + i] = from_float<T>(value / all);
            }
        }
        __syncthreads();
    }
}

// Joins the partial results of a row, in the order of the keys. One block per row and head.
template <typename T>
__device__ void combine(const float* partial, const Combination* combinations, T* out, int d) {
    const Combination combination = combinations[blockIdx.x];
    const int head = blockIdx.y, heads = gridDim.y;
    auto part = [&](int i) {
        return partial + ((combination.first + i * combination.step) * heads + head) * (d + 2);
    };
    float top = -INFINITY, all = 0;
    for (int i = 0; i < combination.count; ++i) top = fmaxf(top, part(i)[0]);
    for (int i = 0; i < combination.count; ++i) all += part(i)[1] * exp2f(part(i)[0] - top);
    for (int j = threadIdx.x; j < d; j += blockDim.x) {
        float value = 0;
        for (int i = 0; i < combination.count; ++i) value += part(i)[2 + j] * exp2f(part(i)[0] - top);
        out[(combination.row * heads + head) * d + j] = from_float<T>(value / all);
    }
}

#define ATTEND_ROWS(T, name)                                                                                           \
    ATTEND(attend_rows, T, name##_d32_r1, 256, 1, 1)                                                                   \
    ATTEND(attend_rows, T, name##_d32_r8, 256, 1, 8)                                                                   \
    ATTEND(attend_rows, T, name##_d64_r1, 256, 2, 1)                                                                   \
    ATTEND(attend_rows, T, name##_d64_r8, 256, 2, 8)                                                                   \
    ATTEND(attend_rows, T, name##_d128_r1, 256, 4, 1)                                                                  \
    ATTEND(attend_rows, T, name##_d128_r8, 256, 4, 8)                                                                  \
    ATTEND(attend_rows, T, name##_d256_r1, 256, 8, 1)                                                                  \
    ATTEND(attend_rows, T, name##_d256_r8, 256, 8, 8)

#define COMBINE(T, name)                                                                                               \
    extern "C" __global__ void __launch_bounds__(128)                                                                  \
        combine_##name(const float* partial, const Combination* combinations, T* out, int head_size) {                 \
        combine<T>(partial, combinations, out, head_size);                                                             \
    }

ATTEND_ROWS(float, f32)
ATTEND_ROWS(__half, f16)
ATTEND_ROWS(__nv_bfloat16, bf16)
COMBINE(float, f32)
COMBINE(__half, f16)
COMBINE(__nv_bfloat16, bf16)
