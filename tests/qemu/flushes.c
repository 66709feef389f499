/* SPDX-License-Identifier: MIT */
/* Attaches a handler to each of two functions and detaches it, as often as its argument says: one that
 * is traced and one that is not. Each is called once in between. */
#define FTR_WEAK
#include "../../include/ftr/ftr.h"
#include <stdio.h>
#include <stdlib.h>

__attribute__((noipa)) int traced(int a)
{
	return a + 1;
}

__attribute__((noipa)) int watched(int a)
{
	return a + 2;
}

static int handled;

static void handler(struct ftr_call *call, void *data)
{
	(void)call;
	(void)data;
	handled++;
}

int main(int argc, char **argv)
{
	static const char *const names[] = { "traced", "watched" };
	int rounds = argc > 1 ? atoi(argv[1]) : 0;

	for (int i = 0; i < 2 * rounds; i++) {
		const struct ftr_probe_spec spec = { .name = names[i % 2], .entry = handler };
		struct ftr_probe *probe;

		if (ftr_attach(&spec, &probe) != 1) {
			printf("%s: %s\n", names[i % 2], ftr_error());
			return 1;
		}
		if (traced(1) != 2 || watched(1) != 3 || ftr_detach(probe))
			return 1;
	}
	return handled != 2 * rounds;
}
