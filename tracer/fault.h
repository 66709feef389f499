/* SPDX-License-Identifier: MIT */
/* Overrides (ftr_override() in include/ftr/ftr.h): which calls fail. */
#ifndef TRACER_FAULT_H
#define TRACER_FAULT_H

#include "../include/ftr/ftr.h"
#include "../arch/mem.h"

/* Code that callers lie in, [lo, hi). */
struct fault_range {
	uint64_t lo, hi;
};

struct fault {
	struct arena arena; /* all of it lives here */
	char type;	    /* of the result; 'i', 'd' or 'f' */
	uint64_t result;    /* its bits */
	int error;
	uint64_t from, to, every;
	uint64_t chance; /* of 2^64; ~0: all */
	uint64_t seed;
	bool limited; /* to these callers, sorted and apart */
	struct fault_range *callers;
	size_t ncallers;
	uint64_t *seen; /* calls so far; wiped by a fork */
};

/* 0 with *@fault, or -errno with *@why. */
int fault_make(const struct ftr_fault *wanted, struct fault **fault, const char **why);
void fault_free(void *fault);

/* Does call @number (from 1) fail? */
bool fault_chooses(const struct fault *fault, uint64_t number);

/* Is return address @caller in one of the callers? */
bool fault_concerns(const struct fault *fault, uint64_t caller);

#endif
