/* A stack of sums of contiguous k, modulo 2^n, part of integer_template.h. Compilers finish such sums element by
 * element, most of what short ones take. Here the last vector overlaps the one before, without what was added
 * already. */
#if !defined(SCALAR_DOTS)

typedef short_lane dot_lanes __attribute__((vector_size(VECTOR_BYTES)));
_Static_assert(sizeof(dot_lanes) <= DOTS_FROM_BYTES, "the last vector begins before the first");

INLINE dot_lanes load_dot_lanes(const char *from)
{
    dot_lanes lanes;
    memcpy(&lanes, from, sizeof lanes);
    return lanes;
}

/* Lanes of 16 bits hold two bytes: the products of both, of which the lower half counts. */
INLINE dot_lanes add_dot_lanes(dot_lanes sum, dot_lanes a, dot_lanes b)
{
    return sizeof(element) == 1 ? sum + a * b + (a >> 8) * (b >> 8) : sum + a * b;
}

INLINE element total_of_dot_lanes(dot_lanes sum)
{
    typedef short_lane quarter __attribute__((vector_size(8)));
    quarter part[VECTOR_BYTES / 8];
    memcpy(part, &sum, sizeof sum);
    for (int parts = VECTOR_BYTES / 16; parts > 0; parts /= 2) {
        for (int i = 0; i < parts; i++) {
            part[i] += part[i + parts];
        }
    }
    const uint64_t lowest = (uint64_t)part[0];
    /* Carries leave the lowest lane, but none reaches it. */
    switch (sizeof(short_lane)) {
    case 2:
        return (element)(lowest + (lowest >> 16) + (lowest >> 32) + (lowest >> 48));
    case 4:
        return (element)(lowest + (lowest >> 32));
    default:
        return (element)lowest;
    }
}

static void stack_of_dots(const struct product *x)
{
    const ptrdiff_t bytes = x->k * (ptrdiff_t)sizeof(element);
    const ptrdiff_t left = bytes % VECTOR_BYTES, whole = bytes - left;
    char is_left[VECTOR_BYTES] = {0};
    memset(is_left + VECTOR_BYTES - left, -1, (size_t)left);
    const dot_lanes mask = load_dot_lanes(is_left);
    const char *a = x->a.data, *b = x->b.data;
    char *c = x->c.data;
    for (ptrdiff_t i = 0; i < x->batch; i++) {
        dot_lanes sum = {0};
        for (ptrdiff_t at = 0; at < whole; at += VECTOR_BYTES) {
            sum = add_dot_lanes(sum, load_dot_lanes(a + at), load_dot_lanes(b + at));
        }
        if (left != 0) {
            const ptrdiff_t at = bytes - VECTOR_BYTES;
            sum = add_dot_lanes(sum, load_dot_lanes(a + at) & mask, load_dot_lanes(b + at));
        }
        *(element *)c = total_of_dot_lanes(sum);
        a += x->a.batch_step;
        b += x->b.batch_step;
        c += x->c.batch_step;
    }
}
#endif
