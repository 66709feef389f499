/* SPDX-License-Identifier: MIT */
/*
 * A pipeline of the program itself, twenty processes at once, through the shell.
 *
 * needs: sh
 * expect: pass calls=0
 * expect: runs calls=3
 * expect: all:pass calls=6000
 */
#include "target.h"

#include <string.h>

static NOIPA int pass(int byte)
{
	HIT();
	return byte + 1;
}

static NOIPA int runs(const char *command)
{
	FILE *pipe = popen(command, "r");
	int byte, last = 0;

	HIT();
	CHECK(pipe);
	while ((byte = fgetc(pipe)) != EOF)
		last = byte;
	CHECK(pclose(pipe) == 0);
	return last;
}

int main(int argc, char **argv)
{
	char self[500], command[5000] = "head -c 100 /dev/zero", name[20];
	int byte;

	if (argc > 1) {
		while ((byte = getchar()) != EOF)
			putchar(pass(byte));
		return 0;
	}
	snprintf(name, sizeof(name), "pipeline");
	snprintf(self, sizeof(self), " | '%s/%s' pass", getenv("TARGET_DIR"), name);
	for (int i = 0; i < 20; i++)
		strcat(command, self);
	for (int i = 0; i < 3; i++)
		printf("%d\n", runs(command));
	hits("");
	return 0;
}
