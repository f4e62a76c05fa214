// Attention of many rows of queries, on the tensor cores of GPUs of compute capability 8.0 or later.
//
// The result for a token depends on its own sequence only: neither on the other sequences of the pass nor on the
// number of multiprocessors.

#include "cache.cuh"

__device__ inline unsigned shared_address(const void* pointer) {
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// Copies 16 bytes to shared memory in the background, or clears them.
__device__ inline void copy_async(void* to, const void* from, bool is_stored) {
    const int bytes = is_stored ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(shared_address(to)), "l"(from), "r"(bytes));
}

__device__ inline void end_copies() { asm volatile("cp.async.commit_group;\n"); }

// Waits for all copies but those after the last call of end_copies.
__device__ inline void await_older_copies() { asm volatile("cp.async.wait_group 1;\n" ::: "memory"); }

// Loads four 8×8 matrices. Each lane passes the address of a row.
__device__ inline void load_matrices(unsigned (&matrices)[4], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]), "=r"(matrices[3])
                 : "r"(shared_address(row)));
}

__device__ inline void load_transposed(unsigned (&matrices)[4], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]), "=r"(matrices[3])
                 : "r"(shared_address(row)));
}

// Adds the product of a 16×16 and a 16×8 matrix.
template <typename T>
__device__ inline void multiply_add(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1);

template <>
__device__ inline void multiply_add<__nv_bfloat16>(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};\n"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <>
__device__ inline void multiply_add<__half>(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};\n"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ inline unsigned pack(__nv_bfloat16, float first, float second) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(first, second);
    return *reinterpret_cast<const unsigned*>(&pair);
}

__device__ inline unsigned pack(__half, float first, float second) {
    const __half2 pair = __floats2half2_rn(first, second);
    return *reinterpret_cast<const unsigned*>(&pair);
}

// Up to TILE_KEYS consecutive tokens of a part.
template <typename T> struct KeyTile {
    const T* keys;
    const T* values;
    int part;
    // Index of the first token in the part, and the position of the part's first token.
    long long token;
    long long start;
    long long tokens;
};

// Attention of many rows on the tensor cores, for head sizes 64 and 128 (the online softmax of FlashAttention-2, Dao
// 2023, algorithm 1). A block processes 64 rows of one query head; each of its four warps has 16 of them.
template <typename T, int D>
__device__ void attend_tiles(const T* q, const Part* parts, const Sequence* sequences, const Row* rows,
                             const Task* tasks, T* out, float*, const Shape shape) {
    constexpr int TILE_ROWS = 64, TILE_KEYS = 64, THREADS = 128;
    // The padding places the rows of a matrix in different banks.
    constexpr int STRIDE = D + 8, CHUNKS = D / 8;
    __shared__ alignas(16) T shared_keys[TILE_KEYS * STRIDE], shared_values[TILE_KEYS * STRIDE];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int head = blockIdx.y, kv_head = head / (shape.heads / shape.kv_heads);
    const Task task = tasks[blockIdx.x];
    const Sequence sequence = sequences[task.sequence];

    // The queries of this warp, as the left operand of a product.
    unsigned query[D / 16][4];
    for (int i = threadIdx.x; i < TILE_ROWS * CHUNKS; i += THREADS) {
        const int row = i / CHUNKS, column = i % CHUNKS * 8;
        const long long at = task.first_row + (row < task.rows ? row : 0);
        copy_async(shared_keys + row * STRIDE + column, q + (at * shape.heads + head) * D + column, row < task.rows);
    }
    end_copies();
    end_copies();
    await_older_copies();
    __syncthreads();
#pragma unroll
    for (int k = 0; k < D / 16; ++k) {
        load_matrices(query[k], shared_keys + (warp * 16 + lane % 16) * STRIDE + k * 16 + lane / 16 * 8);
    }
    __syncthreads();

    // Each lane has the results of two rows.
    long long first[2], end[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const int row = warp * 16 + lane / 4 + 8 * i;
        first[i] = end[i] = 0;
        if (row < task.rows) {
            first[i] = first_visible(rows[task.first_row + row], shape);
            end[i] = rows[task.first_row + row].end;
        }
    }
    // Rows are in the order of their positions, and the end of a position is not before that of an earlier one.
    const long long task_first = first_visible(rows[task.first_row], shape);
    const long long task_end = rows[task.first_row + task.rows - 1].end;

    float sum[D / 8][4], largest[2] = {-INFINITY, -INFINITY}, total[2] = {0, 0};
#pragma unroll
    for (int n = 0; n < D / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) sum[n][i] = 0;
    }

    // Moves a tile to the first visible token at or after it. Returns false at the end.
    auto find_visible = [&](KeyTile<T>& tile) {
        while (true) {
            while (tile.token >= tile.tokens) {
                if (++tile.part >= sequence.parts) return false;
                const Part part = parts[sequence.first_part + tile.part];
                tile.start += tile.tokens;
                tile.token = 0;
                tile.tokens = part.tokens;
                tile.keys = keys_of<T>(part.address, part.capacity, shape, kv_head);
                tile.values = tile.keys + shape.kv_heads * part.capacity * D;
            }
            if (tile.start + tile.token >= task_end) return false;
            if (tile.start + tile.token + TILE_KEYS > task_first) return true;
            tile.token += TILE_KEYS;
        }
    };
    auto copy_rows = [&](T* to, const T* from, const KeyTile<T>& tile) {
        for (int i = threadIdx.x; i < TILE_KEYS * CHUNKS; i += THREADS) {
            const int key = i / CHUNKS, column = i % CHUNKS * 8;
            const bool is_stored = tile.token + key < tile.tokens;
            copy_async(to + key * STRIDE + column, from + (tile.token + (is_stored ? key : 0)) * D + column, is_stored);
        }
    };

    KeyTile<T> tile = {nullptr, nullptr, -1, 0, 0, 0};
    bool is_left = find_visible(tile);
    if (is_left) copy_rows(shared_keys, tile.keys, tile);
    end_copies();
    if (is_left) copy_rows(shared_values, tile.values, tile);
    end_copies();
    while (is_left) {
        KeyTile<T> next = tile;
        next.token += TILE_KEYS;
        const bool has_next = find_visible(next);

        await_older_copies();
        __syncthreads();
        float score[TILE_KEYS / 8][4];
#pragma unroll
        for (int n = 0; n < TILE_KEYS / 8; ++n) {
#pragma unroll
            for (int i = 0; i < 4; ++i) score[n][i] = 0;
        }
#pragma unroll
        for (int k = 0; k < D / 16; ++k) {
#pragma unroll
            for (int n = 0; n < TILE_KEYS / 8; n += 2) {
                unsigned keys[4];
                const int key = n * 8 + lane / 16 * 8 + lane % 8;
                load_matrices(keys, shared_keys + key * STRIDE + k * 16 + lane / 8 % 2 * 8);
                multiply_add<T>(score[n], query[k], keys[0], keys[1]);
                multiply_add<T>(score[n + 1], query[k], keys[2], keys[3]);
            }
        }
        __syncthreads();
        if (has_next) copy_rows(shared_keys, next.keys, next);
        end_copies();

        float top[2] = {largest[0], largest[1]};
        const long long tile_position = tile.start + tile.token, tile_end = tile.start + tile.tokens;
#pragma unroll
        for (int n = 0; n < TILE_KEYS / 8; ++n) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const long long position = tile_position + n * 8 + lane % 4 * 2 + i % 2;
                const bool is_visible = position < tile_end && position >= first[i / 2] && position < end[i / 2];
                score[n][i] = is_visible ? score[n][i] * shape.scale : -INFINITY;
                top[i / 2] = fmaxf(top[i / 2], score[n][i]);
            }
        }
        float correction[2], largest_before[2];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            top[i] = fmaxf(top[i], __shfl_xor_sync(0xffffffff, top[i], 1));
            top[i] = fmaxf(top[i], __shfl_xor_sync(0xffffffff, top[i], 2));
            largest_before[i] = largest[i];
            largest[i] = top[i];
            // Nothing is visible yet.
            if (top[i] == -INFINITY) top[i] = 0;
            correction[i] = exp2f(largest_before[i] - top[i]);
            total[i] *= correction[i];
        }
