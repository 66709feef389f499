/* SPDX-License-Identifier: MIT */
/*
 * The kernel tells in /proc/self/task/TID/syscall where a sleeping thread goes on: its program
 * counter and stack pointer. Who runs, says "running". Such a thread is looked at again a few times
 * (most threads sleep often, or run into a breakpoint of live.c and sleep there); then a signal
 * asks it to sleep in its handler, where it is looked at like the others.
 *
 * The signal is number 33. glibc and musl keep it for themselves, and do not let programs block it.
 * Signals of that kind are queued; a SIGTRAP would not do, since a breakpoint that is hit while
 * another SIGTRAP is pending raises none of its own, and its thread goes on behind the breakpoint.
 * The handler stays, as the signal may arrive late; libc's own are passed on.
 *
 * A thread that sleeps in a handler of ours says so itself, in a table, and may be believed until it
 * runs again: it need not wait for a processor to be told from one that is anywhere.
 *
 * A sleeping thread is asked only if it must not go on. The system call that this ends with EINTR is
 * made again when the thread is let go, as if nothing had happened, but for a relative timeout,
 * which starts anew.
 *
 * A thread is outside when its program counter is, and no word of its stack, which may be a return
 * address or a program counter that a signal frame keeps, is inside. A handler may run on another
 * stack than what it interrupted: stack pointers in signal frames are followed.
 */
#define _GNU_SOURCE 1
#include "threads.h"
#include "signals.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>

#define PASSES_MAX 256
#define LOOKS_MAX   1000 /* at a thread that runs; */
#define LOOKS_FREE  9	 /* before it is asked; */
#define LOOKS_QUICK 5	 /* without waiting: it may run into a breakpoint any moment */
#define LOOK_US	    50

#define TEXT_ROOM  (1u << 16)
#define LINE_ROOM  256
#define STACK_MAX  (16u << 20) /* of a stack that lies in a larger mapping */
#define STACKS_MAX 8	       /* that one thread has signal frames of */
#define CHUNK	   4096u       /* words of a stack that are read at a time */

/* ---- sleeping ---- */

struct threads_sleeper *threads_sleepers;

#define SLEEPER_TRIES 8

static const char in_handler; /* its address marks a futex call from a handler of ours */

static struct threads_sleeper *sleeper_at(uint32_t tid, unsigned i)
{
	return &threads_sleepers[(tid + i) % THREADS_SLEEPERS];
}

/* NULL: there is no room. */
static struct threads_sleeper *sleeper_add(const void *context)
{
	uint32_t tid = (uint32_t)sys_gettid();

