/* SPDX-License-Identifier: MIT */
/* Arguments and results of every type, read and changed, at entries, returns and after a skip. */
#include "check.h"
#include <errno.h>
#include <stdbool.h>

typedef float vector __attribute__((vector_size(16)));
typedef __int128 wide;

#if defined(__x86_64__)
#define EXTENDED_SIZE 10
#else
#define EXTENDED_SIZE 16
#endif

struct large {
	long a, b, c, d;
};

NOINLINE static long double extended(long double x, int n)
{
	return x * n;
}

NOINLINE static wide wides(long a, wide b, long c)
{
	return b + a + c;
}

NOINLINE static wide wide_in_memory(long a, long b, long c, long d, long e, wide x, long f)
{
	return x * f + a + b + c + d + e;
}

NOINLINE static vector vectors(double x, vector v)
{
	return v * (float)x;
}

NOINLINE static struct large structures(long n, struct large s)
{
	return (struct large){ s.a + n, s.b, s.c, s.d };
}

NOINLINE static float nine(float a, float b, float c, float d, float e, float f, float g, float h,
	float i)
{
	return a + b + c + d + e + f + g + h + 100 * i;
}

/* What is put in place of argument @n and of the result; a null pointer: nothing. */
struct change {
	const char *types;
	unsigned n;
	char type;
	size_t size; /* of both */
	const void *seen, *argument; /* what is expected there, and put there */
	const void *returned, *result;
	bool skip;
	bool general; /* vectors stay where they are, and the handlers must leave them alone */
	int calls;
};

/* Those of libc use vectors. */
static bool is_same(const volatile char *a, const volatile char *b, size_t size)
{
	size_t n = 0;

	while (n < size && a[n] == b[n])
		n++;
	return n == size;
}

static void copy(volatile char *to, const volatile char *from, size_t size)
{
	for (size_t i = 0; i < size; i++)
		to[i] = from[i];
}

static void at_entry(struct ftr_call *call, void *data)
{
	struct change *c = data;
	void *place = ftr_argument(call, c->types, c->n);

	c->calls++;
	CHECK(place, "no argument %u of \"%s\"", c->n, c->types);
	CHECK(is_same(place, c->seen, c->size), "argument %u of \"%s\"", c->n, c->types);
	if (c->argument)
		copy(place, c->argument, c->size);
	if (c->type == 's')
		*ftr_call_word(call) = (uint64_t)ftr_result(call, 's');
	if (!c->skip)
		return;
	place = ftr_result(call, c->type);
	CHECK(place, "no result '%c'", c->type);
	copy(place, c->result, c->size);
	CHECK_INT(ftr_skip(call), 0);
}

static void at_return(struct ftr_call *call, void *data)
{
	struct change *c = data;
	void *place = ftr_result(call, c->type);

	c->calls++;
#if defined(__aarch64__)
	/* Known at the entry only. */
	if (c->type == 's' && !place && !c->skip) {
		place = (void *)*ftr_call_word(call);
		CHECK(place);
	}
#endif
	CHECK(place, "no result '%c'", c->type);
	CHECK(is_same(place, c->returned, c->size), "result '%c' of \"%s\"", c->type, c->types);
	if (c->result)
		copy(place, c->result, c->size);
}

static struct ftr_probe *attach_change(void *function, struct change *c)
{
	struct ftr_probe *probe;

	CHECK_INT(ftr_attach((&(struct ftr_probe_spec){ .function = function, .entry = at_entry,
			    .ret = at_return, .data = c,
			    .flags = c->general ? FTR_GENERAL_REGS : 0 }), &probe), 1);
	return probe;
}

#define SAME(a, b) (!memcmp(&(a), &(b), sizeof(a)))

/*
 * @call's argument is seen to be @old and made @new; the result then is @then and made @last; and
 * @last without running it.
 */
