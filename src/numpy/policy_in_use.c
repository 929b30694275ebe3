/* The policy of all calls that come from Python. */
#include "policy_in_use.h"

struct policy policy_in_use;

void policy_force_threads(ptrdiff_t elements)
{
    const bool forced = elements != 0;
    policy_in_use = (struct policy){elements, forced, forced};
}
