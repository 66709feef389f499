# SPDX-License-Identifier: MIT
# A library and a program of several files, built with make -j2, changed and built again.
set -eu
export MAKEFLAGS=--no-print-directory
i=1
while [ $i -le 4 ]; do
	printf '#include "all.h"\nint f%d(int x) { return x * %d + CONSTANT; }\n' $i $i >f$i.c
	echo "int f$i(int);" >>list.h
	i=$((i + 1))
done
printf '#include "list.h"\n#define CONSTANT 5\n' >all.h
printf '#include <stdio.h>\n#include "all.h"\nint main(void) { printf("%%d\\n", f1(f2(f4(1)))); }\n' >main.c
cat >Makefile <<'END'
objects := $(patsubst %.c,%.o,$(sort $(wildcard f*.c)))
square = $(shell expr $(1) \* $(1))
.PHONY: all check clean
all: main
main: main.o libf.a ; @$(CC) -o $@ $^
libf.a: $(objects) ; @rm -f $@; $(AR) rcD $@ $^
%.o: %.c all.h list.h ; @$(CC) -O1 -c -o $@ $<
define rule
check-$(1): ; @echo check $(1) $(call square,$(1))
check: check-$(1)
endef
$(foreach n,1 2 3,$(eval $(call rule,$(n))))
clean: ; rm -f $(objects) main.o main libf.a
fails: ; @exit 3
END
make -s -j2
./main
make -j2 -q && echo 'nothing to do'
echo '#define CONSTANT 6' >>list.h
sed -i 1d all.h
sed -i 's/.*CONSTANT.*/#include "list.h"/' all.h
make -s -j2 --output-sync
./main
make -s check
sha256sum f1.o main
make -s fails || echo "status $?"
make -s nothing || echo "status $?"
make -n clean
make -s -j2 -B --trace main.o 2>&1 | sed 's/.*Makefile/Makefile/'
rm -f ./*.o
