#include "gather.h"

#include "kernels/copy/copy_items.h"
#include "kernels/copy/tile_pack.h"
#include "kernels/sizes.h"
#include "reduction_cutoffs.h"

/* Longer rows are copied or converted one by one. */
enum { SHORT_ROW_BYTES = 256 };

bool axes_join(struct axes *axes, struct axis next)
{
    struct axis *last = axes->count > 0 ? &axes->axis[axes->count - 1] : NULL;
    if (next.n == 1) {
        return true;
    }
    if (last != NULL && last->step * last->n == next.step &&
        last->out_step * last->n == next.out_step) {
        last->n *= next.n;
        return true;
    }
    if (axes->count == MOST_AXES) {
        return false;
    }
    axes->axis[axes->count++] = next;
    return true;
}

void axes_append(struct axes *to, const struct axes *from)
{
    memcpy(to->axis + to->count, from->axis, (size_t)from->count * sizeof *from->axis);
    to->count += from->count;
}

static void copy_slower(size_t size, const struct axes *axes, int count, const char *from, char *to)
{
    if (count <= 1) {
        const struct axis axis = fastest(axes);
        copy_items(size, to, axis.out_step, from, axis.step, axis.n);
        return;
    }
    const struct axis axis = axes->axis[count - 1];
    for (ptrdiff_t i = 0; i < axis.n; i++) {
        copy_slower(size, axes, count - 1, from + i * axis.step, to + i * axis.out_step);
    }
}

void copy_along(size_t size, const struct axes *axes, const char *from, char *to)
{
    copy_slower(size, axes, axes->count, from, to);
}

static size_t whole_lines(size_t bytes)
{
    return (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
}

size_t gather_bytes(const struct conversion *conversion, ptrdiff_t n)
{
    return whole_lines((size_t)n * conversion->to_size);
}

/* A conversion of so few items takes longer than to pack them: by `python benchmarks/random_calls.py`. In pieces, which
 * stay in the first-level cache. */
static void gather_short_rows(const struct conversion *conversion, struct axis row,
                              struct axis rows, const char *from, char *to)
{
    const ptrdiff_t size = (ptrdiff_t)conversion->from_size;
    const ptrdiff_t to_row = row.n * (ptrdiff_t)conversion->to_size;
    _Alignas(LINE_BYTES) char piece[REDUCTION_PIECE_BYTES];
    for (ptrdiff_t done = 0, count; done < rows.n; done += count) {
        const char *const first = from + done * rows.step;
        count = size_min(rows.n - done, REDUCTION_PIECE_BYTES / (row.n * size));
        const struct tile tile = {first, count, row.n, rows.step, row.step};
        if (conversion->convert == NULL) {
            tile_pack(conversion->from_size, &tile, to + done * to_row);
        } else {
            tile_pack(conversion->from_size, &tile, piece);
            conversion->convert(piece, size, to + done * to_row, count * row.n, false);
        }
    }
}

static void gather_from(const struct conversion *conversion, const struct axes *axes, int count,
                        const char *from, char *to)
{
    const struct axis axis = axes->axis[count - 1];
    if (count == 1 && conversion->convert != NULL) {
        conversion->convert(from, axis.step, to, axis.n, false);
        return;
    }
    if (count == 1) {
        copy_items(conversion->to_size, to, (ptrdiff_t)conversion->to_size, from, axis.step,
                   axis.n);
        return;
    }
    if (count == 2 && axes->axis[0].n * (ptrdiff_t)conversion->from_size <= SHORT_ROW_BYTES) {
        gather_short_rows(conversion, axes->axis[0], axis, from, to);
        return;
    }
    ptrdiff_t bytes = (ptrdiff_t)conversion->to_size;
    for (int i = 0; i < count - 1; i++) {
        bytes *= axes->axis[i].n;
    }
    for (ptrdiff_t i = 0; i < axis.n; i++) {
        gather_from(conversion, axes, count - 1, from + i * axis.step, to + i * bytes);
    }
}

const char *gather(const struct conversion *conversion, const struct axes *axes, const char *data,
                   char *scratch)
{
    gather_from(conversion, axes, axes->count, data, scratch);
    return scratch;
}
