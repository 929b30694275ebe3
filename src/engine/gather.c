#include "gather.h"

#include "kernels/copy/copy_items.h"
#include "kernels/sizes.h"
#include "reduction_cutoffs.h"

/* Rows of fewer items are copied across: the first item of each row, then the second. By `python
 * benchmarks/random_calls.py`: a row of its own is one call of memcpy(), or of a conversion. */
enum { SHORT_ROW = 10, SHORT_CONVERTED_ROW = 17 };

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

/* Short rows, `next` bytes apart, to contiguous items. */
static void copy_short_rows(size_t size, struct axis row, ptrdiff_t next, ptrdiff_t rows,
                            const char *from, char *to)
{
    for (ptrdiff_t i = 0; i < row.n; i++) {
        copy_items(size, to + i * (ptrdiff_t)size, row.n * (ptrdiff_t)size, from + i * row.step,
                   next, rows);
    }
}

/* In pieces, which stay in the first-level cache until their last column is copied. */
static void gather_short_rows(const struct conversion *conversion, struct axis row,
                              struct axis rows, const char *from, char *to)
{
    const ptrdiff_t size = (ptrdiff_t)conversion->from_size;
    const ptrdiff_t to_row = row.n * (ptrdiff_t)conversion->to_size;
    _Alignas(LINE_BYTES) char piece[REDUCTION_PIECE_BYTES];
    for (ptrdiff_t done = 0, count; done < rows.n; done += count) {
        const char *const first = from + done * rows.step;
        count = size_min(rows.n - done, REDUCTION_PIECE_BYTES / (row.n * size));
        if (conversion->convert == NULL) {
            copy_short_rows(conversion->from_size, row, rows.step, count, first,
                            to + done * to_row);
        } else {
            copy_short_rows(conversion->from_size, row, rows.step, count, first, piece);
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
    if (count == 2 &&
        axes->axis[0].n < (conversion->convert != NULL ? SHORT_CONVERTED_ROW : SHORT_ROW)) {
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
