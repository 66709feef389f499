# SPDX-License-Identifier: MIT
# Compile a source file of ftr in several ways, link and run a program: $1 is the compiler, $2 the tree.
set -eu
for flags in -O2 '-O0 -fPIC -ffunction-sections'; do
	# shellcheck disable=SC2086 # words
	"$1" -std=gnu11 -Wall -Wextra $flags -I"$2" -c "$2/arch/x86_64/emit.c" -o emit.o
	sha256sum <emit.o
	nm emit.o | wc -l
done
"$1" -E -P -I"$2" "$2/arch/x86_64/emit.c" | sha256sum
cat >sum.c <<'END'
#include <stdio.h>
#include <stdlib.h>
static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}
int main(void)
{
	int n[1000];
	for (int i = 0; i < 1000; i++)
		n[i] = i * 7919 % 1009;
	qsort(n, 1000, sizeof(n[0]), compare);
	printf("%d %d\n", n[0], n[999]);
	return 3;
}
END
"$1" -O2 -flto sum.c -o sum
./sum || echo "status $?"
printf 'int main(void) { return undeclared + 1 }\n' >wrong.c
"$1" -fno-diagnostics-color wrong.c || echo "status $?"
