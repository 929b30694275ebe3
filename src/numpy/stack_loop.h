/* The loops of generalized ufuncs over stacks of items, each with core dimensions. */
#ifndef NUMC_STACK_LOOP_H
#define NUMC_STACK_LOOP_H

#include "numpy_api.h"

#include "engine/stack.h"

#include <stdbool.h>

enum { STACK_MOST_OPERANDS = 16, STACK_MOST_DIMENSIONS = 32 };

struct stack_loop {
    PyUFuncGenericFunction function; /* NumPy's, or another package's */
    void *function_data;
    const PyUFuncObject *ufunc; /* whose core dimensions it has */
    ptrdiff_t item_size[STACK_MOST_OPERANDS];
    const char *linalg;  /* the ufunc that has kernels; NULL: this one has none */
    bool in_place;       /* its first operand is written, too, in each item as NumPy's loop does */
    char kind;           /* of its first operand's dtype */
    PyObject *serial_if; /* called before threads run it, unless NULL */
    struct stack_speed speed;
};

/* Prepares `loop` for one row of the type table of a generalized ufunc, which must outlive it. False if the
 * row should stay as it is: a loop over Python objects. */
bool stack_loop_initialize(struct stack_loop *loop, const PyUFuncObject *ufunc, int row,
                           PyObject *serial_if);

/* How many calls of this thread kernels computed. */
unsigned long long stack_loop_kernel_calls(void);

/* The function to register, with a struct stack_loop as its data. */
void stack_loop_run(char **args, const npy_intp *dimensions, const npy_intp *steps, void *data);

#endif
