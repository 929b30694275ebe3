/* Options of calls: those of the process (set_config), and those of open blocks (config), which a
 * context variable holds. */
#ifndef NUMC_OPTIONS_H
#define NUMC_OPTIONS_H

#include "numpy_api.h"

#include <stdatomic.h>
#include <stdbool.h>

enum {
    OFFLOAD_AUTO = 1, /* options.device */
    OFFLOAD_CPU = 2,
    OFFLOAD_DEVICE = 3, /* + its number, see devices.h */
};

enum {
    MEMORY_SYSTEM = 1, /* options.memory */
    MEMORY_CACHED = 2,
    MEMORY_PINNED = 3, /* this one and the next: of a device */
    MEMORY_MANAGED = 4,
};

struct options {
    int threads, device, precision, kernel, memory; /* 0: not set */
};

/* Called once, at import. -1 with an exception. */
int options_initialize(void);

/* The Python functions behind config and set_config. */
int options_add_functions(PyObject *module);

/* Whether the process names a device for its calls; blocks may, too. */
extern _Atomic bool options_name_device;

/* How many blocks are open, in whatever thread: only then is the context variable read. */
extern _Atomic int options_open_blocks;

/* Makes the options of the current context those of this thread, for code that does not hold the GIL,
 * until options_leave() restores what it saw before: calls may nest. */
struct options_scope {
    bool entered, was_shown;
    struct options before;
};
void options_show(struct options_scope *scope);
void options_restore(const struct options_scope *scope);

static inline bool options_in_blocks(void)
{
    return atomic_load_explicit(&options_open_blocks, memory_order_relaxed) != 0;
}

static inline void options_enter(struct options_scope *scope)
{
    scope->entered = options_in_blocks();
    if (scope->entered) {
        options_show(scope);
    }
}

static inline void options_leave(const struct options_scope *scope)
{
    if (scope->entered) {
        options_restore(scope);
    }
}

/* The same for an inner loop, with or without the GIL: NumPy calls some by ways of its own. */
void options_enter_loop(struct options_scope *scope);

/* Whether a block of this context patches it: a ufunc, or the name of a function. */
bool options_patch(PyObject *what);

/* Whether it is patched here: in the whole process, which the flag says, or by a block. */
static inline bool options_is_patched(_Atomic bool *everywhere, PyObject *what)
{
    return atomic_load_explicit(everywhere, memory_order_relaxed) ||
           (options_in_blocks() && options_patch(what));
}

/* All but threads, of a call of this thread: none is unset. */
struct options options_in_effect(void);

#endif
