/* SPDX-License-Identifier: MIT */
/*
 * Statically defined probes (sys/sdt.h, "USDT"): a nop in the code and a note in .note.stapsdt that
 * says where it is and where the probe's arguments are at that moment. Pure; for every CPU. The
 * files are not trusted.
 */
#ifndef TRACER_STAP_H
#define TRACER_STAP_H

#include "elffile.h"

struct stap_probe {
	const char *provider, *name, *args; /* terminated, in the file's bytes */
	uint64_t addr;	    /* link-time, of the nop */
	uint64_t semaphore; /* link-time, of a 16-bit counter of tracers; 0: none */
};

/*
 * The next probe of @elf; *@at is 0 before the first call. False: there is none. What is not
 * understood is skipped.
 */
bool stap_next(const struct elffile *elf, uint64_t *at, struct stap_probe *probe);

#define STAP_ARGS_MAX 12 /* of sys/sdt.h */

enum stap_kind {
	STAP_UNKNOWN,  /* a form that is not known here */
	STAP_CONSTANT, /* value */
	STAP_REGISTER, /* base, from bit `shift` on */
	STAP_MEMORY,   /* at base + index * scale + value, + symbol's address */
};

#define STAP_NO_REGISTER 0xff
#define STAP_FLOAT_REGISTER 64 /* and above: floating-point and vector registers */

/*
 * Registers have their numbers of the CPU's own encoding; arm64: 31 is sp; those for floating point
 * are STAP_FLOAT_REGISTER + number.
 */
struct stap_arg {
	uint8_t kind;
	uint8_t size; /* 1, 2, 4 or 8 bytes */
	bool is_signed, is_float;
	uint8_t base, index; /* or STAP_NO_REGISTER */
	uint8_t scale, shift;
	int64_t value;
	const char *symbol; /* in the text, not terminated; NULL: none */
	uint8_t symbol_len;
	bool low; /* only the low 12 bits of value and symbol's address count: arm64, behind adrp */
};

/*
 * Take the arguments' description apart, for a machine (EM_*). Returns how many there are; one
 * that is not understood is STAP_UNKNOWN and does not spoil the others.
 */
unsigned stap_parse(uint16_t machine, const char *text, struct stap_arg args[STAP_ARGS_MAX]);

/* Cut a value as read (zero-extended or not) to the argument's size and sign. */
int64_t stap_extend(const struct stap_arg *arg, uint64_t raw);

/* The bits of the double that is equal to the argument, a float or a double, whose bits are @raw. */
uint64_t stap_double(const struct stap_arg *arg, uint64_t raw);

#endif
