/* SPDX-License-Identifier: MIT */
/*
 * ftr: count, watch, order and break function calls of the process you are in.
 *
 *	#include <assert.h>
 *	#include <ftr/ftr.h>
 *	#include <stdlib.h>
 *
 *	int main(void)
 *	{
 *		struct ftr_counts seen;
 *		struct ftr_probe *probe;
 *
 *		assert(ftr_attach(&(struct ftr_probe_spec){ .name = "qsort" }, &probe) == 1);
 *		sort_all();
 *		assert(!ftr_read(probe, &seen) && seen.calls == 3);
 *		ftr_detach(probe);
 *	}
 *
 *	cc -g test.c $(pkg-config --cflags --libs ftr)
 *
 * The library is linked (libftr.so or libftr.a), opened with dlopen, or preloaded; when it is
 * preloaded the tracer runs too, and both see the same functions. Without LD_PRELOAD nothing is
 * traced and no file is written: only what is attached here has any effect. From the first probe on
 * the library stays loaded, with the module that libftr.a is a part of.
 *
 * Words. A *probe* is one attachment: a set of functions and what to do at their calls. At the
 * *entry* of a call its arguments are known, at its *return* its results. A call that a longjmp, an
 * exception or the end of its thread leaves has no return: it is *unwound*.
 *
 * Errors are negative errno values, and then nothing has changed; ftr_error() says more in words.
 * Unless a function says otherwise it may be called from any thread and from handlers, but not from
 * signal handlers. Functions that only read numbers make no system call, take no lock and may be
 * called from signal handlers too. errno is left alone, always.
 *
 * C++: nothing here throws, and handlers must not let an exception out.
 */
#ifndef FTR_FTR_H
#define FTR_FTR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Programs that only want to know whether they are traced may declare the functions weak: define
 * FTR_WEAK before including this, and see null pointers where the library is missing. */
#ifdef FTR_WEAK
#define FTR_API __attribute__((weak, visibility("default")))
#else
#define FTR_API __attribute__((visibility("default")))
#endif

/* ---- which calls ---- */

struct ftr_probe;
struct ftr_call;

/*
 * A handler. @call is valid until it returns, in this thread only. Handlers run on the stack of the
 * thread that calls the function, wherever that is; they may call anything that the function's
 * caller could, traced functions included, and attach and detach, their own probe too. A handler
 * does not see the calls that it causes itself: while it runs, its probe is blind in this thread;
 * other probes are not. It must return: leaving it by longjmp or an exception is not allowed.
 *
 * What return handlers need to know of their calls takes address space of each thread, 64 MiB or more, of
 * which no more is used than the stack is deep. ftr_attach() is -ENOMEM where a thread has no room for it
 * (RLIMIT_AS); threads that begin later without room call entry handlers alone.
 */
typedef void ftr_handler(struct ftr_call *call, void *data);

/*
 * What ftr_attach() is told. All that is not set is zero; fields may be added at the end.
 *
 * Functions: either @function or @name (or both), and @module. Names are globs (fnmatch(3)) as in
 * FTR_FUNCTIONS: raw or demangled, demangled without its arguments; `name` alone means every
 * function of that name in every module. @module is a glob on a file's name or path.
 */
struct ftr_probe_spec {
	const void *function; /* begins here; of a data pointer to code as the linker gives it */
	const char *name;
	const char *module;

	ftr_handler *entry; /* called before the function runs; NULL: none */
	ftr_handler *ret;   /* called after it has returned; NULL: none */
	void *data;	    /* handed to both */

	int thread;	/* only calls by the thread of this id, as gettid(2) gives it; 0: all */
	unsigned flags; /* enum ftr_flags */
};

enum ftr_flags {
	/*
	 * The handlers, and all that they call, leave vector and floating-point registers alone
	 * (-mgeneral-regs-only; libc uses them even to compare bytes). Without it these registers
	 * are saved around handlers, unless the library can see by itself that they are not
	 * touched: a handler that calls nothing and uses none of them needs no flag.
	 */
	FTR_GENERAL_REGS = 1,
	/* Attach to as many of the functions as possible, and to none at all if there are none;
	 * without it one function that cannot be patched makes ftr_attach() fail. */
	FTR_BEST_EFFORT = 2,
};

