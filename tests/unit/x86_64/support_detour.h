/* SPDX-License-Identifier: MIT */
/*
 * Runs small functions with given registers as they are, and once more through a detour that the
 * emitter has written, in a process as it sees it: with records, a shadow stack and the real slow
 * paths. x86_64 only.
 */
#ifndef UNIT_SUPPORT_DETOUR_H
#define UNIT_SUPPORT_DETOUR_H

#include "arch/x86_64/x86.h"
#include "rethook/mirror.h"
#include "rethook/shadow.h"
#include "support_random.h"
#include <criterion/criterion.h>

#define AREA	 0x40000u
#define DATA	 0x800u	  /* of a function's text: a constant, and helpers behind it */
#define HELPER	 0x900u
#define COMMON	 0x10000u /* in the area */
#define DETOUR	 0x20000u
#define SECRET	 0x1122334455667788ull
#define FLAGS	 0x8d5u /* CF PF AF ZF SF OF */

#define IDS	 64
#define ROUNDS	 20
#define SEED	 20250304u
#define BIAS	 0x7000 /* run-time minus link-time addresses */

struct cpu {
	uint64_t regs[16]; /* as they are numbered; not rsp */
	uint64_t flags;
	uint8_t xmm[16][16];
	uint64_t arguments[4]; /* on the stack */
	uint64_t below;	       /* rsp after the return minus rsp before the call */
};

/* Call @function with that state, and take what it leaves. */
void run_cpu(struct cpu *cpu, uint64_t function);

/* With vector and floating-point registers from and to here, in the format of XSAVE, 64-byte aligned;
 * NULL: xmm registers alone. */
extern uint8_t *run_state;
#define RUN_STATE_SIZE 4096
#define RUN_STATE_MASK 0xe7

/* Random registers; rdi is small. */
void randomize(struct cpu *cpu);

/* Assert that all a program can see is the same. */
void same(const char *name, const char *how, const struct cpu *expected, const struct cpu *found);

/* ---- functions ---- */

struct row {
	const char *name;
	const char *code;
	uint8_t size;
	uint8_t choice, offset, len;
	bool flags_in;
};
#define CODE(text) .code = text, .size = sizeof(text) - 1

#define ROWS 20
extern const struct row rows[ROWS];
extern const uint8_t helper[6];

/* ---- the process that detours run in ---- */

extern uint8_t *area;
extern struct func_record records[4][IDS];
extern int attached, lost; /* threads; calls: else asserted to be 0 */
extern unsigned slow_entries, slow_exits, watched;
extern const struct detour_info *infos[IDS]; /* isa_env.infos */
extern bool may_lose;
extern struct isa_env env;
extern struct isa_common common;

void begin(enum detour_mode mode);

struct traced {
	struct isa_text text;
	struct isa_func func;
	struct isa_site site;
	struct isa_module module;
	struct isa_emit in;
	struct isa_detour detour;
	struct isa_patch patches[2];
	uint64_t start; /* where it runs */
};


/* Put row @r's function into the area and describe it. */
void place(struct traced *t, const struct row *r, uint32_t id);
void emit(struct traced *t, const char *name);
void patch(struct traced *t, const char *name);

/* Run @r as it is and traced, ROUNDS times, from the same states. */
void compare(struct traced *t, const struct row *r, const char *how);

#endif
