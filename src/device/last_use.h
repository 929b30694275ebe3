/* Where managed memory was used last, as far as we know: hints for where to compute next. What nobody has
 * told of is taken to be with the processor. */
#ifndef NUMC_LAST_USE_H
#define NUMC_LAST_USE_H

#include <stdbool.h>
#include <stddef.h>

enum { LAST_USE_PROCESSOR, LAST_USE_DEVICE /* + its number */ };

/* Whether all of [first, end) is there. */
bool last_use_is(const char *first, const char *end, int place);
void last_use_note(const char *first, const char *end, int place);

/* All of it: another device takes the place of the first. */
void last_use_forget(void);

/* Whether a call may move operands to the device now. Not for a while after programs have been found to use
 * on the processor what was moved; longer each time. */
bool last_use_may_move(void);

/* What a call took that moved nothing. False if its operands were not where they were taken to be: the
 * processor has used them meanwhile. */
bool last_use_was_right(size_t bytes, double seconds);

#endif
