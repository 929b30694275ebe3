/* The policy of all calls that come from Python. */
#include "policy_in_use.h"

struct policy policy_in_use;
