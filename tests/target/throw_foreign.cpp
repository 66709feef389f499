/* SPDX-License-Identifier: MIT */
/*
 * Exceptions of another language, raised and forced through C++ frames by the unwinder's own calls.
 *
 * flags: -O2
 * flags: -O0
 * flags: clang -O2
 * expect: raise_foreign calls=20 returned=0 unwound=20
 * expect: force calls=20 returned=0 unwound=20
 * expect: between calls=40 returned=0 unwound=40
 * expect: cleanup calls=40
 * expect: catch_foreign calls=20
 */
#include "target.h"

#include <setjmp.h>
#include <unwind.h>

static jmp_buf env;
static _Unwind_Word main_frame; /* an address inside it */
static struct _Unwind_Exception foreign;

static NOIPA void cleanup(void)
{
	HIT();
}

struct Guard {
	~Guard()
	{
		cleanup();
	}
};

static NOIPA void raise_foreign(void)
{
	HIT();
	foreign.exception_class = 0x5858585858585858;
	_Unwind_RaiseException(&foreign);
	abort();
}

static _Unwind_Reason_Code stop(int, _Unwind_Action actions, _Unwind_Exception_Class,
	struct _Unwind_Exception *, struct _Unwind_Context *context, void *)
{
	if (actions & _UA_END_OF_STACK || _Unwind_GetCFA(context) > main_frame)
		longjmp(env, 1);
	return _URC_NO_REASON;
}

static NOIPA void force(void)
{
	HIT();
	foreign.exception_class = 0x5858585858585858;
	_Unwind_ForcedUnwind(&foreign, stop, NULL);
	abort();
}

static NOIPA int between(void (*f)(void))
{
	Guard guard;

	HIT();
	f();
	return 1;
}

static NOIPA int catch_foreign(void)
{
	HIT();
	try {
		return between(raise_foreign);
	} catch (...) {
		return 2;
	}
}

int main()
{
	volatile int sum = 0;

	main_frame = (_Unwind_Word)&sum;
	for (volatile int i = 0; i < 20; i++) {
		sum = sum + catch_foreign();
		if (setjmp(env) == 0)
			between(force);
		sum = sum + 1;
	}
	printf("%d\n", (int)sum);
	hits("");
	return 0;
}
