// choices: rows=1,2,4,8 columns=8,16,32,64 unroll=1,2,4
#include <stdint.h>

enum { ROWS = $rows, COLUMNS = $columns };

static int64_t smaller(int64_t left, int64_t right)
{
    return left < right ? left : right;
}

void kernel(const float *restrict a, const float *restrict b, float *restrict y, int64_t M, int64_t N, int64_t K)
{
    for (int64_t m = 0; m < M; m += ROWS) {
        const int64_t rows = smaller(ROWS, M - m);
        for (int64_t n = 0; n < N; n += COLUMNS) {
            const int64_t columns = smaller(COLUMNS, N - n);
            float sums[ROWS][COLUMNS] = {{0}};
            if (rows == ROWS && columns == COLUMNS) {
#pragma GCC unroll $unroll
                for (int64_t k = 0; k < K; k++) {
                    for (int i = 0; i < ROWS; i++) {
                        for (int j = 0; j < COLUMNS; j++) {
                            sums[i][j] += a[k * M + m + i] * b[k * N + n + j];
                        }
                    }
                }
            } else {
                for (int64_t k = 0; k < K; k++) {
                    for (int64_t i = 0; i < rows; i++) {
                        for (int64_t j = 0; j < columns; j++) {
                            sums[i][j] += a[k * M + m + i] * b[k * N + n + j];
                        }
                    }
                }
            }
            for (int64_t i = 0; i < rows; i++) {
                for (int64_t j = 0; j < columns; j++) {
                    y[(m + i) * N + n + j] = sums[i][j];
                }
            }
        }
    }
}
