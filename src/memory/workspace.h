/* Memory for packed matrices, kept between calls. */
#ifndef NUMC_WORKSPACE_H
#define NUMC_WORKSPACE_H

#include <stddef.h>

/* Memory aligned to cache lines, kept for the next call where it is not large. NULL if there is none. */
struct workspace {
    char *data;
    size_t bytes;
};
struct workspace workspace_take(size_t bytes);
void workspace_give_back(struct workspace workspace);

#endif