/*
 * Attach a probe. From its return on every call of the functions, by any thread, is seen; calls
 * that are in progress have no entry and so no return.
 *
 * Entry handlers of a function run in the order in which they were attached, return handlers in the
 * opposite order, so that probes nest.
 *
 * Returns the number of functions, with the probe in *@probe. It stays until ftr_detach(). A child
 * of fork(2) has its parent's probes, with counts from 0; detaching in one does not affect the
 * other.
 *
 * -EINVAL: bad arguments, or @size of another version; -ENOENT: no such function;
 * -ENOTSUP: it cannot be patched, ftr_error() has the reason as ftr-report prints it; or it is the
 * kernel's (vDSO), or an indirect function (STT_GNU_IFUNC) of which it is not known what it stands for;
 * -ENODATA: its return cannot be seen (setjmp and its like), but a return handler is asked for;
 * -ERANGE: no free memory near enough; -EBUSY: a thread would not leave the function's first
 * instructions; -EPERM: the system does not allow it (seccomp, no new executable memory, no memfd,
 * RLIMIT_FSIZE below the size of a detour image); -ENOSPC: it has 61 return handlers already; -ENOMEM;
 * -EMFILE, -ENFILE: no file descriptor; -EIO: /proc cannot be read; -ELIBBAD: the loader refuses the
 * image of a detour; -ENOSYS: not on this CPU, or the kernel is older than 4.14 (MADV_WIPEONFORK).
 */
FTR_API int ftr_attach_sized(const struct ftr_probe_spec *spec, size_t size,
	struct ftr_probe **probe);
static inline int ftr_attach(const struct ftr_probe_spec *spec, struct ftr_probe **probe)
{
	return ftr_attach_sized(spec, sizeof(*spec), probe);
}

/*
 * Detach. When it returns, no handler of the probe runs in any other thread, and none will begin;
 * @probe is gone. Calls in progress return as if it had never been there. The functions' first bytes
 * are what they were before the first probe, once the last one is gone. (The library itself watches
 * _exit(), prctl(), syscall() and clone() of libc, from the first probe on.)
 *
 * Called from a handler it does not wait for the probe's handlers in other threads.
 * 0; -EINVAL: no such probe; -EPERM: system calls are forbidden by now, or no file can be opened, the
 * probe is silent but the code stays patched; -EBUSY, -ENOMEM, -EMFILE, -ENFILE, -EIO (as ftr_attach()):
 * the same until a probe of the function is next attached or detached.
 */
FTR_API int ftr_detach(struct ftr_probe *probe);

/* Why one of the functions that attach, detach, override, read and reset probes has last failed in this
 * thread, one line; valid until the next one fails. What is wrong with an expectation ftr_verify() tells. */
FTR_API const char *ftr_error(void);

/* The functions of a probe: index 0 to what ftr_attach() returned. Names and paths are valid while
 * the probe is. 0 or -ENOENT. */
struct ftr_function {
	const void *address;
	const char *name;   /* demangled where it was mangled; "module+0x1234" when it has none */
	const char *symbol; /* raw */
	const char *module; /* path */
};
FTR_API int ftr_probe_function(const struct ftr_probe *probe, unsigned index,
	struct ftr_function *function);

/* ---- counts ---- */

/* calls = returned + unwound + those in progress. */
struct ftr_counts {
	uint64_t calls;	   /* entries */
	uint64_t returned; /* calls that came back, or ended in a jump to another function */
	uint64_t unwound;  /* calls left by an exception, a longjmp or the end of their thread */
};

/*
 * What the probe has counted, all its functions together, since it was attached or reset; of a
 * probe for one thread, by that thread. Calls in progress on other threads may be in or not;
 * calls >= returned + unwound always. Where only entries can be seen, and where a probe has an
 * entry handler only, returned and unwound stay 0.
 * 0; -EINVAL: no such probe (one that was detached; another pointer is not always told from one).
 */
FTR_API int ftr_read(const struct ftr_probe *probe, struct ftr_counts *counts);

/* The same by thread @tid alone (gettid(2); 0: the calling one). A thread that has called none of
 * the functions has zeros. */
