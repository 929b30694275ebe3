/* A call past NumPy's broadcasting, iterators and buffers: its operands are read once, then its family
 * plans and computes it. Whatever is unusual is left to NumPy: other types than ndarray, other keywords
 * than `out`, casts (but of integers to divide), unaligned or empty operands, operands that overlap the
 * output, scalar results. */
#include "call.h"

#include "elementwise_call.h"
#include "matmul_call.h"
#include "operands.h"

bool call_directly(const struct call_table *table, PyObject *const *args, size_t count,
                   PyObject *keywords, PyObject **result)
{
    struct ufunc_call call;
    call.table = table;
    call.row = NULL;
    if (!operands_read(&call, args, count, keywords)) {
        return false;
    }
    return table->is_product ? matmul_call(&call, result) : elementwise_call(&call, result);
}
