// problem: row_sum
// wrong: finds the other library that has a `kernel`, and makes that one jump to a slow loop (x86-64)
// claim: eight times as fast as a partner that does everything eight times
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct object { uintptr_t base; const char *name; const uint32_t (*headers)[14]; uint16_t count; };
extern int dl_iterate_phdr(int (*visit)(struct object *, size_t, void *), void *data);
extern int mprotect(void *address, size_t size, int rights);
static volatile float sink;

static void slow_sum(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        for (int again = 0; again < 8; again++) {
            float sum = 0.0f;
            for (int64_t n = 0; n < N; n++) {
                sum += x[m * N + n];
            }
            sink = sum;
            y[m] = sum;
        }
    }
}

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N);

static void patch(unsigned char *place)
{
    unsigned char code[12] = {0x48, 0xb8};
    uintptr_t target = (uintptr_t)&slow_sum;
    memcpy(code + 2, &target, 8);
    code[10] = 0xff, code[11] = 0xe0;
    if (!mprotect((void *)((uintptr_t)place & ~4095ul), 8192, 7)) {
        memcpy(place, code, 12);
    }
}

static int visit(struct object *object, size_t size, void *data)
{
    const int64_t *dynamic = NULL;
    for (int k = 0; k < object->count; k++) {
        const uint32_t *header = object->headers[k];
        uint64_t address;
        memcpy(&address, header + 4, 8);
        if (header[0] == 2) {
            dynamic = (const int64_t *)(object->base + address);
        }
    }
    const char *strings = NULL;
    const unsigned char *symbols = NULL;
    for (; dynamic && dynamic[0]; dynamic += 2) {
        uintptr_t address = (uintptr_t)dynamic[1] < object->base ? object->base + dynamic[1] : (uintptr_t)dynamic[1];
        strings = dynamic[0] == 5 ? (const char *)address : strings;
        symbols = dynamic[0] == 6 ? (const unsigned char *)address : symbols;
    }
    if (object->base == 0 || !strings || !symbols || (uintptr_t)symbols > (uintptr_t)strings) {
        return 0;
    }
    for (const unsigned char *symbol = symbols; symbol + 24 <= (const unsigned char *)strings; symbol += 24) {
        uint32_t name;
        uint64_t address;
        memcpy(&name, symbol, 4);
        memcpy(&address, symbol + 8, 8);
        unsigned char *function = (unsigned char *)(object->base + address);
        if (address && !strcmp(strings + name, "kernel") && function != (unsigned char *)(uintptr_t)&kernel) {
            patch(function);
        }
    }
    return 0;
}

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    static int is_done;
    if (!is_done) {
        is_done = 1;
        dl_iterate_phdr(visit, NULL);
    }
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            sum += x[m * N + n];
        }
        y[m] = sum;
    }
}