FTR_API int ftr_read_thread(const struct ftr_probe *probe, int tid, struct ftr_counts *counts);

/* Count from 0 again, the calls of a fault (ftr_override()) as well: its numbers begin with 1. Calls in
 * progress have no entry then, and so no return, which is exact while no thread is in the functions.
 * 0 or -EINVAL. */
FTR_API int ftr_reset(struct ftr_probe *probe);

/*
 * What the tracer and all probes have counted of the function that begins at address @function, in
 * this process so far. Calls that only entry handlers saw count as returned. In a program that is not position independent, the address of a library's
 * function may be that of a stub of the program.
 *
 * 0; -ENOENT: no traced function begins there; -ENODATA: its entries alone are recorded: calls is
 * filled in, the others are 0; -EINVAL: @counts is null.
 */
FTR_API int ftr_read_counts(const void *function, struct ftr_counts *counts);

/* ---- in a handler ---- */

FTR_API const struct ftr_function *ftr_call_function(const struct ftr_call *call);

/* Where the function was called from: its real return address. */
FTR_API const void *ftr_call_caller(const struct ftr_call *call);

/* A word of this call and this probe: zero at its entry, kept until its return. */
FTR_API uint64_t *ftr_call_word(struct ftr_call *call);

/* How many calls of the function enclose this one in this thread, of those that began while it had a
 * probe with a return handler (or was traced); 0 while it has none. */
FTR_API unsigned ftr_call_depth(const struct ftr_call *call);

/*
 * Where argument @n (from 0) is, by the rules of the C calling convention. @types describes the
 * parameters up to and including it, a letter each:
 *
 *	i  an integer or pointer of up to 64 bits (sign and unused upper bits are as passed)
 *	x  a 128-bit integer	f  float	d  double	D  long double
 *	v  a 128-bit vector	s<n>  a structure of n bytes that is passed in memory
 *	.  what follows is variadic
 *	&  first of all: the function returns a structure in memory
 *
 * Which structures are passed in memory is the CPU's rule; others are as many letters as they have
 * parts in registers. On arm64 those are meant that are passed by their address, and small ones of
 * integers; on powerpc all but those of floating-point numbers alone, and one that is partly in
 * registers and partly in memory has no place.
 *
 * What is written there is what the function gets; in a return handler the place may have been
 * used for something else by the function. NULL: @types is wrong, or the place is not known.
 * Valid until the handler returns; at most as large as the type.
 */
FTR_API void *ftr_argument(struct ftr_call *call, const char *types, unsigned n);

/* Shorthand for integers and pointers when all parameters up to @n are such. 0 when not known. */
FTR_API uint64_t ftr_argument_word(struct ftr_call *call, unsigned n);

/*
 * Where the result is, in a return handler; in an entry handler, where it will be taken from after
 * ftr_skip(). @type is one letter as above. What is written there is what the caller gets. A
 * structure returned in memory is where the caller wants it ('s'): at the address that is passed to
 * the function, which on arm64 an entry handler alone can tell. NULL as above.
 */
FTR_API void *ftr_result(struct ftr_call *call, char type);

/*
 * In an entry handler: do not run the function. Its caller gets what ftr_result() holds (zero
 * unless written) of the types that it was asked for, or else an integer zero. Other registers stay
 * as they are; ask for 'n' where the function is void: a caller that was optimised together with the
 * function (-O2) may keep something in any register that the function does not use.
 *
 * Entry handlers of later probes do not run; return handlers of earlier ones do, and what they write
 * there is what the caller gets.
 * 0; -EPERM: not in an entry handler.
 */
FTR_API int ftr_skip(struct ftr_call *call);

/* What errno shall be in the caller's thread after the call; for ftr_skip() and return handlers. */
FTR_API void ftr_set_errno(struct ftr_call *call, int error);

/* ---- static probes (USDT) ---- */

