/* SPDX-License-Identifier: MIT */
/* For ports whose detours call no handlers: ftr_attach() asks arch_calls_handlers first. */
#include "arch.h"

#if defined(__powerpc64__)

const bool arch_calls_handlers = false;

void arch_call_prepare(void)
{
}

void arch_call_vectors(void (*function)(struct ftr_call *), struct ftr_call *call)
{
	function(call);
}

void *arch_call_argument(struct ftr_call *call, struct isa_place place)
{
	(void)call;
	(void)place;
	return NULL;
}

void *arch_call_result(struct ftr_call *call, struct isa_place place)
{
	(void)call;
	(void)place;
	return NULL;
}

void arch_call_finish(struct ftr_call *call, bool skip)
{
	(void)call;
	(void)skip;
}

bool arch_call_context(const struct ftr_call *call, void *context)
{
	(void)call;
	(void)context;
	return false;
}

void arch_call_owed(struct ftr_call *call)
{
	(void)call;
}

#endif
