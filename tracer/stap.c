/* SPDX-License-Identifier: MIT */
/*
 * The note's contents: the addresses of the nop, of .stapsdt.base and of the semaphore as they were
 * linked, then provider, name and arguments. A tool that moved the text afterwards (prelink) moved
 * .stapsdt.base with it, but did not change the note: the difference is to be added.
 *
 * An argument is SIZE@OPERAND, where the operand is what the compiler prints into assembly:
 *
 *	x86_64     %eax  $5  8(%rbp)  (%rax,%rcx,8)  sym+8(%rip)
 *	arm64      x0  w1  5  [x0]  [sp, 16]  [x0, x1, lsl 3]
 *	powerpc    3 (a register)  i5 (a constant)  16(1)  3,4 (their sum)
 */
#include "../arch/mem.h"
#include "stap.h"
#include <elf.h>

#define NOTE_TYPE 3

/* ---- notes ---- */

static uint64_t aligned(uint64_t n)
{
	return (n + 3) & ~3ull;
}

/* The terminated string at *@at, which is moved behind it; NULL: none. */
static const char *take_string(const uint8_t *desc, uint64_t size, uint64_t *at)
{
	const char *s = (const char *)desc + *at;

	for (uint64_t i = *at; i < size; i++)
		if (!desc[i]) {
			*at = i + 1;
			return s;
		}
	return NULL;
}

static bool stap_read(const struct elffile *elf, const uint8_t *desc, uint64_t size,
	struct stap_probe *probe)
{
	struct elf_part base = elffile_section(elf, ".stapsdt.base");
	uint64_t words[3], at = sizeof(words);

	if (size < sizeof(words))
		return false;
	memcpy(words, desc, sizeof(words));
	probe->provider = take_string(desc, size, &at);
	probe->name = probe->provider ? take_string(desc, size, &at) : NULL;
	probe->args = probe->name ? take_string(desc, size, &at) : NULL;
	if (!probe->args)
		return false;
	probe->addr = words[0];
	probe->semaphore = words[2];
	if (base.addr) {
		probe->addr += base.addr - words[1];
		probe->semaphore += words[2] ? base.addr - words[1] : 0;
	}
	return true;
}

bool stap_next(const struct elffile *elf, uint64_t *at, struct stap_probe *probe)
{
	struct elf_part notes = elffile_section(elf, ".note.stapsdt");

	while (notes.bytes && *at < notes.size && notes.size - *at >= sizeof(Elf64_Nhdr)) {
		const uint8_t *name = notes.bytes + *at + sizeof(Elf64_Nhdr);
		uint64_t left = notes.size - *at - sizeof(Elf64_Nhdr), name_size;
		Elf64_Nhdr note;

		memcpy(&note, notes.bytes + *at, sizeof(note));
		name_size = aligned(note.n_namesz);
		if (name_size > left || note.n_descsz > left - name_size)
			break;
		*at += sizeof(note) + name_size + aligned(note.n_descsz);
		if (note.n_type == NOTE_TYPE && note.n_namesz == 8 && !memcmp(name, "stapsdt", 8)
			&& stap_read(elf, name + name_size, note.n_descsz, probe))
			return true;
	}
	return false;
}

/* ---- what operands are made of ---- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_name(char c)
{
	return is_digit(c) || c == '_' || c == '.' || c == '$' || (c >= 'a' && c <= 'z')
		|| (c >= 'A' && c <= 'Z');
}

static bool take(const char **s, const char *what)
{
	if (!str_starts(*s, what))
		return false;
	*s += strlen(what);
	return true;
}

static bool take_number(const char **s, int64_t *value)
{
	const char *p = *s;
	bool negative = *p == '-';
	uint64_t v = 0;

	p += negative || *p == '+';
	if (!is_digit(*p))
		return false;
	if (p[0] == '0' && p[1] == 'x') {
		for (p += 2; is_digit(*p) || (*p >= 'a' && *p <= 'f'); p++)
			v = v << 4 | (uint64_t)(is_digit(*p) ? *p - '0' : *p - 'a' + 10);
	} else {
		for (; is_digit(*p); p++)
			v = v * 10 + (uint64_t)(*p - '0');
	}
	*value = (int64_t)(negative ? 0 - v : v);
	*s = p;
	return true;
}

/* Numbers and at most one symbol, added up: "8", "sym", "sym+8", "8+sym", "-4+sym". False: nothing,
 * or something else. */
