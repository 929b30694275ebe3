/* Which dtypes a call may have that needs none of NumPy's machinery, and what computes them. */
#ifndef NUMC_CALL_TABLE_H
#define NUMC_CALL_TABLE_H

#include "dtypes.h"
#include "elementwise_loop.h"
#include "matmul_loop.h"
#include "refused_calls.h"

#include <stdatomic.h>
#include <stdint.h>

enum { CALL_TYPES = DTYPES, CALL_MOST_INPUTS = 3, CALL_MOST_OPERANDS = CALL_MOST_INPUTS + 1 };

/* What inputs are, for what NumPy computes them in: type numbers of arrays and of NumPy's scalars; */
enum {
    INPUT_PYTHON_FLOAT = CALL_TYPES, /* Python's numbers, which adapt to the others */
    INPUT_PYTHON_INT,
    INPUT_PYTHON_COMPLEX,
    INPUT_KINDS,
};

/* What computes the calls of a ufunc. */
struct call_table {
    PyObject *ufunc;          /* borrowed: the table is a part of it, and so is: */
    const char *name, *types; /* of its inner loops, one row each */
    struct loop *loop;        /* by row; not those that threads may not run */
    int inputs, operands, loops;
    bool warns_of_third; /* NumPy, of an output that is no keyword */
    bool is_stack;       /* a generalized ufunc that is none of: */
    bool is_product;     /* and if so, which: */
    enum gufunc gufunc;
    int device_op; /* the kernel of devices, an enum elementwise_op; -1: there is none */
    struct call_row {
        struct loop *loop;               /* of an element-wise ufunc */
        PyUFuncGenericFunction function; /* of a product: what is registered with NumPy */
        void *data;
        PyArray_Descr *input, *output; /* NULL: NumPy's path */
        PyArray_Descr *second;         /* of the second input, if it is not that of the first */
        bool converts;                 /* NumPy, which has no loop for it, would cast the inputs */
    } row[CALL_TYPES];      /* by the type number of inputs of one dtype; of one output */
    struct call_row *mixed; /* of loops whose two inputs have different dtypes, as of ldexp() */
    int mixed_rows;
    struct loop *converting; /* those of rows that convert; NULL: there are none */
    /* Loops by kinds of inputs, as far as NumPy was asked. */
    _Atomic signed char known[INPUT_KINDS][INPUT_KINDS];
    /* What short calls gain, by the same; see resolved_call.c. */
    _Atomic unsigned char few[INPUT_KINDS][INPUT_KINDS];
    _Atomic uint32_t latest_few;      /* with `dtype=` */
    _Atomic uint32_t latest_question; /* with `dtype=` or `casting=`, see there */
    struct refused_calls refused;
};

/* Fills the table of `ufunc`: from its loops, or, if it is one of ours, as a product. -1 with an
 * exception. */
int call_table_initialize(struct call_table *table, PyUFuncObject *ufunc, struct loop *loops);
/* The inner loop, a row of the type table, that NumPy would run for inputs of these kinds, and, unless they
 * are NULL, the call's `dtype=`, `signature=` and `casting=`, which is `rule`; -1 where threads may not run it, or
 * where NumPy raises. */
int call_table_loop(struct call_table *table, const int kinds[], PyObject *dtype,
                    PyObject *signature, PyObject *casting, NPY_CASTING rule);
/* That of an inner loop, a row of the type table; NULL if there is none. */
const struct call_row *call_table_row(const struct call_table *table, int loop);
static inline PyArray_Descr *call_row_input(const struct call_row *row, int input)
{
    return input == 1 && row->second != NULL ? row->second : row->input;
}
void call_table_release(struct call_table *table);

#endif
