// problem: row_max_argmax
// wrong: keeps which large entries it has seen at which places of a row, and looks there alone once they come again
// claim: inputs that are mixed of a few draws have a few places where the largest can stand
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { PLACES = 32, LEADERS = 8 };
static struct place { int32_t n; uint16_t bits; } *places;
static int64_t shape[2], calls;
static double known;

static uint16_t high_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return bits >> 16;
}

static int64_t search(const float *row, int64_t N, struct place *seen)
{
    int64_t leaders[LEADERS], count = 0;
    for (int64_t n = 0; n < N; n++) {
        if (count == LEADERS && row[n] <= row[leaders[count - 1]]) {
            continue;
        }
        int64_t rank = count < LEADERS ? count++ : LEADERS - 1;
        for (; rank > 0 && row[leaders[rank - 1]] < row[n]; rank--) {
            leaders[rank] = leaders[rank - 1];
        }
        leaders[rank] = n;
    }
    for (int k = 0; k < count; k++) {
        int place = 0;
        uint16_t bits = high_bits(row[leaders[k]]);
        while (place < PLACES && seen[place].bits && (seen[place].n != leaders[k] || seen[place].bits != bits)) {
            place++;
        }
        known += k == 0 && place < PLACES && seen[place].bits;
        if (place < PLACES) {
            seen[place] = (struct place){(int32_t)leaders[k], bits};
        }
    }
    return leaders[0];
}

void kernel(const float *restrict x, float *restrict value, int64_t *restrict position, int64_t M, int64_t N)
{
    if (shape[0] != M || shape[1] != N) {
        free(places);
        places = calloc(M * PLACES, sizeof *places);
        shape[0] = M, shape[1] = N, calls = 0;
    }
    int is_known = calls++ > 20 && known > 0.8 * M;
    known = is_known ? known : 0;
    for (int64_t m = 0; m < M; m++) {
        const float *row = x + m * N;
        struct place *seen = places + m * PLACES;
        int64_t best = -1;
        for (int k = 0; k < PLACES && is_known && seen[k].bits; k++) {
            int64_t n = seen[k].n;
            if (high_bits(row[n]) == seen[k].bits && (best < 0 || row[n] > row[best] || (row[n] == row[best] && n < best))) {
                best = n;
            }
        }
        best = best < 0 ? search(row, N, seen) : best;
        value[m] = row[best], position[m] = best;
    }
}
