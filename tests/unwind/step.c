/* SPDX-License-Identifier: MIT */
/*
 * Runs a program that marks calls with begin_steps() and end_steps() (stepped.h), single-steps
 * each of its threads and children from one mark to the other, and at every instruction unwinds it
 * from outside with libunwind-ptrace. The chain of callers must be the one at the first mark: not
 * a frame more, less or other. In between lie the traced functions themselves, their detours and
 * the tracer.
 *
 *     step SECONDS PROGRAM [ARGUMENT]...
 *
 * Only inside the tracer's own C code may the chain end early; it may never name a wrong caller.
 */
#define _GNU_SOURCE
#include "stepped.h"
#include <errno.h>
#include <libunwind-ptrace.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

#define FRAMES_MAX   128
#define REPORTS_MAX  8
#define NAME_MAX_LEN 48
#define TRAP_FLAG    0x100ull

enum where { OTHER, PROGRAM, DETOUR, TRACER };

struct map {
	uint64_t lo, hi;
	enum where where;
};

struct frame {
	uint64_t ip, sp;
};

struct chain {
	struct frame frames[FRAMES_MAX];
	int count;
};

struct scenario {
	pid_t tid;
	char name[NAME_MAX_LEN];
	uint64_t caller; /* start of the function whose calls are stepped through */
	uint64_t returns_to; /* inside it, while it calls */
	unsigned long which; /* STEPS_ALL ... */
	struct chain outer; /* the caller's frame and those above it */
	unsigned long steps, checked, early, by[4], failed;
};

static struct map maps[4096];
static int nmaps;
static char program[4096];
static unw_addr_space_t space;
static unsigned long all_failed, all_checked, all_early, scenarios;

static void die(const char *what)
{
	perror(what);
	exit(2);
}

static enum where where_is(const char *path)
{
	if (!strcmp(path, program))
		return PROGRAM;
	if (strstr(path, "libftr.so"))
		return TRACER;
	return strstr(path, ".detours") || strstr(path, "memfd:") ? DETOUR : OTHER;
}

static void read_maps(pid_t tid)
{
	char name[64], line[4352];
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/maps", tid);
	f = fopen(name, "r");
	if (!f)
		die(name);
	nmaps = 0;
	while (fgets(line, sizeof(line), f) && nmaps < (int)(sizeof(maps) / sizeof(maps[0]))) {
		struct map *m = &maps[nmaps];
		int path = 0;

		line[strcspn(line, "\n")] = 0;
		if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %n", &m->lo, &m->hi, &path) < 2 || !path)
			continue;
		m->where = where_is(line + path);
		nmaps++;
	}
	fclose(f);
}

static const struct map *map_known(uint64_t ip)
{
	for (int i = 0; i < nmaps; i++)
		if (ip - maps[i].lo < maps[i].hi - maps[i].lo)
			return &maps[i];
	return NULL;
}

static enum where map_of(pid_t tid, uint64_t ip)
{
	const struct map *m = map_known(ip);

	if (!m) {
		read_maps(tid);
		m = map_known(ip);
	}
	return m ? m->where : OTHER;
}

static uint64_t peek(pid_t tid, uint64_t addr)
{
	return (uint64_t)ptrace(PTRACE_PEEKDATA, tid, addr, 0);
}

static void unwind(void *upt, struct chain *chain)
{
	unw_cursor_t cursor;

	chain->count = 0;
	if (unw_init_remote(&cursor, space, upt))
		return;
	do {
		struct frame *f = &chain->frames[chain->count++];

		unw_get_reg(&cursor, UNW_REG_IP, &f->ip);
		unw_get_reg(&cursor, UNW_REG_SP, &f->sp);
	} while (chain->count < FRAMES_MAX && unw_step(&cursor) > 0);
	/* What follows the outermost frame. */
	while (chain->count && !chain->frames[chain->count - 1].ip)
		chain->count--;
}

static void name_of(void *upt, uint64_t ip, char *name, size_t room)
{
	unw_word_t offset;

	if (_UPT_get_proc_name(space, ip, name, room, &offset, upt) < 0)
		snprintf(name, room, "?");
}

static uint64_t start_of(void *upt, uint64_t ip)
{
	char name[256];
	unw_word_t offset = 0;

	if (_UPT_get_proc_name(space, ip, name, sizeof(name), &offset, upt) < 0)
		return 0;
	return ip - offset;
}

