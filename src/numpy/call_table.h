/* Which dtypes a call may have that needs none of NumPy's machinery, and what computes them. */
#ifndef NUMC_CALL_TABLE_H
#define NUMC_CALL_TABLE_H

#include "dtypes.h"
#include "elementwise_loop.h"
#include "matmul_loop.h"

enum { CALL_TYPES = DTYPES, CALL_MOST_INPUTS = 3, CALL_MOST_OPERANDS = CALL_MOST_INPUTS + 1 };

/* What inputs are, for what NumPy computes them in: type numbers of arrays and of NumPy's scalars; */
enum {
    INPUT_PYTHON_FLOAT = CALL_TYPES, /* Python's numbers, which adapt to the others */
    INPUT_PYTHON_INT,
    INPUT_KINDS,
};

/* What a ufunc of one output does with inputs that are all of one dtype. */
struct call_table {
    PyObject *ufunc; /* borrowed: the table is a part of it */
    const char *name;
    int inputs;
    bool is_product; /* and if so, which: */
    enum gufunc gufunc;
    struct call_row {
        struct loop *loop;               /* of an element-wise ufunc */
        PyUFuncGenericFunction function; /* of a product: what is registered with NumPy */
        void *data;
        PyArray_Descr *input, *output; /* NULL: NumPy's path */
        bool converts;                 /* NumPy, which has no loop for it, would cast the inputs */
    } row[CALL_TYPES];                 /* by the inputs' type number */
    struct loop *converting;           /* those of rows that convert; NULL: there are none */
    /* Rows of inputs of several dtypes, by their kinds, as far as NumPy was asked; see
     * call_table_mixed(). */
    signed char (*mixed)[INPUT_KINDS];
};

/* Fills the table of `ufunc`: from its loops, or, if it is one of ours, as a product. -1 with an
 * exception. */
int call_table_initialize(struct call_table *table, PyUFuncObject *ufunc, struct loop *loops);
/* The row for inputs of these kinds, which NumPy casts to that row's dtype; NULL where there is none. */
const struct call_row *call_table_mixed(struct call_table *table, const int kinds[]);
void call_table_release(struct call_table *table);

#endif