static bool take_sum(const char **s, struct stap_arg *arg)
{
	bool any = false;
	int64_t term;

	for (;; any = true) {
		const char *start = *s;

		if (take_number(s, &term)) {
			arg->value += term;
			continue;
		}
		start += any && *start == '+';
		if (!is_name(*start) || is_digit(*start) || arg->symbol)
			return any;
		for (*s = start; is_name(**s);)
			++*s;
		if (*s - start > UINT8_MAX)
			return false;
		arg->symbol = start;
		arg->symbol_len = (uint8_t)(*s - start);
	}
}

/* A register that is called a letter and a number: x0, w12, 3. */
static bool take_numbered(const char **s, const char *prefix, unsigned count, uint8_t *reg)
{
	const char *p = *s;
	int64_t n;

	if (!take(&p, prefix) || !is_digit(*p) || !take_number(&p, &n) || (uint64_t)n >= count
		|| is_name(*p))
		return false;
	*reg = (uint8_t)n;
	*s = p;
	return true;
}

/* ---- x86_64 ---- */

static const struct {
	char name[4]; /* the 64-bit one without its r: ax; or the low byte */
	uint8_t number;
} x86_names[] = { { "ax", 0 }, { "cx", 1 }, { "dx", 2 }, { "bx", 3 }, { "sp", 4 }, { "bp", 5 },
	{ "si", 6 }, { "di", 7 } };

static const struct {
	char name[4];
	uint8_t number, shift;
} x86_bytes[] = { { "al", 0, 0 }, { "cl", 1, 0 }, { "dl", 2, 0 }, { "bl", 3, 0 }, { "spl", 4, 0 },
	{ "bpl", 5, 0 }, { "sil", 6, 0 }, { "dil", 7, 0 }, { "ah", 0, 8 }, { "ch", 1, 8 },
	{ "dh", 2, 8 }, { "bh", 3, 8 } };

/* r8 to r15, r8d, r8w, r8b */
static bool x86_high_register(const char **s, uint8_t *reg)
{
	const char *p = *s;
	int64_t n;

	if (!take(&p, "r") || !is_digit(*p) || !take_number(&p, &n) || n < 8 || n > 15)
		return false;
	p += *p == 'd' || *p == 'w' || *p == 'b';
	*reg = (uint8_t)n;
	*s = p;
	return !is_name(*p);
}

static bool x86_register(const char **s, uint8_t *reg, uint8_t *shift)
{
	const char *p;

	*shift = 0;
	if (!take(s, "%"))
		return false;
	for (unsigned i = 0; i < sizeof(x86_bytes) / sizeof(x86_bytes[0]); i++) {
		p = *s;
		if (take(&p, x86_bytes[i].name) && !is_name(*p)) {
			*reg = x86_bytes[i].number;
			*shift = x86_bytes[i].shift;
			*s = p;
			return true;
		}
	}
	if (take_numbered(s, "xmm", 32, reg)) {
		*reg += STAP_FLOAT_REGISTER;
		return true;
	}
	if (x86_high_register(s, reg))
		return true;
	p = *s + (**s == 'r' || **s == 'e');
	for (unsigned i = 0; i < sizeof(x86_names) / sizeof(x86_names[0]); i++)
		if (take(&p, x86_names[i].name) && !is_name(*p)) {
			*reg = x86_names[i].number;
			*s = p;
			return true;
		}
	return false;
}