/*
 * Probes that a program or library declares itself, with the macros of sys/sdt.h: a nop in its code
 * and a note that says where its arguments are. `ftr-report --list-usdt FILE` lists them.
 *
 * A jump takes the place of the nop. Where there is no room for one (on x86_64, when the nop is one byte
 * and something may jump to what is behind it), it is a breakpoint: a hit is a SIGTRAP, from which the
 * thread comes back into code that calls the handler as the jump would, not within a signal handler.
 * Such a hit takes about a microsecond, and room for a signal frame on the thread's stack, or on its
 * signal stack if it has one. Returning from the signal, rt_sigreturn(2), is its one system call; others
 * make none.
 *
 * A breakpoint would end a thread that blocks SIGTRAP. Before a thread comes to block it, before the
 * program handles it or installs a handler during which it is blocked, and before the program may
 * forbid system calls (seccomp), all breakpoints are given up: the code of these probes becomes what it
 * was, and their handlers do not run any more. Other probes of the attachment go on.
 * ftr_usdt_detach() tells; afterwards, or beside it, one may attach again when SIGTRAP is not blocked.
 * This is seen by probes at sigaction(), pthread_sigmask(), sigsuspend(), setcontext() and the like in
 * libc, which stay from the first breakpoint on; a thread that blocks SIGTRAP by a system call
 * instruction of its own is seen when probes are attached, and not later.
 */
struct ftr_usdt;     /* an attachment */
struct ftr_usdt_hit; /* valid until the handler returns, in this thread only */

struct ftr_usdt_probe {
	const char *provider;
	const char *name;
	const char *module; /* path */
	const void *address; /* of the nop */
	unsigned arguments; /* how many it has */
};

/* As ftr_handler: it must return, may call anything that the code at the probe could, and does not
 * see what it causes itself. All registers are kept, vectors included, and errno. */
typedef void ftr_usdt_handler(struct ftr_usdt_hit *hit, void *data);

/*
 * Call @handler whenever one of the static probes runs. @provider, @name and @module (file name or
 * path) are globs; NULL: any. Their semaphores are raised until ftr_usdt_detach(): programs that
 * look at them prepare arguments only then. Modules stay loaded.
 *
 * Returns the number of places, which may be more than one for a name, with *@usdt; all or none.
 * -EINVAL: bad arguments; -ENOENT: there is no such probe; -ENOTSUP: one of them cannot be patched
 * without harm (it would need a breakpoint, and a thread blocks SIGTRAP, or the program handles it, or
 * it is in libc; or the patch of a function's entry covers it); -ERANGE: no free memory near enough;
 * -EBUSY, -EPERM, -ENOMEM, -EMFILE, -ENFILE, -EIO as ftr_attach(); -ENOSYS: not on this processor
 * (x86_64 without XSAVE) or kernel.
 */
FTR_API int ftr_usdt_attach(const char *provider, const char *name, const char *module,
	ftr_usdt_handler *handler, void *data, struct ftr_usdt **usdt);

/*
 * When it returns, the handler runs in no other thread and will not begin; @usdt is gone, and the
 * code of probes that nobody else watches is what it was. From a handler it does not wait for other
 * threads. 0; -ENODATA: as well, but breakpoints had been given up, so that hits may be missing;
 * -EBUSY, -EPERM as above: the handler is silent, but the code stays patched. Where system calls may be
 * forbidden by now (-EPERM) it does not wait for other threads either.
 */
FTR_API int ftr_usdt_detach(struct ftr_usdt *usdt);

/* g++ warns of a function that is called like its structure, as stat(2) is. */
#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#endif

/* Which probe it is. Valid as long as the process runs. */
FTR_API const struct ftr_usdt_probe *ftr_usdt_probe(const struct ftr_usdt_hit *hit);

#ifdef __cplusplus
#pragma GCC diagnostic pop
#endif

/*
 * Argument @n (from 0), sign- or zero-extended as the probe declares it. 0; -ENOENT: it has fewer;
 * -ENOTSUP: it is a floating-point number, or described in a way that is not known; -EFAULT: it is
 * in memory that cannot be read, which a system call tells; where those may be forbidden (seccomp) it is
 * read directly.
 */
FTR_API int ftr_usdt_argument(const struct ftr_usdt_hit *hit, unsigned n, int64_t *value);

/* The same of a float or double; here -ENOTSUP if it is neither. */
FTR_API int ftr_usdt_double(const struct ftr_usdt_hit *hit, unsigned n, double *value);

/* ---- call stacks ---- */

