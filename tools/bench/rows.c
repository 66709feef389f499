/* SPDX-License-Identifier: MIT */
/* What is measured. */
#include "bench.h"
#include "returns.h"
#include "target.h"

/* The counter that detours read. */
static uint64_t read_clock(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t ticks;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
#else
	return __builtin_ppc_get_timebase();
#endif
}

static BENCH_LOOP(loop_clock, BENCH_USE(read_clock())) static BENCH_LOOP(
	loop_swap, returns_swap()) static BENCH_LOOP(loop_own,
	returns_stack()) static BENCH_LOOP(loop_list, returns_list()) static BENCH_LOOP(
	loop_direct, handlers_call_direct()) static BENCH_LOOP(loop_handlers, handlers_call_list())

#define TARGET(f, n_calls, n_threads)                                                              \
	.loop = loop_##f, .function = (void (*)(void))ftr_bench_##f,                               \
	.function_name = "ftr_bench_" #f, .calls = n_calls, .threads = n_threads

	const struct row rows[] = {
		/* The first two are what the others are compared with. */
		{.name = "empty", TARGET(empty, 1, 1), .traced_too = true},
		{.name = "clock", .loop = loop_clock, .calls = 1, .threads = 1},
		{.name = "registers", TARGET(registers, 1, 1), .traced_too = true},
		{.name = "stack", TARGET(stack, 1, 1), .traced_too = true},
		{.name = "fib", TARGET(fib, FIB_CALLS, 1), .traced_too = true},
		{.name = "nop", TARGET(nop, 1, 1), .traced_too = true},
		{.name = "push", TARGET(push, 1, 1), .traced_too = true},
		{.name = "ret", TARGET(ret, 1, 1), .traced_too = true},
		{.name = "nop-only", TARGET(nop_only, 1, 1), .traced_too = true, .entry_only = true},
		{.name = "push-only", TARGET(push_only, 1, 1), .traced_too = true,
			.entry_only = true},
#ifdef __x86_64__
		{.name = "nop5", TARGET(nop5, 1, 1), .traced_too = true},
#endif
		{.name = "empty-2", TARGET(empty, 1, 2), .traced_too = true},

		{.name = "swap", .loop = loop_swap, .calls = 1, .threads = 1},
		{.name = "own-stack", .loop = loop_own, .calls = 1, .threads = 1},
		{.name = "own-stack-2", .loop = loop_own, .calls = 1, .threads = 2},
		{.name = "free-list", .loop = loop_list, .calls = 1, .threads = 1},
		{.name = "free-list-2", .loop = loop_list, .calls = 1, .threads = 2},

		/* probes: a counter; handlers at the entry, at the return, at both */
		{.name = "counter", TARGET(empty, 1, 1), .nprobes = 1},
		{.name = "entry", TARGET(empty, 1, 1), .nprobes = 1, .handlers = HANDLERS_ENTRY},
		{.name = "entry-x2", TARGET(empty, 1, 1), .nprobes = 2, .handlers = HANDLERS_ENTRY},
		{.name = "entry-x10", TARGET(empty, 1, 1), .nprobes = 10, .handlers = HANDLERS_ENTRY},
		{.name = "return", TARGET(empty, 1, 1), .nprobes = 1, .handlers = HANDLERS_RETURN},
		{.name = "both", TARGET(empty, 1, 1), .nprobes = 1,
			.handlers = HANDLERS_ENTRY | HANDLERS_RETURN},
		{.name = "both-x2", TARGET(empty, 1, 1), .nprobes = 2,
			.handlers = HANDLERS_ENTRY | HANDLERS_RETURN},
		{.name = "both-x10", TARGET(empty, 1, 1), .nprobes = 10,
			.handlers = HANDLERS_ENTRY | HANDLERS_RETURN},
		{.name = "entry-vectors", TARGET(empty, 1, 1), .nprobes = 1,
			.handlers = HANDLERS_ENTRY | HANDLERS_VECTORS},
		/* as the kernel's below, on the same instructions */
		{.name = "entry-nop", TARGET(nop, 1, 1), .nprobes = 1, .handlers = HANDLERS_ENTRY},
		{.name = "entry-push", TARGET(push, 1, 1), .nprobes = 1, .handlers = HANDLERS_ENTRY},
		{.name = "entry-ret", TARGET(ret, 1, 1), .nprobes = 1, .handlers = HANDLERS_ENTRY},
		{.name = "both-nop", TARGET(nop, 1, 1), .nprobes = 1,
			.handlers = HANDLERS_ENTRY | HANDLERS_RETURN},
		{.name = "both-push", TARGET(push, 1, 1), .nprobes = 1,
			.handlers = HANDLERS_ENTRY | HANDLERS_RETURN},
		{.name = "both-ret", TARGET(ret, 1, 1), .nprobes = 1,
			.handlers = HANDLERS_ENTRY | HANDLERS_RETURN},
		{.name = "direct", .loop = loop_direct, .calls = 1, .threads = 1},
		{.name = "list", .loop = loop_handlers, .calls = 1, .threads = 1},

		{.name = "uprobe-nop", TARGET(nop, 1, 1), .probe = PROBE_ENTRY},
		{.name = "uprobe-push", TARGET(push, 1, 1), .probe = PROBE_ENTRY},
		{.name = "uprobe-ret", TARGET(ret, 1, 1), .probe = PROBE_ENTRY},
#ifdef __x86_64__
		{.name = "uprobe-nop5", TARGET(nop5, 1, 1), .probe = PROBE_ENTRY},
#endif
		{.name = "uretprobe-nop", TARGET(nop, 1, 1), .probe = PROBE_RETURN},
		{.name = "uretprobe-push", TARGET(push, 1, 1), .probe = PROBE_RETURN},
		{.name = "uretprobe-ret", TARGET(ret, 1, 1), .probe = PROBE_RETURN},
#ifdef __x86_64__
		{.name = "uretprobe-nop5", TARGET(nop5, 1, 1), .probe = PROBE_RETURN},
#endif
};
const size_t nrows = sizeof(rows) / sizeof(rows[0]);