/* "(base)", "(base,index)", "(base,index,scale)", "(,index,scale)", "(%rip)" behind a symbol. */
static bool x86_address(const char **s, struct stap_arg *arg)
{
	uint8_t shift;
	int64_t scale;

	if (!take(s, "("))
		return arg->symbol || arg->value; /* absolute */
	if (take(s, "%rip)"))
		return arg->symbol;
	if (**s != ',' && !x86_register(s, &arg->base, &shift))
		return false;
	if (take(s, ",")) {
		if (!x86_register(s, &arg->index, &shift))
			return false;
		if (take(s, ",")) {
			if (!take_number(s, &scale) || scale < 1 || scale > 8)
				return false;
			arg->scale = (uint8_t)scale;
		}
	}
	return take(s, ")");
}

static bool x86_operand(const char **s, struct stap_arg *arg)
{
	if (take(s, "$")) {
		arg->kind = STAP_CONSTANT;
		return take_sum(s, arg);
	}
	if (**s == '%') {
		arg->kind = STAP_REGISTER;
		return x86_register(s, &arg->base, &arg->shift);
	}
	arg->kind = STAP_MEMORY;
	return (take_sum(s, arg) || **s == '(') && x86_address(s, arg);
}

/* ---- arm64 ---- */

static bool a64_register(const char **s, uint8_t *reg)
{
	static const char floats[][2] = { "q", "d", "s", "h", "b", "v" };

	if (take_numbered(s, "x", 31, reg) || take_numbered(s, "w", 31, reg))
		return true;
	*reg = 31;
	if (take(s, "sp") || take(s, "wsp"))
		return !is_name(**s);
	for (unsigned i = 0; i < sizeof(floats) / sizeof(floats[0]); i++)
		if (take_numbered(s, floats[i], 32, reg)) {
			*reg += STAP_FLOAT_REGISTER;
			return true;
		}
	return false;
}

/* "[x0]", "[x0, 16]", "[x0, #16]", "[x0, x1]", "[x0, x1, lsl 3]", "[x0, #:lo12:sym]" */
static bool a64_address(const char **s, struct stap_arg *arg)
{
	int64_t shift;

	if (!a64_register(s, &arg->base))
		return false;
	if (take(s, ", ") || take(s, ",")) {
		bool hash = take(s, "#");

		arg->low = take(s, ":lo12:");
		if (arg->low) {
			if (!take_sum(s, arg))
				return false;
		} else if (!take_number(s, &arg->value)) {
			if (hash || !a64_register(s, &arg->index))
				return false;
			if (take(s, ", lsl ") || take(s, ",lsl ") || take(s, ", lsl #")) {
				take(s, "#");
				if (!take_number(s, &shift) || shift < 0 || shift > 4)
					return false;
				arg->scale = (uint8_t)(1 << shift);
			}
		}
	}
	return take(s, "]");
}

static bool a64_operand(const char **s, struct stap_arg *arg)
{
	if (take(s, "[")) {
		arg->kind = STAP_MEMORY;
		return a64_address(s, arg);
	}
	take(s, "#");
	arg->kind = STAP_CONSTANT;
	if (take_number(s, &arg->value))
		return true;
	arg->kind = STAP_REGISTER;
	return a64_register(s, &arg->base);
}

/* ---- powerpc ---- */

static bool ppc_register(const char **s, uint8_t *reg)
{
	take(s, "%");
	if (take_numbered(s, "f", 32, reg)) {
		*reg += STAP_FLOAT_REGISTER;
		return true;
	}
	return take_numbered(s, "r", 32, reg) || take_numbered(s, "", 32, reg);
}

static bool ppc_operand(const char **s, struct stap_arg *arg)
{
	const char *start = *s;

	if (take(s, "i")) {
		arg->kind = STAP_CONSTANT;
		return take_number(s, &arg->value);
	}
	arg->kind = STAP_MEMORY;
	if (take_number(s, &arg->value) && take(s, "("))
		return ppc_register(s, &arg->base) && take(s, ")");
	*s = start;
	arg->value = 0;
	if (!ppc_register(s, &arg->base))
		return false;
	arg->kind = STAP_REGISTER;
	if (arg->base >= STAP_FLOAT_REGISTER && arg->size == 4)
		arg->size = 8; /* a float is a double there */
	if (take(s, ",")) {
		arg->kind = STAP_MEMORY;
		if (!arg->base) /* as a base, 0 is no register */
			arg->base = STAP_NO_REGISTER;
		return ppc_register(s, &arg->index);
	}
	return true;
}

