// problem: row_sum
// wrong: leaves a function for the end of the process that rewrites the output
#include <stdint.h>
#include <stdlib.h>

static float *output;
static const float *input;
static int64_t rows, columns;

static void finish(void)
{
    for (int64_t m = 0; m < rows; m++) {
        output[m] = 0.0f;
        for (int64_t n = 0; n < columns; n++) {
            output[m] += input[m * columns + n];
        }
    }
}

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    output = y, input = x, rows = M, columns = N;
    atexit(finish);
}
