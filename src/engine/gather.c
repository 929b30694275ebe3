#include "gather.h"

#include <stdbool.h>
#include <string.h>

enum { LINE_BYTES = 64 };

static size_t whole_lines(size_t bytes)
{
    return (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
}

static bool is_contiguous(const struct conversion *conversion, const struct axes *axes)
{
    return axes->count == 1 && axes->axis[0].step == (ptrdiff_t)conversion->from_size;
}

size_t gather_bytes(const struct conversion *conversion, ptrdiff_t n)
{
    return whole_lines((size_t)n * conversion->from_size) +
           (conversion->convert != NULL ? whole_lines((size_t)n * conversion->to_size) : 0);
}

/* `size` is a constant where it is inlined. */
static inline __attribute__((always_inline)) void
copy_items(char *to, const char *from, ptrdiff_t step, ptrdiff_t n, size_t size)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        memcpy(to, from, size);
        to += size;
        from += step;
    }
}

static void copy_strided(char *to, const char *from, ptrdiff_t step, ptrdiff_t n, size_t size)
{
    if (step == (ptrdiff_t)size) {
        memcpy(to, from, (size_t)n * size);
        return;
    }
    switch (size) {
    case 1:
        copy_items(to, from, step, n, 1);
        break;
    case 2:
        copy_items(to, from, step, n, 2);
        break;
    case 4:
        copy_items(to, from, step, n, 4);
        break;
    case 8:
        copy_items(to, from, step, n, 8);
        break;
    default:
        copy_items(to, from, step, n, 16);
    }
}

static void copy_axes(char *to, const char *from, const struct axes *axes, int count, size_t size)
{
    const struct axis axis = axes->axis[count - 1];
    if (count == 1) {
        copy_strided(to, from, axis.step, axis.n, size);
        return;
    }
    ptrdiff_t bytes = (ptrdiff_t)size;
    for (int i = 0; i < count - 1; i++) {
        bytes *= axes->axis[i].n;
    }
    for (ptrdiff_t i = 0; i < axis.n; i++) {
        copy_axes(to + i * bytes, from + i * axis.step, axes, count - 1, size);
    }
}

const char *gather(const struct conversion *conversion, const struct axes *axes, const char *data,
                   ptrdiff_t n, char *scratch)
{
    if (!is_contiguous(conversion, axes)) {
        copy_axes(scratch, data, axes, axes->count, conversion->from_size);
        data = scratch;
    }
    if (conversion->convert == NULL) {
        return data;
    }
    char *to = scratch + whole_lines((size_t)n * conversion->from_size);
    conversion->convert(data, to, n, false);
    return to;
}