#define CHANGES(type_name, letter, bytes, function, call, types_of, index, old, new, then, last)    \
	do {                                                                                       \
		type_name was_ = old, other_ = new, then_ = then, last_ = last, found_;            \
		struct change c_ = { .types = types_of, .n = index, .type = letter, .size = bytes, \
			.seen = &was_, .argument = &other_, .returned = &then_, .result = &last_ };\
		for (int general_ = 0; general_ < 2; general_++) {                                 \
			struct ftr_probe *p_;                                                      \
			c_.general = general_;                                                     \
			c_.skip = false;                                                           \
			c_.calls = 0;                                                              \
			p_ = attach_change((void *)function, &c_);                                 \
			found_ = call;                                                             \
			CHECK(!memcmp(&found_, &last_, bytes), "%s", #call);                       \
			CHECK_INT(c_.calls, 2);                                                    \
			c_.skip = true;                                                            \
			found_ = call;                                                             \
			CHECK(!memcmp(&found_, &last_, bytes), "%s, skipped", #call);              \
			CHECK_INT(c_.calls, 3);                                                    \
			CHECK_INT(ftr_detach(p_), 0);                                              \
		}                                                                                  \
	} while (0)

static void structure(void)
{
	struct large s = { 1, 2, 3, 4 }, other = { 5, 6, 7, 8 }, then = { 15, 6, 7, 8 };
	struct large last = { 9, 9, 9, 9 }, found;
	struct change c = { .types = "&is32", .n = 1, .type = 's', .size = sizeof(s), .seen = &s,
		.argument = &other, .returned = &then, .result = &last };
	struct ftr_probe *p = attach_change((void *)structures, &c);

	found = structures(10, s);
	CHECK(SAME(found, last));
	c.skip = true;
	found = structures(10, s);
	CHECK(SAME(found, last));
	CHECK_INT(ftr_detach(p), 0);
}

/* @data is the type to ask for; NULL: none. */
static void only_skips(struct ftr_call *call, void *data)
{
	if (data)
		CHECK(!ftr_result(call, *(const char *)data) == (*(const char *)data == 'n'));
	CHECK_INT(ftr_skip(call), 0);
}

static void skipped_are_zero(void)
{
	struct ftr_probe *a = attach(nine, only_skips, NULL, "d");
	struct ftr_probe *b = attach(wides, only_skips, NULL, "x");

	CHECK(nine(1, 2, 3, 4, 5, 6, 7, 8, 9) == 0);
	CHECK(wides(1, 2, 3) == 0);
	CHECK_INT(ftr_detach(a), 0);
	CHECK_INT(ftr_detach(b), 0);
}

/* What a function may return in. */
struct registers {
	uint64_t general[2];
	double vector;
};

NOINLINE static void nothing(void)
{
	__asm__ volatile("nop; nop; nop; nop; nop");
}

static struct registers call_nothing(void)
{
	struct registers r;

	nothing(); /* so that the compiler makes a frame */
#if defined(__x86_64__)
	register uint64_t first __asm__("rax") = 1;
	register uint64_t second __asm__("rdx") = 2;
	register double third __asm__("xmm0") = 3;

	__asm__ volatile("sub $128, %%rsp; call *%3; add $128, %%rsp"
			 : "+r"(first), "+r"(second), "+x"(third)
			 : "b"(nothing)
			 : "memory", "cc");
#elif defined(__aarch64__)
	register uint64_t first __asm__("x0") = 1;
	register uint64_t second __asm__("x1") = 2;
	register double third __asm__("d0") = 3;

	__asm__ volatile("blr %3"
			 : "+r"(first), "+r"(second), "+w"(third)
			 : "r"(nothing)
			 : "memory", "cc", "x30", "x16", "x17");
#else
	register uint64_t first __asm__("r3") = 1;
	register uint64_t second __asm__("r4") = 2;
	register double third __asm__("fr1") = 3;

	__asm__ volatile("mr 12, %3; mtctr 12; bctrl"
			 : "+r"(first), "+r"(second), "+d"(third)
			 : "r"(nothing)
			 : "memory", "cr0", "lr", "ctr", "r0", "r12", "r11");
#endif
	r = (struct registers){ { first, second }, third };
	return r;
}

/* A caller may know which registers the function does not touch (-fipa-ra). */
static void skipped_leave_others(void)
{
	static const struct {
		char type[2];
		struct registers after;
	} rows[] = {
		{ "", { { 0, 2 }, 3 } },
		{ "n", { { 1, 2 }, 3 } },
		{ "i", { { 0, 2 }, 3 } },
		{ "x", { { 0, 0 }, 3 } },
		{ "d", { { 1, 2 }, 0 } },
		{ "f", { { 1, 2 }, 0 } },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct registers *after = &rows[i].after;
		struct ftr_probe *p = attach((void *)nothing, only_skips, NULL,
			*rows[i].type ? (void *)rows[i].type : NULL);
		struct registers r = call_nothing();

		CHECK_INT(ftr_detach(p), 0);
		CHECK(r.general[0] == after->general[0] && r.general[1] == after->general[1]
				&& r.vector == after->vector,
			"'%s': %d %d %d", rows[i].type, (int)r.general[0], (int)r.general[1],
			(int)r.vector);
	}
}

int main(void)
{
	CHANGES(long double, 'D', EXTENDED_SIZE, extended, extended(1.5L, 3), "Di", 0, 1.5L, 2.5L, 7.5L, -1.0L);
	CHANGES(wide, 'x', 16, wides, wides(1, ((wide)5 << 64) + 2, 3), "ixi", 1, ((wide)5 << 64) + 2,
		((wide)7 << 64) + 1, ((wide)7 << 64) + 5, (wide)3 << 70);
	CHANGES(wide, 'x', 16, wide_in_memory, wide_in_memory(1, 1, 1, 1, 1, 7, 2), "iiiiixi", 5, 7,
		(wide)1 << 80, ((wide)1 << 81) + 5, -1);
	CHANGES(vector, 'v', 16, vectors, vectors(2, ((vector){ 1, 2, 3, 4 })), "dv", 1,
		((vector){ 1, 2, 3, 4 }), ((vector){ 4, 3, 2, 1 }), ((vector){ 8, 6, 4, 2 }),
		((vector){ 0.5, 0, 0, 1 }));
	CHANGES(float, 'f', 4, nine, nine(1, 1, 1, 1, 1, 1, 1, 1, 1), "fffffffff", 8, 1, 2, 208, 0.25f);
	structure();
	skipped_are_zero();
	skipped_leave_others();
	puts("ok");
	return 0;
}
