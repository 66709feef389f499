/* SPDX-License-Identifier: MIT */
/*
 * Counts calls for --cross: gcc calls the first function below on every function entry. At exit a
 * line "link-time address, calls" for each goes to cross.txt in the current directory.
 */
#include <stdint.h>
#include <stdio.h>

#define NFUNCS 65536

struct count {
	uintptr_t function;
	unsigned long calls;
};

extern const char __ehdr_start[] __attribute__((weak, visibility("hidden")));

void __cyg_profile_func_enter(void *function, void *caller);
void __cyg_profile_func_exit(void *function, void *caller);

static struct count counts[NFUNCS];

void __cyg_profile_func_enter(void *function, void *caller)
{
	uintptr_t address = (uintptr_t)function, none, i = address / 16 % NFUNCS;

	(void)caller;
	for (;; i = (i + 1) % NFUNCS) {
		none = 0;
		__atomic_compare_exchange_n(&counts[i].function, &none, address, 0, __ATOMIC_RELAXED,
			__ATOMIC_RELAXED);
		if (counts[i].function == address)
			break;
	}
	__atomic_fetch_add(&counts[i].calls, 1, __ATOMIC_RELAXED);
}

void __cyg_profile_func_exit(void *function, void *caller)
{
	(void)function;
	(void)caller;
}

/* Position-dependent programs are linked at their run-time addresses. */
static uintptr_t load_bias(void)
{
	uintptr_t start = (uintptr_t)__ehdr_start;

	return start == 0x400000 ? 0 : start;
}

__attribute__((destructor(101))) static void write_counts(void)
{
	FILE *file = fopen("cross.txt", "w");

	for (int i = 0; file && i < NFUNCS; i++)
		if (counts[i].calls)
			fprintf(file, "%lx %lu\n", (unsigned long)(counts[i].function - load_bias()),
				counts[i].calls);
	if (file)
		fclose(file);
}
