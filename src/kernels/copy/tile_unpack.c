/* Copies contiguous elements to a strided tile, and looks for infinities and NaNs. */
#include "tile_pack.h"
#include "tile_unpack.h"

#include <stdint.h>
#include <string.h>

/* Inlined with a constant size, so that each memcpy becomes one load or store. */
static inline __attribute__((always_inline)) void
unpack_elements(size_t size, const struct tile *tile, const char *from, char *to)
{
    for (ptrdiff_t r = 0; r < tile->rows; r++) {
        for (ptrdiff_t c = 0; c < tile->columns; c++) {
            memcpy(to + r * tile->row_step + c * tile->column_step, from, size);
            from += size;
        }
    }
}

void tile_unpack(size_t item_size, const struct tile *tile, char *to)
{
    if (tile->column_step == (ptrdiff_t)item_size) {
        const size_t row_bytes = item_size * (size_t)tile->columns;
        for (ptrdiff_t r = 0; r < tile->rows; r++) {
            memcpy(to + r * tile->row_step, tile->data + (size_t)r * row_bytes, row_bytes);
        }
        return;
    }
    switch (item_size) {
    case 1:
        unpack_elements(1, tile, tile->data, to);
        break;
    case 2:
        unpack_elements(2, tile, tile->data, to);
        break;
    case 4:
        unpack_elements(4, tile, tile->data, to);
        break;
    case 8:
        unpack_elements(8, tile, tile->data, to);
        break;
    default:
        unpack_elements(item_size, tile, tile->data, to);
    }
}

/* An exponent of ones, and nothing else, carries into the sign when its lowest bit is added. */
#define DEFINE_FINITE(bits, exponent)                                                              \
    static bool finite##bits(const char *data, ptrdiff_t n)                                        \
    {                                                                                              \
        typedef uint##bits##_t word;                                                               \
        const word mask = (word)(exponent), lowest = (word)(mask & (word)-mask);                   \
        word carries = 0;                                                                          \
        for (ptrdiff_t i = 0; i < n; i++) {                                                        \
            word value;                                                                            \
            memcpy(&value, data + i * (ptrdiff_t)sizeof value, sizeof value);                      \
            carries |= (word)((value & mask) + lowest);                                            \
        }                                                                                          \
        return carries >> (bits - 1) == 0;                                                         \
    }

DEFINE_FINITE(16, 0x7C00)
DEFINE_FINITE(32, 0x7F800000)
DEFINE_FINITE(64, 0x7FF0000000000000)

bool floats_are_finite(size_t size, const char *data, ptrdiff_t n)
{
    return size == 2 ? finite16(data, n) : size == 4 ? finite32(data, n) : finite64(data, n);
}