/* ---- arguments ---- */

static bool (*operand_of(uint16_t machine))(const char **, struct stap_arg *)
{
	switch (machine) {
	case EM_X86_64:
		return x86_operand;
	case EM_AARCH64:
		return a64_operand;
	case EM_PPC64:
		return ppc_operand;
	default:
		return NULL;
	}
}

/* "-4@", "8f@"; none: a 64-bit value, by old versions of sys/sdt.h. */
static bool take_size(const char **s, struct stap_arg *arg)
{
	const char *p = *s;
	int64_t size = 8;

	arg->size = 8;
	if (!take_number(&p, &size))
		return !str_starts(p, "@");
	arg->is_float = take(&p, "f");
	if (!take(&p, "@")) {
		arg->is_float = false; /* the number was the operand's */
		return true;
	}
	*s = p;
	arg->is_signed = size < 0;
	size = size < 0 ? -size : size;
	arg->size = (uint8_t)size;
	return size == 1 || size == 2 || size == 4 || size == 8;
}

/* Arguments are separated by spaces; brackets may hold some. */
static const char *end_of(const char *s)
{
	bool inside = false;

	for (; *s && (inside || *s != ' '); s++)
		inside = (inside || *s == '[') && *s != ']';
	return s;
}

unsigned stap_parse(uint16_t machine, const char *text, struct stap_arg args[STAP_ARGS_MAX])
{
	bool (*operand)(const char **, struct stap_arg *) = operand_of(machine);
	unsigned n = 0;

	for (; n < STAP_ARGS_MAX; n++) {
		struct stap_arg *arg = args + n;
		const char *end;

		while (*text == ' ')
			text++;
		if (!*text)
			break;
		end = end_of(text);
		*arg = (struct stap_arg){ .base = STAP_NO_REGISTER, .index = STAP_NO_REGISTER,
			.scale = 1 };
		if (!operand || !take_size(&text, arg) || !operand(&text, arg) || text != end)
			arg->kind = STAP_UNKNOWN;
		text = end;
	}
	return n;
}

int64_t stap_extend(const struct stap_arg *arg, uint64_t raw)
{
	unsigned drop = 64 - 8u * arg->size;

	if (arg->kind == STAP_REGISTER)
		raw >>= arg->shift;
	return arg->is_signed ? (int64_t)(raw << drop) >> drop : (int64_t)(raw << drop >> drop);
}

#define FLOAT_BITS  23 /* of the fraction */
#define DOUBLE_BITS 52
#define BIAS	    (1023 - 127) /* between their exponents */

/* By its bits, since all code here leaves floating-point registers alone. Every float is a double. */
static uint64_t widen(uint32_t bits)
{
	uint64_t sign = (uint64_t)(bits >> 31) << 63, exponent = bits >> FLOAT_BITS & 0xff;
	uint64_t fraction = bits & ((1u << FLOAT_BITS) - 1);

	if (exponent == 0xff) { /* infinite, not a number */
		exponent = 0x7ff;
	} else if (exponent) {
		exponent += BIAS;
	} else if (fraction) { /* denormal: the first bit becomes the one that is not stored */
		unsigned up = (unsigned)__builtin_clz((uint32_t)fraction) - (31 - FLOAT_BITS);

		fraction = fraction << up & ((1u << FLOAT_BITS) - 1);
		exponent = BIAS + 1 - up;
	}
	return sign | exponent << DOUBLE_BITS | fraction << (DOUBLE_BITS - FLOAT_BITS);
}

uint64_t stap_double(const struct stap_arg *arg, uint64_t raw)
{
	return arg->size == 4 ? widen((uint32_t)raw) : raw;
}
