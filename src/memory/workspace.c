/* Memory for packed matrices: fresh pages cost more than small products do. */
#include "workspace.h"

#include <stdatomic.h>
#include <stdlib.h>

enum {
    LINE = 64,
    SLOTS = 16,
    KEPT_BYTES = 32 << 20, /* in all */
};

/* A slot is taken out by exchanging it with NULL. The size stands before the memory itself. */
static _Atomic(char *) slots[SLOTS];
static _Atomic size_t kept;

static size_t *size_of(char *data)
{
    return (size_t *)(data - LINE);
}

static void release(char *data)
{
    if (data != NULL) {
        free(data - LINE);
    }
}

struct workspace workspace_take(size_t bytes)
{
    for (int i = 0; i < SLOTS; i++) {
        if (atomic_load_explicit(&slots[i], memory_order_relaxed) == NULL) {
            continue;
        }
        char *data = atomic_exchange(&slots[i], NULL);
        if (data == NULL) {
            continue;
        }
        atomic_fetch_sub(&kept, *size_of(data));
        if (*size_of(data) >= bytes) {
            return (struct workspace){data, *size_of(data)};
        }
        release(data); /* it has become too small: the new one takes its place */
        break;
    }
    const size_t rounded = (bytes + LINE - 1) / LINE * LINE;
    char *memory = rounded >= bytes ? aligned_alloc(LINE, rounded + LINE) : NULL;
    if (memory == NULL) {
        return (struct workspace){NULL, 0};
    }
    *size_of(memory + LINE) = rounded;
    return (struct workspace){memory + LINE, rounded};
}

void workspace_give_back(struct workspace workspace)
{
    char *data = workspace.data;
    if (data == NULL) {
        return;
    }
    if (atomic_fetch_add(&kept, workspace.bytes) + workspace.bytes > KEPT_BYTES) {
        atomic_fetch_sub(&kept, workspace.bytes);
        release(data);
        return;
    }
    for (int i = 0; i < SLOTS && data != NULL; i++) {
        char *expected = NULL;
        if (atomic_compare_exchange_strong(&slots[i], &expected, data)) {
            data = NULL;
        }
    }
    if (data != NULL) {
        atomic_fetch_sub(&kept, workspace.bytes);
        release(data);
    }
}