/*
 * In a handler: where the function was called from, caller first, as real return addresses. Stores
 * up to @n and returns how many. Makes no allocation, but may take the loader's lock and make
 * system calls; where those are forbidden by now (seccomp), on a small alternate signal stack, and
 * until ftr_call_stack_prepare() has been called, the caller is all.
 */
FTR_API unsigned ftr_call_stack(const struct ftr_call *call, const void **addresses, unsigned n);

/*
 * Load what ftr_call_stack() needs: libunwind, of which the program sees nothing. Done by
 * ftr_expect(), too. 0; -ENOENT: it is not installed; -EPERM: called from a handler, or system calls
 * may be forbidden by now (seccomp).
 */
FTR_API int ftr_call_stack_prepare(void);

/*
 * Say where @address lies, as "function+0x12 in file", of a return address as a call stack has it.
 * Reads files, so not from handlers. @text is cut off at @size and always terminated. 0; -ENOENT:
 * in no function, @text is the address itself or "file+0x1234"; -EPERM as above.
 */
FTR_API int ftr_describe(const void *address, char *text, size_t size);

/* ---- expectations ---- */

/*
 * What a test expects of calls, said before they happen:
 *
 *	struct ftr_expect *put = ftr_expect("kv_put", "w(pzz)");
 *	struct ftr_expect *sync = ftr_expect("fsync", "w(w)");
 *
 *	ftr_expect_calls(put, 2, 2);
 *	ftr_expect_string(put, FTR_MUST, 1, "key");
 *	ftr_expect_integer(put, FTR_MUST, FTR_RESULT, 0);
 *	ftr_expect_order(FTR_STRICT, put, put, sync);
 *	run();
 *	assert(ftr_verify(NULL, NULL) == 0);
 *
 * Nothing has to be checked on the way: an expectation that cannot be made (no such function, a
 * parameter that the signature does not have) is itself a failure that ftr_verify() reports, and
 * all functions accept a null expectation. They return 0 or -errno nevertheless. One that has ended
 * (ftr_verify(), ftr_forget()) must not be used any more; to change it is -EINVAL and a failure, too.
 *
 * They are made, changed and verified outside of handlers (else -EPERM); the calls may go on in any
 * thread. A forked child has its parent's expectations and has seen no calls.
 *
 * Once the program may forbid system calls (seccomp), expectations go on without any. They can be changed
 * as long as their memory has room (else -ENOMEM, or -EINVAL for a mistake that is not told), and
 * verified. New ones, and orders, cannot be made: that patches code and maps memory; ftr_verify() counts
 * them as failures.
 */
struct ftr_expect;

/*
 * Expect calls of the functions that @name matches (struct ftr_probe_spec): at least one, unless
 * ftr_expect_calls() says otherwise.
 *
 * @signature says how to read arguments and result: the letter of the result, none for void, and
 * those of the parameters in parentheses: "i(wzp)". NULL where neither matters. Letters are those of
 * ftr_argument(), and
 *
 *	b h w  an integer of 8, 16, 32 bits	p  a pointer (a 64-bit integer, printed in hexadecimal)
 *	z      a pointer to a terminated string, printed as text
 *
 * Up to 12 parameters. Integers are compared by their own width, whether signed or not. Strings and
 * bytes are read by a system call that tells a bad pointer, or directly where that is forbidden.
 *
 * The functions ending in _at take the place in the source that messages begin with (@file NULL:
 * none). Strings are copied. NULL: out of memory, which ftr_verify() reports as well.
 */
FTR_API struct ftr_expect *ftr_expect_at(const char *file, int line, const char *name,
	const char *signature);
#define ftr_expect(name, signature) ftr_expect_at(__FILE__, __LINE__, (name), (signature))

/* The same for all that a spec can say, except handlers. */
FTR_API struct ftr_expect *ftr_expect_spec_at(const char *file, int line,
	const struct ftr_probe_spec *spec, size_t size, const char *signature);
#define ftr_expect_spec(spec, signature)                                                           \
	ftr_expect_spec_at(__FILE__, __LINE__, (spec), sizeof(*(spec)), (signature))

/* From @least to @most calls. Never: 0, 0. At least once: 1, FTR_ANY. */
#define FTR_ANY UINT64_MAX
FTR_API int ftr_expect_calls(struct ftr_expect *expect, uint64_t least, uint64_t most);