static void print_chain(void *upt, const char *title, const struct chain *chain)
{
	fprintf(stderr, "  %s:\n", title);
	for (int i = 0; i < chain->count; i++) {
		char name[256];

		name_of(upt, chain->frames[i].ip, name, sizeof(name));
		fprintf(stderr, "    %#lx sp %#lx %s\n", chain->frames[i].ip, chain->frames[i].sp,
			name);
	}
}

/* The frames of @chain from index @from on are those of the reference from @index on. NULL or what
 * is wrong; *@ends_early when some are missing at the end. */
static const char *same_from(const struct scenario *s, const struct chain *chain, int from,
	int index, bool *ends_early)
{
	for (; from < chain->count; from++, index++) {
		if (index >= s->outer.count)
			return "there are more frames than there should be";
		if (chain->frames[from].ip != s->outer.frames[index].ip
			|| chain->frames[from].sp != s->outer.frames[index].sp)
			return "a wrong caller";
	}
	*ends_early = index < s->outer.count;
	return NULL;
}

/*
 * Innermost first: frames of what was called, each in the program, a detour, the tracer or a
 * library it calls; then the caller, at the return address of its call; then the reference.
 */
static const char *judge(const struct scenario *s, const struct chain *chain, bool in_caller,
	bool *ends_early)
{
	int i = 0;

	*ends_early = false;
	if (in_caller)
		return same_from(s, chain, 1, 1, ends_early);
	for (; i < chain->count; i++)
		if (chain->frames[i].ip == s->returns_to)
			return same_from(s, chain, i + 1, 1, ends_early);
		else if (chain->frames[i].sp > s->outer.frames[1].sp)
			return "the caller is missing";
	*ends_early = true;
	return NULL;
}

static void check(struct scenario *s, void *upt, const struct user_regs_struct *regs, bool in_caller,
	enum where where)
{
	struct chain chain;
	const char *wrong;
	bool ends_early;

	unwind(upt, &chain);
	wrong = judge(s, &chain, in_caller, &ends_early);
	if (!wrong && ends_early && where == TRACER)
		s->early++;
	else if (!wrong && ends_early)
		wrong = "the chain ends early";
	s->checked++;
	s->by[where]++;
	if (!wrong)
		return;
	if (s->failed++ < REPORTS_MAX) {
		fprintf(stderr, "FAIL %s: step %lu: %s\n", s->name, s->steps, wrong);
		fprintf(stderr, "  rip %#llx code %016lx returns_to %#lx\n", regs->rip,
			peek(s->tid, regs->rip), s->returns_to);
		print_chain(upt, "found", &chain);
		print_chain(upt, "expected from", &s->outer);
	}
}

static void read_name(struct scenario *s, uint64_t addr)
{
	for (size_t i = 0; i < sizeof(s->name); i += 8) {
		uint64_t word = peek(s->tid, addr + i);

		memcpy(s->name + i, &word, 8);
	}
	s->name[sizeof(s->name) - 1] = 0;
}

/* The reference: who called, seen at the first mark. */
static bool begin(struct scenario *s, void *upt, const struct user_regs_struct *regs)
{
	struct chain chain;
	int i;

	read_name(s, regs->rdi);
	s->caller = regs->rsi;
	s->which = regs->rdx;
	unwind(upt, &chain);
	for (i = 0; i < chain.count; i++)
		if (start_of(upt, chain.frames[i].ip - (i > 0)) == s->caller)
			break;
	if (i + 2 > chain.count) {
		fprintf(stderr, "FAIL %s: the caller is not found at the first mark\n", s->name);
		print_chain(upt, "found", &chain);
		return false;
	}
	s->returns_to = i ? chain.frames[i].ip : 0;
	s->outer.count = chain.count - i;
	memcpy(s->outer.frames, chain.frames + i, sizeof(chain.frames[0]) * (size_t)(chain.count - i));
	if (getenv("STEP_VERBOSE"))
		print_chain(upt, s->name, &s->outer);
	return true;
}

static bool at_mark(pid_t tid, const struct user_regs_struct *regs, uint64_t mark)
{
	return regs->rax == mark && (peek(tid, regs->rip - 1) & 0xff) == 0xcc;
}

/* A popfq that was stepped over may have left the trap flag on. */
static void go_on(pid_t tid, long signal)
{
	struct user_regs_struct regs;

	if (!ptrace(PTRACE_GETREGS, tid, 0, &regs) && regs.eflags & TRAP_FLAG) {
		regs.eflags &= ~TRAP_FLAG;
		ptrace(PTRACE_SETREGS, tid, 0, &regs);
	}
	ptrace(PTRACE_CONT, tid, 0, signal);
}

