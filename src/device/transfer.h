/* The threads of a product on a device: each copies pieces of the operands into its slots of the pinned
 * ring and pieces of the result out of them. */
#ifndef NUMC_TRANSFER_H
#define NUMC_TRANSFER_H

/* What every thread does, from the first piece to the last; `context` is the struct schedule. */
void transfer_share(void *context, int index);

#endif
