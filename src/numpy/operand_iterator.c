#include "operand_iterator.h"

NpyIter *operand_iterator_new(const struct iterator_operands *operands, npy_uint32 flags,
                              npy_uint32 operand_flags, NPY_CASTING casting)
{
    PyArrayObject *array[MOST_OPERANDS + 1];
    PyArray_Descr *dtype[MOST_OPERANDS + 1];
    npy_uint32 of_operand[MOST_OPERANDS + 1];
    const npy_uint32 masked =
        operands->mask != NULL && (flags & NPY_ITER_BUFFERED) != 0 ? NPY_ITER_WRITEMASKED : 0;
    for (int op = 0; op < operands->operands; op++) {
        array[op] = operands->array[op];
        dtype[op] = operands->dtype[op];
        const npy_uint32 written = NPY_ITER_WRITEONLY | NPY_ITER_ALLOCATE | NPY_ITER_NO_SUBTYPE |
                                   NPY_ITER_NO_BROADCAST | masked;
        of_operand[op] = operand_flags | (op < operands->inputs ? NPY_ITER_READONLY : written);
    }
    const int count = operands->operands + (operands->mask != NULL);
    array[operands->operands] = operands->mask;
    dtype[operands->operands] = NULL;
    of_operand[operands->operands] =
        operand_flags | NPY_ITER_READONLY | (masked != 0 ? NPY_ITER_ARRAYMASK : 0);
    NpyIter *iterator = NpyIter_MultiNew(count, array, flags | NPY_ITER_EXTERNAL_LOOP,
                                         operands->order, casting, of_operand, dtype);
    PyErr_Clear();
    return iterator;
}