/* What a condition is for. Conditions are tried in the order in which they were added, up to 16. */
enum ftr_how {
	FTR_MUST = 1,	  /* a call that does not meet it is a failure */
	FTR_MUST_NOT = 2, /* a call that meets it is a failure */
	FTR_WHEN = 3,	  /* calls that do not meet it are none of the expectation's */
	FTR_UNLESS = 4,	  /* calls that meet it are none of the expectation's */
};

/* @n of a condition on the result. A call that is unwound meets none, and none of its MUST fails;
 * with WHEN and UNLESS calls count when they return. */
#define FTR_RESULT 0xffffu

/*
 * Argument @n (from 0), or the result, is @value; the string @text; begins where @size bytes like
 * those at @bytes are, up to 4096; the number at @value (0.0 and -0.0 are equal, NaN and NaN too).
 * -EINVAL: the signature has no such parameter, or another type; -ENODATA: the function's return
 * cannot be seen; -ENOSPC: too many conditions.
 */
FTR_API int ftr_expect_integer(struct ftr_expect *expect, enum ftr_how how, unsigned n,
	int64_t value);
FTR_API int ftr_expect_string(struct ftr_expect *expect, enum ftr_how how, unsigned n,
	const char *text);
FTR_API int ftr_expect_bytes(struct ftr_expect *expect, enum ftr_how how, unsigned n,
	const void *bytes, size_t size);
FTR_API int ftr_expect_double(struct ftr_expect *expect, enum ftr_how how, unsigned n,
	const double *value);

/* The call is made by the thread of this id; 0: the thread that says so here. */
FTR_API int ftr_expect_thread(struct ftr_expect *expect, enum ftr_how how, int thread);

/*
 * @test returns other than 0. It is called as an entry handler, or with @n = FTR_RESULT as a return
 * handler, and may do what these may. Messages call it @words ("expected WORDS").
 */
typedef int ftr_predicate(struct ftr_call *call, void *data);
FTR_API int ftr_expect_predicate(struct ftr_expect *expect, enum ftr_how how, unsigned n,
	ftr_predicate *test, void *data, const char *words);

/* At most @most calls of a function are in progress in one thread at a time; 1: no recursion. */
FTR_API int ftr_expect_depth(struct ftr_expect *expect, unsigned most);

/*
 * The calls that the expectations count begin in the order of @steps, @n of them (up to 64), in
 * which one expectation may come several times. Other calls may come between, unless FTR_STRICT:
 * then these expectations have no other calls. What was called before this is not looked at.
 */
enum ftr_order_flags {
	FTR_STRICT = 1,
};
FTR_API int ftr_expect_order_at(const char *file, int line, unsigned flags,
	struct ftr_expect *const *steps, size_t n);
#ifndef __cplusplus
#define ftr_expect_order(flags, ...)                                                               \
	ftr_expect_order_at(__FILE__, __LINE__, (flags),                                           \
		(struct ftr_expect *const[]){__VA_ARGS__},                                         \
		sizeof((struct ftr_expect *const[]){__VA_ARGS__}) / sizeof(struct ftr_expect *))
#else
#define ftr_expect_order(flags, ...) ::ftr::order_at(__FILE__, __LINE__, (flags), __VA_ARGS__)
#endif

/* How many calls it has counted so far. */
FTR_API uint64_t ftr_expect_seen(const struct ftr_expect *expect);

/*
 * Check all expectations, tell what is not as expected, and end them: their functions are as they
 * were. Each failure is one @message, of several lines, without a newline at its end, valid until
 * @report returns; without @report it is written to standard error. Returns the number of failures;
 * -EPERM: called from a handler; -ENOMEM: there was no memory for any expectation, nor is there now.
 *
 * Where system calls may be forbidden (seccomp) nothing is written without @report, call stacks have
 * addresses and no names, the functions stay patched, and after 256 KiB of messages further failures are
 * counted, not told.
 */
typedef void ftr_report(const char *message, void *data);
FTR_API int ftr_verify(ftr_report *report, void *data);

/* End all expectations without a word. 0; -EPERM, -ENOMEM as ftr_verify(). */
FTR_API int ftr_forget(void);

