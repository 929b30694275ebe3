/* The policy of all calls that come from Python. */
#ifndef NUMC_POLICY_IN_USE_H
#define NUMC_POLICY_IN_USE_H

#include "threads/policy.h"

/* Changed by tests only, while no call runs. */
extern struct policy policy_in_use;

#endif
