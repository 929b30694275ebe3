/* The arguments of a call whose inner loop NumPy has to be asked for. */
#ifndef NUMC_RESOLVED_ARGUMENTS_H
#define NUMC_RESOLVED_ARGUMENTS_H

#include "call_table.h"

struct resolved_arguments {
    const struct call_table *table;
    bool fits_buffer; /* NumPy's: there are no keywords but `out` and `dtype` then */
    PyObject *const *input;
    int kind[MOST_OPERANDS];               /* of each input */
    PyArrayObject *out[MOST_OPERANDS];     /* by operand; NULL: to be made */
    PyArrayObject *mask;                   /* NULL: there is none */
    PyObject *dtype, *signature, *casting; /* NULL: not given, or the default */
    NPY_CASTING casting_rule;
    NPY_ORDER order;
};

/* Called once, at import. -1 with an exception. */
int resolved_arguments_initialize(void);

/* Both are false if NumPy has to read them, since they are unusual or wrong; keywords of short calls other than `out`
 * and `dtype` are. First the inputs, of which none is missing, and what is to be known of a short call: */
bool resolved_arguments_read_inputs(struct resolved_arguments *arguments,
                                    const struct call_table *table, PyObject *const *args,
                                    Py_ssize_t positional, PyObject *keywords);
bool resolved_arguments_read_others(struct resolved_arguments *arguments, PyObject *const *args,
                                    size_t count, PyObject *keywords);

#endif
