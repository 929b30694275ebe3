/* DLPack capsules of arrays that a GPU sees, too. */
#ifndef NUMC_DLPACK_H
#define NUMC_DLPACK_H

#include "numpy_api.h"

int dlpack_add_functions(PyObject *module);

#endif
