/* SPDX-License-Identifier: MIT */
/* How arguments and results are read and printed: "i(wzp)", see ftr_expect_at() in ftr.h. */
#ifndef TRACER_SIGNATURE_H
#define TRACER_SIGNATURE_H

#include "../include/ftr/ftr.h"
#include "../arch/mem.h"

#define SIGNATURE_MAX 12 /* parameters */

struct signature {
	unsigned n;		     /* parameters */
	unsigned fixed;		     /* those before the '.'; n where there is none */
	char letters[SIGNATURE_MAX]; /* ours; 's' for every s<n> */
	char result;		     /* 0: none */
	bool none;		     /* nothing is known of arguments and result */
	char types[64];		     /* all parameters as ftr_argument() takes them */
};

/* Parse @text; NULL: none. False when it is wrong. */
bool signature_parse(struct signature *signature, const char *text);

/* The letter of argument @n, or of the result for FTR_RESULT; 0: there is none. */
char signature_letter(const struct signature *signature, unsigned n);

/* A kind of value that is compared in one way: 'i' integer, 'd' floating point, 0 other. */
char signature_kind(char letter);

/* Argument @n, or the result, as 64 bits: an integer sign-extended, a float as a double. False when
 * it has another kind, or cannot be found. */
bool signature_value(const struct signature *signature, struct ftr_call *call, unsigned n,
	uint64_t *value);

/* Cut @value to the width of @letter, with its sign. */
uint64_t signature_cut(char letter, uint64_t value);

/* Print a value of @letter. For 'z' @value is the address and @text the string, or NULL when it could
 * not be read. Returns the length. */
size_t signature_print(char *out, size_t size, char letter, uint64_t value, const char *text);

#endif
