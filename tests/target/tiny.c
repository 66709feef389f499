/* SPDX-License-Identifier: MIT */
/*
 * Very short functions and difficult first instructions (tiny.S): counted exactly or skipped, and
 * they go on doing what they did.
 *
 * flags: -O2 tiny.S
 * flags: -O2 -fno-pie -no-pie tiny.S
 * needs: x86_64
 * maybe: packed_zero calls=100
 * maybe: packed_same calls=300
 * maybe: packed_one calls=100
 * maybe: packed_jump calls=100
 * expect: packed_near_jump calls=100
 * maybe: packed_last calls=100
 * expect: padded_zero calls=100
 * maybe: trapped_zero calls=100
 * maybe: loop_to_entry calls=100
 * maybe: loop_into_window calls=100
 * maybe: second_entry_owner calls=100
 * maybe: uses_second_entry calls=100
 * maybe: loop_first calls=100
 * maybe: call_first calls=100
 * expect: call_second calls=100
 * maybe: call_pop_first calls=100
 * expect: rip_load_first calls=100
 * expect: rip_store_first calls=100
 * expect: rip_compare_first calls=100
 * expect: rip_lea_first calls=100
 * expect: rip_xmm_first calls=100
 * expect: rip_wide_imm_first calls=100
 * expect: rip_indirect_jump_first calls=100
 * expect: rip_push_first calls=100
 * maybe: lock_rip_first calls=100
 * maybe: segment_first calls=100
 * expect: movabs_first calls=100
 * expect: long_first calls=100
 * maybe: rep_first calls=100
 * maybe: repz_ret calls=100
 * maybe: pushf_first calls=100
 * maybe: enter_first calls=100
 * maybe: push_and_call calls=100
 * maybe: page_end calls=100
 * maybe: first_name calls=100
 * maybe: no_size calls=100
 * maybe: packed_ret calls=100
 * maybe: packed_endbr calls=100
 * expect: padded_ret calls=100
 * maybe: padded_endbr calls=100
 * maybe: jrcxz_first calls=200
 * maybe: jecxz_first calls=200
 * maybe: jcc_short_first calls=200
 * expect: jcc_near_first calls=200
 * maybe: pops_arguments calls=100
 * maybe: stack_read_first calls=100
 * expect: thirteen calls=400
 * maybe: before_data calls=100
 * maybe: jump_into_from_far calls=100
 * absent: data_in_text second_entry
 */
#include "target.h"

long packed_zero(long x);
long packed_same(long x);
long packed_one(long x);
long packed_jump(long x);
long packed_near_jump(long x);
long packed_last(long x);
long padded_zero(long x);
long trapped_zero(long x);
long loop_to_entry(long x);
long loop_into_window(long x);
long second_entry_owner(long x);
long uses_second_entry(long x);
long loop_first(long x);
long call_first(long x);
long call_second(long x);
long call_pop_first(long x);
long rip_load_first(long x);
long rip_store_first(long x);
long rip_compare_first(long x);
long rip_lea_first(long x);
long rip_xmm_first(long x);
long rip_wide_imm_first(long x);
long rip_indirect_jump_first(long x);
long rip_push_first(long x);
long lock_rip_first(long x);
long segment_first(long x);
long movabs_first(long x);
long long_first(long x);
long rep_first(long x);
long repz_ret(long x);
long pushf_first(long x);
long enter_first(long x);
long push_and_call(long x);
long page_end(long x);
long first_name(long x);
long no_size(long x);
long before_data(void), jump_into_from_far(long x), thirteen(void), second_name(long x);
extern long data_in_text[2];
extern unsigned long thirteen_calls;

