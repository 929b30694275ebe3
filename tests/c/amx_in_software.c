/* The kernel of AMX for the dtype of SOURCE on tiles in memory: for processors that have none. */
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { TILES = 8, ROWS_OF_TILE = 16, BYTES_OF_ROW = 64 };

static uint8_t tile_of[TILES][ROWS_OF_TILE][BYTES_OF_ROW];

static void forget_tiles(void)
{
    memset(tile_of, 0x5a, sizeof tile_of);
}

static void load_tile(int tile, const void *from, ptrdiff_t row)
{
    for (int i = 0; i < ROWS_OF_TILE; i++) {
        memcpy(tile_of[tile][i], (const char *)from + i * row, BYTES_OF_ROW);
    }
}

static void store_tile(int tile, void *to, ptrdiff_t row)
{
    for (int i = 0; i < ROWS_OF_TILE; i++) {
        memcpy((char *)to + i * row, tile_of[tile][i], BYTES_OF_ROW);
    }
}

/* Adds, for each word of the sums, products of unsigned bytes, four to a word of either factor. */
static void multiply_tiles(int sums, int a, int b)
{
    for (int i = 0; i < ROWS_OF_TILE; i++) {
        for (int j = 0; j < BYTES_OF_ROW; j += 4) {
            uint32_t sum;
            memcpy(&sum, &tile_of[sums][i][j], sizeof sum);
            for (int k = 0; k < BYTES_OF_ROW; k++) {
                sum += (uint32_t)tile_of[a][i][k] * tile_of[b][k / 4][j + k % 4];
            }
            memcpy(&tile_of[sums][i][j], &sum, sizeof sum);
        }
    }
}

#undef _tile_loadd
#undef _tile_stored
#undef _tile_zero
#undef _tile_dpbuud
#define _tile_loadconfig(config) ((void)(config), forget_tiles())
#define _tile_release() forget_tiles()
#define _tile_zero(tile) memset(tile_of[tile], 0, sizeof tile_of[tile])
#define _tile_loadd(tile, from, row) load_tile(tile, from, row)
#define _tile_stored(tile, to, row) store_tile(tile, to, row)
#define _tile_dpbuud(sums, a, b) multiply_tiles(sums, a, b)

#include SOURCE