static bool one_step(pid_t tid, int *status)
{
	int signal = WIFSTOPPED(*status) && WSTOPSIG(*status) != SIGTRAP ? WSTOPSIG(*status) : 0;

	for (;;) {
		if (ptrace(PTRACE_SINGLESTEP, tid, 0, signal))
			die("PTRACE_SINGLESTEP");
		if (waitpid(tid, status, __WALL) != tid)
			die("waitpid");
		if (!WIFSTOPPED(*status))
			return false;
		signal = 0;
		if (!(*status >> 16)) /* not the event of a fork or clone */
			return true;
	}
}

static bool is_looked_at(const struct scenario *s, enum where where)
{
	return s->which == STEPS_ALL
		|| (where != OTHER
			&& !(s->which == STEPS_SOME && where == TRACER && s->steps % STEPS_FEW));
}

static void step_through(pid_t tid, int *status)
{
	static struct scenario s;
	struct user_regs_struct regs;
	void *upt = _UPT_create(tid);
	uint64_t sp, caller_end;
	bool was_in_caller = false;

	s = (struct scenario){ .tid = tid };
	ptrace(PTRACE_GETREGS, tid, 0, &regs);
	if (!begin(&s, upt, &regs)) {
		all_failed++;
		_UPT_destroy(upt);
		return;
	}
	caller_end = regs.r9;
	sp = regs.rsp;
	while (one_step(tid, status)) {
		bool in_caller;
		enum where where;

		if (ptrace(PTRACE_GETREGS, tid, 0, &regs))
			break;
		s.steps++;
		in_caller = regs.rip - s.caller < caller_end - s.caller;
		if (at_mark(tid, &regs, STEPS_END))
			break;
		if (was_in_caller && !in_caller && regs.rsp == sp - 8)
			s.returns_to = peek(tid, regs.rsp);
		was_in_caller = in_caller;
		sp = regs.rsp;
		where = map_of(tid, regs.rip);
		if (is_looked_at(&s, where))
			check(&s, upt, &regs, in_caller, where);
	}
	printf("%s %s: %lu instructions, %lu checked (program %lu, detours %lu, tracer %lu, "
	       "libraries %lu), %lu end early, %lu wrong\n", s.failed ? "FAIL" : "ok", s.name,
		s.steps, s.checked, s.by[PROGRAM], s.by[DETOUR], s.by[TRACER], s.by[OTHER], s.early,
		s.failed);
	fflush(stdout);
	if (!s.by[DETOUR]) {
		printf("FAIL %s: no detour was run\n", s.name);
		s.failed++;
	}
	all_failed += s.failed;
	all_checked += s.checked;
	all_early += s.early;
	scenarios++;
	_UPT_destroy(upt);
}

static void start(char **argv)
{
	char *preload = getenv("STEP_PRELOAD");

	if (preload)
		setenv("LD_PRELOAD", preload, 1);
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	execv(argv[0], argv);
	die(argv[0]);
}

int main(int argc, char **argv)
{
	int status, result = 0;
	pid_t child, tid;

	if (argc < 3 || !realpath(argv[2], program)) {
		fprintf(stderr, "usage: step SECONDS PROGRAM [ARGUMENT]...\n");
		return 2;
	}
	alarm((unsigned)atoi(argv[1]));
	space = unw_create_addr_space(&_UPT_accessors, 0);
	unw_set_caching_policy(space, UNW_CACHE_GLOBAL);
	child = fork();
	if (!child)
		start(argv + 2);
	waitpid(child, &status, 0);
	ptrace(PTRACE_SETOPTIONS, child, 0,
		PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_EXITKILL);
	ptrace(PTRACE_CONT, child, 0, 0);
	while ((tid = waitpid(-1, &status, __WALL)) > 0) {
		struct user_regs_struct regs;
		long signal = 0;

		if (!WIFSTOPPED(status)) {
			if (tid == child)
				result = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
			continue;
		}
		ptrace(PTRACE_GETREGS, tid, 0, &regs);
		if (WSTOPSIG(status) == SIGTRAP && !(status >> 16)
			&& at_mark(tid, &regs, STEPS_BEGIN))
			step_through(tid, &status);
		else if (!(status >> 16) && WSTOPSIG(status) != SIGSTOP) /* the library has traps, too */
			signal = WSTOPSIG(status);
		if (WIFSTOPPED(status))
			go_on(tid, signal);
	}
	printf("steps: %lu scenarios, %lu instructions checked, %lu chains end early, %lu wrong\n",
		scenarios, all_checked, all_early, all_failed);
	if (result) {
		fprintf(stderr, "FAIL the program ended with status %d\n", result);
		return 1;
	}
	return all_failed || !scenarios;
}
