/* What the files of this folder share, and nobody else needs. */
#ifndef NUMC_REGION_H
#define NUMC_REGION_H

void region_initialize(void);

#endif