#pragma unroll
        for (int n = 0; n < TILE_KEYS / 8; ++n) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                score[n][i] = exp2f(score[n][i] - top[i / 2]);
                total[i / 2] += score[n][i];
            }
        }
#pragma unroll
        for (int n = 0; n < D / 8; ++n) {
#pragma unroll
            for (int i = 0; i < 4; ++i) sum[n][i] *= correction[i / 2];
        }

        await_older_copies();
        __syncthreads();
#pragma unroll
        for (int k = 0; k < TILE_KEYS / 16; ++k) {
            const unsigned weights[4] = {
                pack(T(), score[2 * k][0], score[2 * k][1]), pack(T(), score[2 * k][2], score[2 * k][3]),
                pack(T(), score[2 * k + 1][0], score[2 * k + 1][1]),
                pack(T(), score[2 * k + 1][2], score[2 * k + 1][3])};
#pragma unroll
            for (int n = 0; n < D / 8; n += 2) {
                unsigned values[4];
                load_transposed(values, shared_values + (k * 16 + lane % 16) * STRIDE + n * 8 + lane / 16 * 8);
                multiply_add<T>(sum[n], weights, values[0], values[1]);
                multiply_add<T>(sum[n + 1], weights, values[2], values[3]);
            }
        }
        __syncthreads();
        if (has_next) copy_rows(shared_values, next.values, next);
        end_copies();
        tile = next;
        is_left = has_next;
    }

#pragma unroll
    for (int i = 0; i < 2; ++i) {
        total[i] += __shfl_xor_sync(0xffffffff, total[i], 1);
        total[i] += __shfl_xor_sync(0xffffffff, total[i], 2);
        const int row = warp * 16 + lane / 4 + 8 * i;
        if (row >= task.rows) continue;
        T* to = out + ((task.first_row + row) * shape.heads + head) * D;
#pragma unroll
        for (int n = 0; n < D / 8; ++n) {
            const unsigned pair = pack(T(), sum[n][2 * i] / total[i], sum[n][2 * i + 1] / total[i]);
            *reinterpret_cast<unsigned*>(to + n * 8 + lane % 4 * 2) = pair;
        }
    }
}

ATTEND(attend_tiles, __half, f16_d64, 128, 64)
ATTEND(attend_tiles, __half, f16_d128, 128, 128)
ATTEND(attend_tiles, __nv_bfloat16, bf16_d64, 128, 64)
ATTEND(attend_tiles, __nv_bfloat16, bf16_d128, 128, 128)
