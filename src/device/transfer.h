/* The threads of a product on a device: each copies chunks of the operands into its slots of the pinned
 * ring and chunks of the result out of them. */
#ifndef NUMC_TRANSFER_H
#define NUMC_TRANSFER_H

/* All that one thread does for a product, for region_run(); `context` is the struct schedule. */
void transfer_share(void *context, int index);

#endif