/* ---- faults ---- */

/*
 * What calls get instead of being made. All that is not set is zero; fields may be added at the end.
 * Of the calls that @caller and @caller_module let through, counted from 1, those fail that all of
 * @from, @to, @every and @probability choose; the others are made.
 */
struct ftr_fault {
	char type;	 /* of the result: 0 or i: @value; d, f: @real; n: none (void). Else -EINVAL */
	uint64_t value;	 /* integer or pointer; a negative one is cast */
	double real;
	int error;	 /* what errno is; 0: it is left alone. Below 0 is -EINVAL, */
	uint64_t from;	 /* the first call; 0: 1 */
	uint64_t to;	 /* the last call; 0: no end. Before @from: -EINVAL */
	uint64_t every;	 /* of these the first and every @every-th behind it; 0: 1 */
	double probability; /* above 0, up to 1; 0: 1 */
	uint64_t seed;	    /* the same seed chooses the same calls by their number */
	/* Only calls from functions, or modules, that these globs match, and that are loaded now. */
	const char *caller;
	const char *caller_module;
};

/*
 * Make calls of the functions of @spec (without handlers) fail until ftr_detach(). Calls that ftr
 * makes for itself, or that a handler makes, are made: malloc can fail, too. ftr_reset() counts from call 1
 * again. Returns what ftr_attach() does. -ENOENT also: there is no such caller.
 */
FTR_API int ftr_override_sized(const struct ftr_probe_spec *spec, size_t spec_size,
	const struct ftr_fault *fault, size_t fault_size, struct ftr_probe **probe);
static inline int ftr_override(const struct ftr_probe_spec *spec, const struct ftr_fault *fault,
	struct ftr_probe **probe)
{
	return ftr_override_sized(spec, sizeof(*spec), fault, sizeof(*fault), probe);
}

/* The same in short: calls @from to @to (0: no end) of functions called @name return @value, with
 * errno @error. */
FTR_API int ftr_fail(const char *name, uint64_t value, int error, uint64_t from, uint64_t to,
	struct ftr_probe **probe);

/* ---- scopes ---- */

/*
 * A probe that is detached at the end of its block:
 *
 *	FTR_SCOPED struct ftr_probe *probe = NULL;
 */
#define FTR_SCOPED __attribute__((cleanup(ftr_scope_end)))
static inline void ftr_scope_end(struct ftr_probe **probe)
{
	if (*probe)
		ftr_detach(*probe);
}

/* The library's version, "0.1.0"; a constant string. */
FTR_API const char *ftr_version(void);

#ifdef __cplusplus
}

namespace ftr
{

/*
 * A probe that is detached at the end of its scope, with or without a fault. It is false when it
 * could not be attached; result() is what ftr_attach() or ftr_override() returned.
 */
class probe
{
      public:
	explicit probe(const ftr_probe_spec &spec) noexcept : result_(ftr_attach(&spec, &probe_))
	{
	}
	probe(const ftr_probe_spec &spec, const ftr_fault &fault) noexcept
	    : result_(ftr_override(&spec, &fault, &probe_))
	{
	}
	probe(const probe &) = delete;
	probe &operator=(const probe &) = delete;
	~probe()
	{
		if (*this)
			ftr_detach(probe_);
	}
	explicit operator bool() const noexcept
	{
		return result_ > 0;
	}
	int result() const noexcept
	{
		return result_;
	}
	ftr_probe *get() const noexcept
	{
		return probe_;
	}
	ftr_counts counts() const noexcept
	{
		ftr_counts counts = {};

		if (*this)
			ftr_read(probe_, &counts);
		return counts;
	}

      private:
	ftr_probe *probe_ = nullptr;
	int result_;
};

/* Forgets the expectations that its scope leaves unverified. */
struct expectations {
	expectations() = default;
	expectations(const expectations &) = delete;
	expectations &operator=(const expectations &) = delete;
	~expectations()
	{
		ftr_forget();
	}
};

template <typename... Steps>
int order_at(const char *file, int line, unsigned flags, Steps... steps) noexcept
{
	ftr_expect *const list[] = { steps... };

	return ftr_expect_order_at(file, line, flags, list, sizeof...(steps));
}

} // namespace ftr
#endif

#endif
