/* SPDX-License-Identifier: MIT */
/*
 * A program that executes itself: the same process has several images.
 *
 * needs: execve
 * expect: work calls=60
 * expect: tells calls=4
 */
#include "target.h"

#include <unistd.h>

static NOIPA void work(void)
{
	HIT();
}

static NOIPA void tells(long round)
{
	HIT();
	printf("round %ld\n", round);
	if (round == 3)
		printf("calls work 60\ncalls tells 4\n");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	long round = argc > 1 ? atol(argv[1]) : 0;
	char text[20];

	for (int i = 0; i < (round + 1) * 6; i++)
		work();
	tells(round);
	if (round == 3)
		return 0;
	snprintf(text, sizeof(text), "%ld", round + 1);
	execl("/proc/self/exe", argv[0], text, NULL);
	return 1;
}
