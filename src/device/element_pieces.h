/* Element-wise work in pieces that fit the slots of the pinned ring. */
#ifndef NUMC_ELEMENT_PIECES_H
#define NUMC_ELEMENT_PIECES_H

#include "device.h"

/* Ranges of one axis, each with all axes that are further in, one after the other. */
struct element_pieces {
    const struct elementwise_work *work;
    int axis;
    ptrdiff_t range;  /* elements of that axis in a piece */
    ptrdiff_t ranges; /* of it */
    ptrdiff_t count;  /* of pieces */
};

static inline ptrdiff_t elementwise_count(const struct elementwise_work *work)
{
    ptrdiff_t n = 1;
    for (int i = 0; i < work->axes; i++) {
        n *= work->axis[i].n;
    }
    return n;
}

/* `work` is at addresses of the host; pieces have about so many bytes of the output, if slots have room for
 * that. */
void element_pieces_make(struct element_pieces *pieces, const struct elementwise_work *work,
                         ptrdiff_t bytes);
void element_pieces_get(const struct element_pieces *pieces, ptrdiff_t index,
                        struct elementwise_work *work);

/* Copies the elements of an operand to a slot, without gaps and each once; the other way. */
void element_piece_pack(const struct elementwise_work *piece, int operand, char *slot);
void element_piece_unpack(const struct elementwise_work *piece, const char *slot);

/* Lets an operand lie in a slot, as element_piece_pack() puts it there. */
void element_piece_place(struct elementwise_work *work, int operand, const char *slot);

/* Makes one axis of two wherever that is the same. */
void element_axes_join(struct elementwise_work *work);

#endif
