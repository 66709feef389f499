/* SPDX-License-Identifier: MIT */
/*
 * kvstore FILE: the store on the command line. Each line of input is a command: "put KEY VALUE",
 * "get KEY", "sync". Answers are the value, "none", "ok", or "error TEXT".
 */
#include "kv.h"
#include <stdio.h>
#include <string.h>

static void answer(int err)
{
	if (err)
		printf("error %s\n", strerror(-err));
	else
		puts("ok");
}

static void command(struct kv *kv, char *line)
{
	const char *verb = strtok(line, " \n"), *key = strtok(NULL, " \n");
	const char *value = strtok(NULL, " \n");

	if (verb && !strcmp(verb, "put") && value) {
		answer(kv_put(kv, key, value));
	} else if (verb && !strcmp(verb, "get") && key) {
		value = kv_get(kv, key);
		puts(value ? value : "none");
	} else if (verb && !strcmp(verb, "sync")) {
		answer(kv_sync(kv));
	} else {
		puts("error what?");
	}
}

int main(int argc, char **argv)
{
	char line[512];
	struct kv *kv;
	int err;

	if (argc != 2) {
		fputs("usage: kvstore FILE\n", stderr);
		return 2;
	}
	err = kv_open(argv[1], &kv);
	if (err) {
		answer(err);
		return 1;
	}
	while (fgets(line, sizeof(line), stdin))
		command(kv, line);
	err = kv_close(kv);
	if (err)
		answer(err);
	return err ? 1 : 0;
}
