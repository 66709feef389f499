/* SPDX-License-Identifier: MIT */
/* Prints the call stack of another process, as libunwind-ptrace sees it: remote PID. */
#include <libunwind-ptrace.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

int main(int argc, char **argv)
{
	pid_t pid = argc > 1 ? atoi(argv[1]) : 0;
	unw_addr_space_t space = unw_create_addr_space(&_UPT_accessors, 0);
	unw_cursor_t cursor;
	void *upt;

	if (pid <= 0 || ptrace(PTRACE_ATTACH, pid, 0, 0) || waitpid(pid, NULL, 0) != pid)
		return 2;
	upt = _UPT_create(pid);
	if (unw_init_remote(&cursor, space, upt))
		return 2;
	do {
		char name[256];
		unw_word_t offset, pc;

		unw_get_reg(&cursor, UNW_REG_IP, &pc);
		if (pc && unw_get_proc_name(&cursor, name, sizeof(name), &offset) < 0)
			snprintf(name, sizeof(name), "?");
		if (pc)
			printf("%s\n", name);
	} while (unw_step(&cursor) > 0);
	ptrace(PTRACE_DETACH, pid, 0, 0);
	return 0;
}
