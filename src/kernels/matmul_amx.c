/* Large products of integers on AMX, which multiplies 16 rows of 64 bytes by 16 columns at a time. The
 * bytes of an element are its limbs; products of limbs count whose place lies within the element. */
#include "matmul_kernels.h"

#include "vector.h"

#include "matmul_transpose.h"

#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    ROWS = 32, /* of a tile, two of the processor's */
    GROUP_K = 64,
    TILE_ROW_BYTES = 64, /* from here on the processor's */
    TILE_ROWS = 16,
    TILE_BYTES = TILE_ROWS * TILE_ROW_BYTES,
    /* Sums are added to c once for each panel; both panels come from the second level of cache. */
    PANEL_BYTES = 32 << 10,
};

/* Four of sums, of which a chain of additions each can be under way, two of a and two of b. */
static const struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tiles = {
    .palette = 1,
    .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
    .rows = {16, 16, 16, 16, 16, 16, 16, 16},
};

static void load_tiles(void)
{
    _tile_loadconfig(&tiles);
}

static void release_tiles(void)
{
    _tile_release();
}

INLINE void zero_sums(void)
{
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
}

/* Adds products of 32 rows of a, 64 bytes of k in each, with two times 16 columns of b, four bytes of k
 * in each word of a row. There may be no first columns. */
INLINE void multiply(const char *a, const char *first, const char *second, ptrdiff_t b_row)
{
    _tile_loadd(4, a, TILE_ROW_BYTES);
    _tile_loadd(5, a + TILE_BYTES, TILE_ROW_BYTES);
    if (first != NULL) {
        _tile_loadd(6, first, b_row);
        _tile_dpbuud(0, 4, 6);
        _tile_dpbuud(1, 5, 6);
    }
    _tile_loadd(7, second, b_row);
    _tile_dpbuud(2, 4, 7);
    _tile_dpbuud(3, 5, 7);
}

INLINE void store_sums(uint32_t first[ROWS][TILE_ROWS], uint32_t second[ROWS][TILE_ROWS])
{
    _tile_stored(0, first[0], TILE_ROW_BYTES);
    _tile_stored(1, first[TILE_ROWS], TILE_ROW_BYTES);
    _tile_stored(2, second[0], TILE_ROW_BYTES);
    _tile_stored(3, second[TILE_ROWS], TILE_ROW_BYTES);
}

#define DTYPE uint8
#define ELEMENT uint8_t
#define LIMBS 1
#include "matmul_limbs.h"

#define DTYPE uint16
#define ELEMENT uint16_t
#define LIMBS 2
#include "matmul_limbs.h"

#define DTYPE uint32
#define ELEMENT uint32_t
#define LIMBS 4
#include "matmul_limbs.h"

#define DTYPE uint64
#define ELEMENT uint64_t
#define LIMBS 8
#include "matmul_limbs.h"

static const struct matmul_kernel *const all_rows[] = {
    &matmul_uint8, &matmul_uint16, &matmul_uint32, &matmul_uint64, NULL,
};

/* A process has to ask Linux for the registers, 8 KiB of every thread that uses them. */
static bool ask_for_tiles(void)
{
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}

const struct matmul_kernels JOIN(matmul, ISA) = {
    .rows = all_rows, .only_large = true, .prepare = ask_for_tiles};
