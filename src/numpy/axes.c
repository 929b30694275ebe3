/* The order of axes in which NumPy's iterator goes through them. */
#include "axes.h"

#include <string.h>

void axes_sort(int axes, int order[], axes_turn *turn, const void *context)
{
    for (int i = 0; i < axes; i++) {
        const int axis = axes - 1 - i;
        int place = i;
        for (int k = i - 1; k >= 0; k--) {
            const int turned = turn(context, axis, order[k]);
            if (turned < 0) {
                break;
            }
            place = turned > 0 ? k : place;
        }
        memmove(order + place + 1, order + place, (size_t)(i - place) * sizeof *order);
        order[place] = axis;
    }
}
