/* SPDX-License-Identifier: MIT */
/*
 * Expectations (include/ftr/ftr.h), on top of public probes. What a test says is written outside of
 * handlers, under a lock, and read by them; what they see is in struct expect_state, which a fork
 * wipes. Handlers take no lock: numbers are atomic, and the one call of each failure that a message
 * tells of is written by whoever claims it.
 */
#ifndef TRACER_EXPECT_H
#define TRACER_EXPECT_H

#include "signature.h"

#define EXPECT_CONDITIONS 16
#define EXPECT_STEPS	  64
#define EXPECT_LOG	  32 /* calls that a message about an order lists */
#define EXPECT_STACK	  24
#define EXPECT_TEXT	  44 /* bytes of a string that messages show */
#define EXPECT_BYTES	  4096
#define EXPECT_KEPT	  31 /* calls in progress whose arguments are kept */

/* Argument n is at [n], the result at [SIGNATURE_MAX]. */
struct expect_values {
	uint32_t known, readable; /* a bit for each; readable: a string, in texts */
	uint64_t values[SIGNATURE_MAX + 1];
	char texts[SIGNATURE_MAX + 1][EXPECT_TEXT + 4]; /* "..." where it was cut off */
};

/* A call that a message tells of. */
struct expect_call {
	uint32_t state; /* enum expect_call_state */
	int thread;
	uint64_t number; /* which of the calls that are counted, from 1 */
	const struct ftr_expect *expect;
	const struct ftr_function *function;
	bool returned;
	bool arguments; /* they are known */
	struct expect_values values;
	const void *stack[EXPECT_STACK];
	unsigned nstack;
};

enum expect_call_state { CALL_NONE, CALL_CLAIMED, CALL_COMPLETE };

struct expect_failure {
	uint64_t calls; /* that failed so */
	struct expect_call first;
};

/* Arguments of a call in progress, in case that something is wrong with its result. */
struct expect_kept {
	uint32_t used;
	struct expect_values values;
};

/* Written by handlers; wiped by a fork. */
struct expect_state {
	uint64_t calls;
	struct expect_failure conditions[EXPECT_CONDITIONS];
	struct expect_failure excess; /* beyond the most that are expected */
	struct expect_kept kept[EXPECT_KEPT];
};

enum expect_kind {
	KIND_INTEGER,
	KIND_DOUBLE,
	KIND_STRING,
	KIND_BYTES,
	KIND_THREAD,
	KIND_PREDICATE,
	KIND_DEPTH,
};

struct expect_condition {
	enum expect_kind kind;
	enum ftr_how how;
	unsigned n;	/* of the argument, or FTR_RESULT */
	uint64_t value; /* or thread, or depth */
	const uint8_t *bytes; /* of a string with its end */
	size_t size;
	ftr_predicate *test;
	void *data;
	const char *words;
	bool lacks; /* what it compares with */
};

/* What cannot be watched as the test wants it. */
struct expect_mistake {
	struct expect_mistake *next;
	const char *text;
};

/* Written by handlers; wiped by a fork. */
struct expect_progress {
	uint64_t word; /* calls seen << 32 | EXPECT_BROKEN | steps done */
	uint8_t log[EXPECT_LOG]; /* which step's expectation was called, + 1 */
	struct expect_call offender; /* the call that broke a strict order */
};
#define EXPECT_BROKEN 0x10000u

struct expect_order {
	struct expect_order *next;
	const char *place; /* "file:line: ", or "" */
	struct ftr_expect *steps[EXPECT_STEPS];
	unsigned n;
	bool strict;
	struct expect_progress *progress;
};

/* An order that an expectation is part of. */
struct expect_link {
	struct expect_link *next;
	struct expect_order *order;
};

struct ftr_expect {
	struct ftr_expect *next;
	struct arena arena; /* all that belongs to it */
	const char *place;
	const char *name; /* for messages */
	struct ftr_probe *probe; /* NULL: none could be attached */
	struct signature signature;
	bool entry_only;
	bool at_return; /* calls are counted when they return */
	bool keeps;	/* conditions on results: arguments are kept for messages */
	bool apart;	/* what is looked at takes system calls, or predicates */
	uint64_t least, most;
	uint32_t nconditions; /* written last */
	struct expect_condition conditions[EXPECT_CONDITIONS];
	struct expect_link *orders;
	struct expect_mistake *mistakes;
	struct expect_state *state;
};

/* The handlers. @data: struct ftr_expect. */
void expect_entered(struct ftr_call *call, void *data);
void expect_returned(struct ftr_call *call, void *data);

/* Messages, made in @arena; NULL at the end of the list. */
struct expect_message {
	struct expect_message *next;
	const char *text;
};
struct expect_messages {
	struct arena *arena;
	struct expect_message *first, **last;
	int count; /* failures, with those that there was no memory to tell of */
};
struct describer;
void expect_tell(const struct ftr_expect *expect, struct expect_messages *messages,
	struct describer *describer);
void expect_tell_lost(uint32_t lost, struct expect_messages *messages);
void expect_tell_order(const struct expect_order *order, struct expect_messages *messages,
	struct describer *describer);

#endif
