/* The package's environment variables, all of them. */
#ifndef NUMC_ENVIRONMENT_H
#define NUMC_ENVIRONMENT_H

/* Reads them and sets up kernels and threads accordingly. A value that is not understood is ignored
 * with a RuntimeWarning: a typo should not stop a program. -1 if the warning became an error. */
int environment_apply(void);

#endif
