#include "policy_in_use.h"

struct policy policy_in_use;
