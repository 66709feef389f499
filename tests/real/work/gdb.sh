# SPDX-License-Identifier: MIT
# gdb on a program of its own, which is not traced (its addresses would be others). It looks at no variable
# that has no value yet: what an unset one shows is what the dynamic loader left on the stack.
set -eu
cat >program.c <<'END'
#include <stdio.h>
#include <signal.h>
struct node { int value; struct node *next; };
static int sum(const struct node *list)
{
	int total = 0;
	for (; list; list = list->next)
		total += list->value;
	return total;
}
static int deep(int n, const struct node *list)
{
	return n ? deep(n - 1, list) + 1 : sum(list);
}
int main(void)
{
	struct node c = { 3, 0 }, b = { 2, &c }, a = { 1, &b };
	printf("%d\n", deep(10, &a));
	raise(SIGUSR1);
	*(volatile int *)0 = 1;
	return 0;
}
END
gcc -g -O0 program.c -o program
gdb -nx -batch -ex 'unset environment LD_PRELOAD' -ex 'set width 0' -ex 'info line main' \
	-ex 'ptype struct node' -ex 'print sizeof(long) * 3' -ex 'break sum' -ex 'run' \
	-ex 'bt -frame-info short-location' -ex 'print *list' -ex 'print $_siginfo' -ex 'next' -ex 'watch total' \
	-ex 'continue' -ex 'continue' -ex 'delete' -ex 'finish' -ex 'tbreak 20' -ex 'continue' \
	-ex 'handle SIGUSR1 nostop print pass' -ex 'stepi 50' \
	-ex 'python print(sum(int(gdb.parse_and_eval(e)) for e in ("a.value", "b.value")))' \
	-ex 'disassemble /r sum' -ex 'info functions deep' -ex 'signal 0' -ex 'continue' \
	-ex 'info registers rip' -ex 'kill' -ex 'nonsense' ./program 2>&1 | sed 's/process [0-9]*/process N/; s/0x7ff[0-9a-f]*/STACK/g' ||
	echo "status $?"
gdb -nx -batch -ex 'info symbol main' -ex 'x/5i main' ./program
