/* SPDX-License-Identifier: MIT */
/* include/ftr/ftr.h: what handlers ask of their call. */
#include "../rethook/hook.h"
#include <errno.h>

#define EXPORTED __attribute__((visibility("default")))
#define WORDS	 "iiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiii"

EXPORTED const struct ftr_function *ftr_call_function(const struct ftr_call *call)
{
	const struct hook_point *point = (const struct hook_point *)call->frame.info->point;

	return &point->function;
}

EXPORTED const void *ftr_call_caller(const struct ftr_call *call)
{
	if (call->state.returning) {
		hook_unfold((struct ftr_call *)call);
		return (const void *)call->ret;
	}
	return (const void *)(arch_slot_in_memory ? *(const uint64_t *)call->frame.slot
						  : call->frame.ret);
}

EXPORTED uint64_t *ftr_call_word(struct ftr_call *call)
{
	hook_unfold(call);
	if (!call->word) {
		call->scratch = 0;
		call->word = &call->scratch;
	}
	return call->word;
}

EXPORTED unsigned ftr_call_depth(const struct ftr_call *call)
{
	return hook_depth(call);
}

EXPORTED void *ftr_argument(struct ftr_call *call, const char *types, unsigned n)
{
	return types ? arch_call_argument(call, arch_isa->argument(types, n)) : NULL;
}

EXPORTED uint64_t ftr_argument_word(struct ftr_call *call, unsigned n)
{
	const uint64_t *place = n < sizeof(WORDS) - 1 ? ftr_argument(call, WORDS, n) : NULL;

	return place ? *place : 0;
}

/* From here on results are apart from arguments, which may use the same registers. */
static void answer(struct ftr_call *call)
{
	if (call->state.returning || call->state.answered)
		return;
	memset(&call->result, 0, sizeof(call->result));
	call->state.answered = true;
}

EXPORTED void *ftr_result(struct ftr_call *call, char type)
{
	answer(call);
	if (type == 'n' && call->state.answered)
		call->result.asked |= RESULT_ELSEWHERE;
	return arch_call_result(call, arch_isa->result(type));
}

EXPORTED int ftr_skip(struct ftr_call *call)
{
	if (call->state.returning || call->state.settled)
		return -EPERM;
	answer(call);
	call->state.skipped = true;
	return 0;
}

EXPORTED void ftr_set_errno(struct ftr_call *call, int error)
{
	call->saved_errno = error;
}