static struct row {
	const char *name;
	long (*function)(long x);
	long base;  /* result: base + factor * x */
	long factor;
} rows[] = {
	{"packed_zero", packed_zero, 0, 0},
	{"packed_same", packed_same, 0, 1},
	{"packed_one", packed_one, 1, 0},
	{"packed_jump", packed_jump, 0, 1},
	{"packed_near_jump", packed_near_jump, 0, 1},
	{"packed_last", packed_last, 1, 1},
	{"padded_zero", padded_zero, 0, 0},
	{"trapped_zero", trapped_zero, 0, 0},
	{"loop_to_entry", loop_to_entry, 5, 0},
	{"loop_into_window", loop_into_window, 0, 1},
	{"second_entry_owner", second_entry_owner, 10, 1},
	{"uses_second_entry", uses_second_entry, 11, 1},
	{"loop_first", loop_first, 7, 0},
	{"call_first", call_first, 13, 0},
	{"call_second", call_second, 14, 0},
	{"call_pop_first", call_pop_first, 0, 0},
	{"rip_load_first", rip_load_first, 0x905, 0},
	{"rip_store_first", rip_store_first, 77, 0},
	{"rip_compare_first", rip_compare_first, 1, 0},
	{"rip_lea_first", rip_lea_first, 0x905, 0},
	{"rip_xmm_first", rip_xmm_first, 0x905, 0},
	{"rip_wide_imm_first", rip_wide_imm_first, 0x12345678, 0},
	{"rip_indirect_jump_first", rip_indirect_jump_first, 13, 0},
	{"rip_push_first", rip_push_first, 0x905, 0},
	{"lock_rip_first", lock_rip_first, 3, 0},
	{"segment_first", segment_first, 0, 0},
	{"movabs_first", movabs_first, 0x123456789abcdef0, 0},
	{"long_first", long_first, 21, 0},
	{"rep_first", rep_first, 22, 0},
	{"repz_ret", repz_ret, 4, 0},
	{"pushf_first", pushf_first, 0, 0},
	{"enter_first", enter_first, 0, 1},
	{"push_and_call", push_and_call, 100, 1},
	{"page_end", page_end, 0, 1},
	{"first_name", first_name, 31, 0},
	{"no_size", no_size, 32, 0},
	{"thirteen", (long (*)(long))thirteen, 13, 0},
};

void packed_ret(long x), packed_endbr(long x), padded_ret(long x), padded_endbr(long x);

/* The functions that look at rcx or at flags first, with both answers. */
#define BOTH(name)                                                                                 \
	do {                                                                                       \
		long zero, other;                                                                  \
		__asm__ volatile("sub $128, %%rsp\n\txor %%ecx, %%ecx\n\tcall " name                \
				 "\n\tadd $128, %%rsp"                                             \
				 : "=a"(zero)                                                      \
				 :                                                                 \
				 : "rcx", "memory", "cc");                                         \
		__asm__ volatile("sub $128, %%rsp\n\txor %%ecx, %%ecx\n\tinc %%ecx\n\tcall " name   \
				 "\n\tadd $128, %%rsp"                                             \
				 : "=a"(other)                                                     \
				 :                                                                 \
				 : "rcx", "memory", "cc");                                         \
		if (zero + other != 3 || zero == other)                                            \
			printf("%s: %ld %ld\n", name, zero, other);                                \
	} while (0)

int main(void)
{
	for (long i = 1; i <= 100; i++) {
		for (unsigned j = 0; j < sizeof(rows) / sizeof(rows[0]); j++) {
			long (*f)(long) = rows[j].function;
			long found;

			/* the second name has its turn, too */
			if (f == first_name && i % 2)
				f = second_name;
			found = f(i);
			if (found != rows[j].base + rows[j].factor * i)
				printf("%s(%ld): %lx\n", rows[j].name, i, found);
		}
		packed_ret(i);
		packed_endbr(i);
		padded_ret(i);
		padded_endbr(i);
		CHECK(before_data() == 0x332211c3);
		CHECK(jump_into_from_far(i) == (i % 2 ? i + 6 : i + 3));
		BOTH("jrcxz_first");
		BOTH("jecxz_first");
		BOTH("jcc_short_first");
		BOTH("jcc_near_first");
		CHECK(data_in_text[0] == 0x1122334455667788);
	}
	printf("calls thirteen %lu\n", thirteen_calls);
	return 0;
}