	for (unsigned i = 0; threads_sleepers && i < SLEEPER_TRIES; i++) {
		struct threads_sleeper *s = sleeper_at(tid, i);
		uint32_t none = 0;

		if (!__atomic_compare_exchange_n(
			    &s->tid, &none, tid, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		__atomic_store_n(&s->context, (uint64_t)context, __ATOMIC_RELEASE);
		return s;
	}
	return NULL;
}

static void sleeper_remove(struct threads_sleeper *s)
{
	if (!s)
		return;
	__atomic_store_n(&s->context, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&s->times, s->times + 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&s->tid, 0, __ATOMIC_RELEASE);
}

static const struct threads_sleeper *sleeper_find(uint32_t tid)
{
	for (unsigned i = 0; threads_sleepers && i < SLEEPER_TRIES; i++) {
		const struct threads_sleeper *s = sleeper_at(tid, i);

		if (__atomic_load_n(&s->tid, __ATOMIC_RELAXED) == tid)
			return s;
	}
	return NULL;
}

/* FUTEX_WAIT does not look at its last two arguments. */
static void sleep_marked(const void *context, const uint32_t *word, uint32_t value,
	unsigned microseconds)
{
	const struct {
		int64_t s, ns;
	} timeout = { 0, microseconds * 1000ll };

	sys_call(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, microseconds ? &timeout : NULL,
		context, context ? &in_handler : NULL);
}

void threads_sleep_in(const void *context, const uint32_t *word, uint32_t value,
	unsigned microseconds)
{
	struct threads_sleeper *s = sleeper_add(context);

	sleep_marked(context, word, value, microseconds);
	sleeper_remove(s);
}

void threads_sleep(const uint32_t *word, uint32_t value, unsigned microseconds)
{
	sleep_marked(NULL, word, value, microseconds);
}

void threads_wake(uint32_t *word)
{
	__atomic_fetch_add(word, 1, __ATOMIC_SEQ_CST);
	sys_call(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX);
}

void threads_pause(unsigned microseconds)
{
	static const uint32_t never;

	threads_sleep(&never, 0, microseconds);
}

/* ---- where a thread is ---- */

/*
 * A line of a "syscall" file: a number in decimal (-1: no system call), the call's arguments if it
 * is one, the stack pointer and the program counter in hexadecimal.
 */
struct where {
	char line[LINE_ROOM];
	bool sleeps;
	long number;
	uint64_t state[ARCH_CALL_STATE]; /* arguments, stack pointer, program counter */
};

enum { WHERE_SP = 6, WHERE_PC = 7 };

static const char *read_hex(const char *s, uint64_t *value)
{
	for (*value = 0;; s++) {
		unsigned digit = (unsigned)*s - '0';

		if (digit > 9)
			digit = *s >= 'a' && *s <= 'f' ? (unsigned)*s - 'a' + 10 : 16;
		if (digit > 15)
			return s;
		*value = *value << 4 | digit;
	}
}

static void where_parse(struct where *w)
{
	bool no_call = *w->line == '-';
	const char *s = w->line + no_call;
	unsigned i = no_call ? WHERE_SP : 0;

	w->sleeps = *s >= '0' && *s <= '9';
	for (w->number = 0; *s >= '0' && *s <= '9'; s++)
		w->number = 10 * w->number + *s - '0';
	if (no_call)
		w->number = -1;
	memset(w->state, 0, sizeof(w->state));
	for (; i < ARCH_CALL_STATE && str_starts(s, " 0x"); i++)
		s = read_hex(s + 3, w->state + i);
}

/* A file of thread @tid, terminated. Its length; -ESRCH: the thread is gone; -EPERM. */
static long threads_read(int tid, const char *name, char *text, size_t room)
{
	char path[64];
	long got;
	int fd;

	str_print(path, sizeof(path), "/proc/self/task/%d/%s", tid, name);
	fd = sys_open(path, O_RDONLY, 0);
	if (fd < 0)
		return fd == -ENOENT || fd == -ESRCH ? -ESRCH : -EPERM;
	got = sys_read(fd, text, room - 1); /* such files are read whole */
	sys_close(fd);
	text[got > 0 ? got : 0] = 0;
	return got == -ESRCH || got > 0 ? got : -EPERM;
}

static int where_is(int tid, struct where *w)
{
	long got = threads_read(tid, "syscall", w->line, sizeof(w->line));

	if (got < 0)
		return (int)got;
	where_parse(w);
	return 0;
}

/* ---- asking a thread to sleep ---- */

static struct {
	uint32_t question; /* a futex: who was asked sleeps until it changes */
	struct signal_action program; /* libc's handler */
} hold;

/* What tells one system call from another; without its first argument, which not all CPUs keep. */
static uint32_t call_mark(const uint64_t state[ARCH_CALL_STATE])
{
	uint64_t mark = 1;

	for (unsigned i = 1; i < ARCH_CALL_STATE; i++)
		mark = (mark ^ state[i]) * 0x9e3779b97f4a7c15;
	return (uint32_t)(mark >> 32);
}

/* The asker puts the call that the thread sleeps in into the fields of the siginfo. */
static void restart_call(const siginfo_t *info, void *context)
{
	uint64_t state[ARCH_CALL_STATE];

	if (info->si_pid >= 0 && arch_ended_call(context, state)
		&& call_mark(state) == info->si_uid)
		arch_restart_call(context, info->si_pid, (uint64_t)info->si_value.sival_ptr);
}

static void on_question(int signal, siginfo_t *info, void *context)
{
	uint32_t question = (uint32_t)info->si_errno;

	if (info->si_code != SI_QUEUE) {
		signal_pass_on(&hold.program, signal, info, context);
		return;
	}
	restart_call(info, context);
	while (__atomic_load_n(&hold.question, __ATOMIC_SEQ_CST) == question)
		threads_sleep_in(context, &hold.question, question, 0);
}

/* @w: where it was seen last. */
static void ask(struct threads *t, int tid, const struct where *w)
{
	siginfo_t info = { .si_signo = SIGNAL_ASK, .si_code = SI_QUEUE };

	if (!t->asked && signal_take(SIGNAL_ASK, on_question, &hold.program))
		return;
	t->asked = true;
	info.si_errno = (int)hold.question;
	info.si_pid = w->sleeps ? (int)w->number : -1;
	info.si_uid = call_mark(w->state);
	info.si_value.sival_ptr = (void *)w->state[0];
	sys_call(SYS_rt_tgsigqueueinfo, sys_getpid(), tid, SIGNAL_ASK, &info);
}

void threads_let_go(struct threads *t)
{
	if (t->asked)
		threads_wake(&hold.question);
	t->asked = false;
}

/* ---- every thread ---- */

struct directory_entry {
	uint64_t inode, next;
	uint16_t size;
	uint8_t type;
	char name[];
};

static int compare_ids(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static bool has_id(const int *ids, size_t n, int id)
{
	size_t low = 0;

	while (low < n) {
		size_t middle = (low + n) / 2;

		if (ids[middle] == id)
			return true;
		if (ids[middle] < id)
			low = middle + 1;
		else
			n = middle;
	}
	return false;
}

static int threads_grow(struct threads *t)
{
	size_t room = t->nroom ? 2 * t->nroom : 256;
	int *ids = arena_alloc(t->arena, 3 * room * sizeof(*ids));

	if (!ids)
		return -ENOMEM;
	if (t->nlisted)
		memcpy(ids, t->listed, t->nlisted * sizeof(*ids));
	if (t->nseen)
		memcpy(ids + room, t->seen, t->nseen * sizeof(*ids));
	t->listed = ids;
	t->seen = ids + room;
	t->fresh = ids + 2 * room;
	t->nroom = room;
	return 0;
}

static int threads_add(struct threads *t, const char *name)
{
	int id = 0;

	if (*name == '.')
		return 0;
	while (*name >= '0' && *name <= '9')
		id = 10 * id + *name++ - '0';
	if (t->nlisted == t->nroom && threads_grow(t))
		return -ENOMEM;
	t->listed[t->nlisted++] = id;
	return 0;
}

static int threads_ready(struct threads *t)
{
	if (!t->text)
		t->text = arena_alloc(t->arena, TEXT_ROOM);
	if (!t->words)
		t->words = arena_alloc(t->arena, (CHUNK + ARCH_SAVED_WORDS) * sizeof(*t->words));
	return t->text && t->words && (t->nroom || !threads_grow(t)) ? 0 : -ENOMEM;
}

/* The calling thread must be among them: else this is the /proc of somebody else. */
static int threads_list(struct threads *t)
{
	int fd = sys_open("/proc/self/task", O_RDONLY | O_DIRECTORY, 0), err = 0;
	long got = 0;

	t->nlisted = 0;
	if (fd < 0)
		return -EPERM;
	while (!err && (got = sys_call(SYS_getdents64, fd, t->text, TEXT_ROOM)) > 0) {
		const struct directory_entry *e;

		for (long at = 0; at < got && !err; at += e->size) {
			e = (const void *)(t->text + at);
			err = threads_add(t, e->name);
		}
	}
	sys_close(fd);
	mem_sort(t->listed, t->nlisted, sizeof(*t->listed), compare_ids);
	if (!err && (got < 0 || !has_id(t->listed, t->nlisted, sys_gettid())))
		err = -EPERM;
	return err;
}

static bool seen_all(const struct threads *t)
{
	return t->nlisted == t->nseen
		&& !memcmp(t->listed, t->seen, t->nseen * sizeof(*t->seen));
}

static void find_fresh(struct threads *t)
{
	int self = sys_gettid();

	t->nfresh = 0;
	for (size_t i = 0; i < t->nlisted; i++)
		if (t->listed[i] != self && !has_id(t->seen, t->nseen, t->listed[i]))
			t->fresh[t->nfresh++] = t->listed[i];
}

/*
 * Have @look look at every thread, fresh ones together, until that fails. While threads end, the kernel may leave others out of
 * its listing; two listings in a row that are equal left none out: whoever was left out of the
 * first for the sake of a thread that ended would be new in the second, or that thread gone.
 */
static int threads_each(struct threads *t, int (*look)(struct threads *))
{
	int err = threads_ready(t);

	t->nseen = 0;
	for (unsigned pass = 0; pass < PASSES_MAX && !err; pass++) {
		int *seen = t->seen;

		err = threads_list(t);
		if (!err && seen_all(t))
			return 0;
		if (!err) {
			find_fresh(t);
			err = look(t);
		}
		seen = t->seen;
		t->seen = t->listed;
		t->nseen = t->nlisted;
		t->listed = seen;
	}
	return err ? err : -EBUSY;
}

/* ---- what they block ---- */

/* The number behind @key in a status file. */
static bool status_value(const char *text, const char *key, uint64_t *value)
{
	const char *found = str_find(text, key);

	if (found)
		read_hex(found + strlen(key), value);
	return found;
}

/* The signals that thread @tid blocks. One that has ended, but that the kernel still lists, has no memory
 * and will not hear anything: it blocks none. */
static int threads_blocked(struct threads *t, int tid, uint64_t *blocked)
{
	long got = threads_read(tid, "status", t->text, TEXT_ROOM);
	uint64_t seccomp;

	*blocked = 0;
	if (got < 0)
		return got == -ESRCH ? 0 : (int)got;
	if (!str_find(t->text, "\nVmSize:"))
		return 0;
	if (!status_value(t->text, "\nSigBlk:\t", blocked))
		return -EPERM;
	if (status_value(t->text, "\nSeccomp:\t", &seccomp) && seccomp == 1)
		t->strict = true;
	return 0;
}

static bool can_be_asked(const struct threads *t, uint64_t blocked)
{
	return !t->strict && !(blocked & SIGNAL_BIT(SIGNAL_ASK));
}

/* A child may be running on the memory of its parent, which sleeps: nobody knows where. */
static bool lends_its_memory(const struct where *w)
{
#ifdef SYS_vfork
	if (w->number == SYS_vfork)
		return true;
#endif
	return w->number == SYS_clone || w->number == SYS_clone3;
}

static int hold_if_deaf(struct threads *t, int tid)
{
	uint64_t blocked;
	struct where w;
	int err = threads_blocked(t, tid, &blocked);

	if (err || !(t->everyone || blocked & SIGNAL_BIT(SIGTRAP)))
		return err;
	if (!can_be_asked(t, blocked))
		return -EBUSY;
	err = where_is(tid, &w);
	if (!err && t->everyone && lends_its_memory(&w))
		return -EBUSY;
	if (!err)
		ask(t, tid, &w);
	return err == -ESRCH ? 0 : err;
}

static int look_deaf(struct threads *t)
{
	int err = 0;

	for (size_t i = 0; i < t->nfresh && !err; i++)
		err = hold_if_deaf(t, t->fresh[i]);
	return err;
}

static int find_deaf(struct threads *t)
{
	int err = 0;

	for (size_t i = 0; i < t->nfresh && !err; i++) {
		uint64_t blocked;

		err = threads_blocked(t, t->fresh[i], &blocked);
		if (!err && blocked & SIGNAL_BIT(SIGTRAP))
			err = -EBUSY;
	}
	return err;
}

int threads_none_deaf(struct threads *t)
{
	return threads_each(t, find_deaf);
}

int threads_hold_deaf(struct threads *t)
{
	t->strict = false;
	return threads_each(t, look_deaf);
}

bool threads_alone(const struct threads *t)
{
	return t->nlisted == 1;
}

/* ---- where they are ---- */

/* False also where a range of several is noted as busy. */
static bool inside(const struct threads *t, uint64_t address)
{
	size_t low = 0, high = t->nranges, middle = 0;

	if (!high || address < t->ranges[0].lo || address >= t->ranges[high - 1].hi)
		return false;
	while (low < high) {
		middle = (low + high) / 2;
		if (address < t->ranges[middle].lo)
			high = middle;
		else if (address >= t->ranges[middle].hi)
			low = middle + 1;
		else
			break;
	}
	if (low < high && t->busy)
		t->busy[middle] = true;
	return low < high && !t->busy;
}

/* The parts of stacks that a thread may return through. */
struct stacks {
	struct {
		uint64_t lo, hi;
	} list[STACKS_MAX];
	size_t count;
	bool complete; /* all are known */
};

/* The end of the mapping that @address is in; 0: it is in none. */
static uint64_t mapping_end(struct threads *t, uint64_t address)
{
	const struct mapping *m;
	uint64_t end;

	if (!maps_query(address, &end))
		return end;
	/* Stacks are few and mapped long before: read again only for one that is new. */
	for (int again = 0; again < 2; again++) {
		m = t->maps.count ? maps_from(&t->maps, address) : NULL;
		if (m && m->lo <= address)
			return m->hi;
		if (!again && maps_read(&t->maps, "/proc/self/maps", t->arena))
			break;
	}
	return 0;
}

static void stacks_add(struct threads *t, struct stacks *s, uint64_t sp)
{
	uint64_t end;

	for (size_t i = 0; i < s->count; i++)
		if (sp >= s->list[i].lo && sp < s->list[i].hi)
			return;
	end = mapping_end(t, sp);
	if (!end || s->count == STACKS_MAX) {
		s->complete = false;
		return;
	}
	s->list[s->count].lo = sp & ~7ull;
	s->list[s->count++].hi = end - sp > STACK_MAX ? sp + STACK_MAX : end;
}

/* Does a word of [@lo, @hi) lead inside? Notes the stacks that signals interrupted. */
static bool stack_inside(struct threads *t, struct stacks *s, uint64_t lo, uint64_t hi)
{
	for (uint64_t at = lo; at < hi; at += CHUNK * 8) {
		size_t want = (CHUNK + ARCH_SAVED_WORDS) * 8, n;
		long got = sys_call(SYS_pread64, t->mem, t->words,
			hi - at < want ? hi - at : want, at);

		if (got <= 0)
			return false; /* unmapped by now */
		n = (size_t)got / 8;
		memset(t->words + n, 0, want - n * 8);
		for (size_t i = 0; i < n && i < CHUNK; i++) {
			uint64_t sp = arch_saved_sp(t->words + i);

			if (inside(t, t->words[i]))
				return true;
			if (sp)
				stacks_add(t, s, sp);
		}
	}
	return false;
}

/* Does code that goes on at @pc with @sp run inside, or may it return there? */
static bool may_be_inside(struct threads *t, uint64_t pc, uint64_t sp)
{
	struct stacks s = { .complete = true };

	if (!t->nranges)
		return false;
	if (inside(t, pc))
		return true;
	stacks_add(t, &s, sp);
	for (size_t i = 0; i < s.count; i++)
		if (stack_inside(t, &s, s.list[i].lo, s.list[i].hi))
			return true;
	return !s.complete;
}

/*
 * Where a thread goes on, whose last two arguments of a futex call say that it is in a handler of
 * ours: where it was interrupted. In between is nothing but the signal frame, which has parts that
 * the kernel does not write, and frames of ours; what an earlier signal frame has left there may
 * look like anything.
 */
static void leave_handler(const struct threads *t, struct where *w)
{
	uint64_t context[ARCH_CONTEXT_SIZE / 8];

	if (w->number != SYS_futex || w->state[5] != (uint64_t)&in_handler
		|| sys_call(SYS_pread64, t->mem, context, sizeof(context), w->state[4])
			!= sizeof(context))
		return;
	w->state[WHERE_PC] = arch_pc(context);
	w->state[WHERE_SP] = arch_sp(context);
}

/* Judge a thread that sleeps. -EAGAIN: it has moved meanwhile. */
static int judge(struct threads *t, int tid, struct where *w)
{
	struct where now;
	bool is_inside;
	int err;

	leave_handler(t, w);
	is_inside = w->state[WHERE_PC]
		&& may_be_inside(t, w->state[WHERE_PC], w->state[WHERE_SP]);
	err = where_is(tid, &now);
	if (err)
		return err;
	if (!str_eq(now.line, w->line))
		return -EAGAIN;
	return is_inside || lends_its_memory(w) ? -EBUSY : 0;
}

/* Judge a thread that is in a handler of ours. -EAGAIN: it is not, or has left meanwhile. */
static int judge_sleeper(struct threads *t, int tid)
{
	const struct threads_sleeper *s = sleeper_find((uint32_t)tid);
	uint64_t context = s ? __atomic_load_n(&s->context, __ATOMIC_ACQUIRE) : 0;
	uint64_t words[ARCH_CONTEXT_SIZE / 8];
	uint32_t times;
	bool is_inside;

	if (!context)
		return -EAGAIN;
	times = __atomic_load_n(&s->times, __ATOMIC_ACQUIRE);
	if (sys_call(SYS_pread64, t->mem, words, sizeof(words), context) != sizeof(words))
		return -EAGAIN;
	is_inside = may_be_inside(t, arch_pc(words), arch_sp(words));
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&s->context, __ATOMIC_RELAXED) != context
		|| __atomic_load_n(&s->times, __ATOMIC_RELAXED) != times
		|| __atomic_load_n(&s->tid, __ATOMIC_RELAXED) != (uint32_t)tid)
		return -EAGAIN;
	return is_inside ? -EBUSY : 0;
}

/* One look at thread @tid. -EAGAIN: it runs. */
static int look_once(struct threads *t, int tid, bool asks)
{
	struct where w;
	uint64_t blocked;
	int err = judge_sleeper(t, tid);

	if (err != -EAGAIN)
		return err;
	err = where_is(tid, &w);

	if (!err)
		err = w.sleeps ? judge(t, tid, &w) : -EAGAIN;
	if (err == -EAGAIN && asks && !threads_blocked(t, tid, &blocked)
		&& can_be_asked(t, blocked))
		ask(t, tid, &w);
	return err == -ESRCH ? 0 : err;
}

/* Those that run stay. */
static int look_at_fresh(struct threads *t, bool asks)
{
	size_t n = 0;
	int err = 0;

	for (size_t i = 0; i < t->nfresh && (!err || err == -EAGAIN); i++) {
		err = look_once(t, t->fresh[i], asks);
		if (err == -EAGAIN)
			t->fresh[n++] = t->fresh[i];
	}
	t->nfresh = n;
	return err == -EAGAIN ? 0 : err;
}

static int look_where(struct threads *t)
{
	int err = 0;

	for (unsigned looks = 0; looks < LOOKS_MAX && t->nfresh && !err; looks++) {
		if (looks >= LOOKS_QUICK)
			threads_pause(LOOK_US);
		err = look_at_fresh(t, looks == LOOKS_FREE);
	}
	return err ? err : t->nfresh ? -EBUSY : 0;
}

int threads_outside(struct threads *t)
{
	return threads_each(t, look_where);
}

int threads_self_outside(struct threads *t, const void *frame)
{
	uint64_t sp = (uint64_t)(uintptr_t)frame;
	int err = threads_ready(t);

	return err ? err : may_be_inside(t, sp, sp) ? -EBUSY : 0;
}
