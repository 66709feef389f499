/* SPDX-License-Identifier: MIT */
/*
 * Chooses where and how a function is patched.
 *
 * First its own bytes decide (x86_site_probe): nops, one long instruction, several whole ones, or
 * too few of them. The scan then finds what lands inside. At last (x86_site_settle) functions
 * without room of their own get padding: their own, or some within reach of a short jump. Padding
 * is used only when the function before it was decoded from end to end, does not run or branch
 * into it, and ends with an instruction that does not go on.
 */
#include "scan.h"

#define FLAG_WALK_MAX	16 /* instructions looked at for live flags */
#define RETURN_WALK_MAX 64 /* and for the return address, where there are no unwind rows */
#define AHEAD_MAX	8  /* targets of branches to come back to */

static const uint8_t endbr64[4] = { 0xf3, 0x0f, 0x1e, 0xfa };

/* A function's own bytes. */
struct code {
	const uint8_t *bytes;
	size_t size;
};

static struct x86_func *state_of(const struct isa_module *module, size_t index)
{
	return &((struct x86_scan *)module->scan)->funcs[index];
}

/* Nothing when the function is not in any text. */
static struct code code_of(const struct isa_module *module, const struct isa_func *func)
{
	const struct isa_text *text = x86_text_at(module, func->start);
	struct code code = { NULL, 0 };
	uint64_t left;

	if (!text || func->end <= func->start)
		return code;
	left = text->addr + text->size - func->start;
	code.bytes = text->bytes + (func->start - text->addr);
	code.size = func->end - func->start < left ? func->end - func->start : left;
	return code;
}

/* Length of a ModRM byte with its SIB byte and displacement, or 0 when @room does not hold them. */
static size_t modrm_len(const uint8_t *modrm, size_t room)
{
	uint8_t mod, base;
	size_t len = 1;

	if (room == 0)
		return 0;
	mod = modrm[0] >> 6;
	base = modrm[0] & 7;
	if (mod != 3 && base == 4) {
		if (room < 2)
			return 0;
		base = modrm[1] & 7;
		len = 2;
	}
	if (mod == 1)
		len += 1;
	else if (mod == 2 || (mod == 0 && base == 5))
		len += 4;
	return len <= room ? len : 0;
}

size_t x86_nop_len(const uint8_t *code, size_t room)
{
	size_t at = 0, operand;

	while (at < room && (code[at] == 0x66 || code[at] == 0x2e))
		at++;
	if (at < room && code[at] == 0x90)
		return at + 1;
	if (room - at < 3 || code[at] != 0x0f || code[at + 1] != 0x1f)
		return 0;
	operand = modrm_len(code + at + 2, room - at - 2);
	at += 2 + operand;
	return operand && at <= 15 ? at : 0;
}

bool x86_is_padding(const uint8_t *code, size_t n)
{
	size_t at = 0;

	while (at < n) {
		size_t len = code[at] == 0xcc ? 1 : x86_nop_len(code + at, n - at);

		if (len == 0)
			return false;
		at += len;
	}
	return true;
}

/* mov $15,%eax or %rax; syscall: the kernel lets signal handlers return here. */
static bool is_restorer(const struct code *code)
{
	static const uint8_t rax[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	static const uint8_t eax[] = { 0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05 };

	return (code->size >= sizeof(rax) && memcmp(code->bytes, rax, sizeof(rax)) == 0) ||
		(code->size >= sizeof(eax) && memcmp(code->bytes, eax, sizeof(eax)) == 0);
}

/* Enough of the nops at the patch's place to cover it, or 0. */
static size_t nops_window(const struct code *code, size_t offset)
{
	size_t len = 0;

	while (len < X86_JUMP_SIZE) {
		size_t nop = x86_nop_len(code->bytes + offset + len, code->size - offset - len);

		if (nop == 0)
			return 0;
		len += nop;
	}
	return len;
}

/* The instructions from some place on, decoded as far as they are asked for. */
struct walk {
	const struct code *code;
	size_t start, end;
	unsigned int count;
	struct insn insns[FLAG_WALK_MAX];
};

static void walk_from(struct walk *walk, const struct code *code, size_t at)
{
	walk->code = code;
	walk->start = walk->end = at;
	walk->count = 0;
}

/* The next instruction of a walk that is asked for @n in order; NULL: there is none. */
static const struct insn *walk_get(struct walk *walk, unsigned int n)
{
	if (n == walk->count) {
		if (walk->end >= walk->code->size ||
			!decoder_read(walk->code->bytes + walk->end,
				walk->code->size - walk->end, &walk->insns[n]))
			return NULL;
		walk->end += walk->insns[n].len;
		walk->count++;
	}
	return &walk->insns[n];
}

/*
 * Whole instructions that cover @need bytes, or all there are up to the function's end. Returns
 * their length, or 0 with *@reason set.
 */
static size_t window(struct walk *walk, size_t need, uint8_t *reason)
{
	size_t len = 0;

	for (unsigned int n = 0; len < need; n++) {
		const struct insn *insn = walk_get(walk, n);
		bool call;

		if (!insn && walk->end == walk->code->size)
			break;
		if (!insn) {
			*reason = REASON_UNDECODABLE;
			return 0;
		}
		len += insn->len;
		call = insn->kind == INSN_CALL || insn->kind == INSN_CALL_INDIRECT;
		if (insn->kind == INSN_FIXED || (insn->kind == INSN_CALL && insn->rel == 0) ||
			(call && len < need)) {
			*reason = REASON_NOT_RELOCATABLE;
			return 0;
		}
	}
	return len;
}

static void probe_window(struct walk *walk, struct x86_func *state)
{
	uint8_t ignored;

	state->len = window(walk, X86_JUMP_SIZE, &state->reason);
	state->first = walk->count ? walk->insns[0].len : 0;
	if (state->first >= X86_JUMP_SIZE) {
		if (state->len)
			state->choice = SITE_ONE;
		return;
	}
	if (state->len)
		state->choice = state->len >= X86_JUMP_SIZE ? SITE_SEVERAL : SITE_PADDING;
	state->hop_len = window(walk, X86_HOP_SIZE, &ignored);
	if (state->hop_len < X86_HOP_SIZE)
		state->hop_len = 0;
}

/*
 * A nop alone before a long instruction is there so that something may go to the instruction: Go
 * enters runtime.goexit at its second byte, as if the nop were a call that returns. Both ways come
 * to a patch of the long one.
 */
static bool skips_nop(const struct code *code, size_t offset)
{
	struct insn insn;

	return code->size > offset + 1 && code->bytes[offset] == 0x90 &&
		decoder_read(code->bytes + offset + 1, code->size - offset - 1, &insn) &&
		insn.len >= X86_JUMP_SIZE;
}

static void probe_place(const struct isa_func *func, const struct code *code, struct walk *walk,
	struct x86_func *state)
{
	if (code->size >= sizeof(endbr64) && memcmp(code->bytes, endbr64, sizeof(endbr64)) == 0)
		state->offset = sizeof(endbr64);
	if (!func->inside && skips_nop(code, state->offset))
		state->offset++;
	walk_from(walk, code, state->offset);
	if (is_restorer(code)) {
		state->reason = REASON_SIGNAL_FRAME;
		return;
	}
	if (state->offset == code->size) {
		state->reason = REASON_TOO_SHORT;
		return;
	}
	state->len = nops_window(code, state->offset);
	if (state->len)
		state->choice = SITE_NOPS;
	else
		probe_window(walk, state);
}

/* Where a function that ends at @func->end without an end goes on; 0: nowhere. */
static uint64_t runs_into(const struct isa_module *module, const struct isa_func *func)
{
	const struct isa_text *text = x86_text_at(module, func->end);
	bool is_last = func + 1 == module->funcs + module->nfuncs;

	if (is_last || !text || func[1].start - func->end > 64 ||
		func[1].start - text->addr >= text->size ||
		!x86_is_padding(text->bytes + (func->end - text->addr), func[1].start - func->end))
		return 0;
	return func[1].start;
}

/* Does it return, or may it do so where it branches to? */
static bool may_return(const struct insn *insn)
{
	return insn->kind == INSN_RETURN || insn->kind == INSN_BRANCH || insn->kind == INSN_LOOP;
}

/*
 * Does the function use condition flags that its caller has set, or return with some of them? Yes
 * where this cannot be told. state->flows is set where it takes them to another function instead.
 */
static bool needs_flags(const struct isa_module *module, const struct isa_func *func,
	struct walk *walk, struct x86_func *state)
{
	uint16_t written = 0;
	unsigned int n = 0;
	size_t at = walk->start;

	for (int looked = 0; looked < FLAG_WALK_MAX; looked++) {
		const struct insn *insn = walk_get(walk, n++);
		uint64_t target;

		if (!insn && at == walk->code->size)
			state->flows = runs_into(module, func);
		if (!insn)
			return state->flows == 0;
		if (insn->reads & ~written || may_return(insn))
			return true;
		written |= insn->writes;
		if (written == INSN_FLAGS || insn->kind == INSN_CALL_INDIRECT)
			return false;
		at += insn->len;
		target = func->start + at + (int64_t)insn->rel;
		if (insn->kind == INSN_CALL ||
			(insn->kind == INSN_JUMP && target - func->start >= walk->code->size)) {
			state->flows = target;
			if (insn->kind == INSN_JUMP)
				state->facts |= FACT_FLAGS_JUMP;
			return false;
		}
		if (insn->kind == INSN_JUMP) {
			at = target - func->start;
			walk_from(walk, walk->code, at);
			n = 0;
		} else if (insn_ends(insn)) {
			return false;
		}
	}
	return true;
}

/* While code is followed: where it is, and where the return address is. */
struct place {
	size_t at;
	int32_t depth; /* it is at depth(%rsp) */
	int32_t frame; /* and at frame(%rbp), if not NO_FRAME */
};
#define NO_FRAME INT32_MIN

/* What an instruction does to the distance between rsp and the return address. */
static int32_t stack_change(const struct insn *insn, bool *known)
{
	uint8_t reg = insn->modrm >> 3 & 7;

	*known = true;
	if (insn->map != 0)
		return 0;
	if ((insn->opcode & 0xf8) == 0x50 || insn->opcode == 0x68 || insn->opcode == 0x6a ||
		insn->opcode == 0x9c || (insn->opcode == 0xff && reg == 6))
		return 8;
	if ((insn->opcode & 0xf8) == 0x58 || insn->opcode == 0x9d || insn->opcode == 0x8f)
		return -8;
	if (insn->opcode == 0xc8 || insn->opcode == 0xc9) /* enter, leave */
		*known = false;
	if ((insn->opcode == 0x8b || insn->opcode == 0x8d) && reg == 4 && !insn->rex_r) {
		*known = insn->opcode == 0x8d && insn->base == 4;
		return -insn->disp; /* lea disp(%rsp),%rsp */
	}
	if (insn->modrm >> 6 != 3)
		return 0;
	if ((insn->opcode == 0x81 || insn->opcode == 0x83) && (insn->modrm & 7) == 4 &&
		!insn->rex_b) {
		if (reg == 5)
			return insn->imm;
		if (reg == 0)
			return -insn->imm;
		*known = false;
	}
	if (insn->opcode == 0x89 && (insn->modrm & 7) == 4 && !insn->rex_b)
		*known = false; /* mov %reg,%rsp */
	return 0;
}

/* Step over an instruction. False: from there on it is not known where the return address is. */
static bool step_over(const struct code *code, const struct insn *insn, struct place *place)
{
	static const uint8_t rsp_to_rbp[2][3] = { { 0x48, 0x89, 0xe5 }, { 0x48, 0x8b, 0xec } };
	const uint8_t *bytes = code->bytes + place->at;
	bool known;

	if (insn->len == 3 && (memcmp(bytes, rsp_to_rbp[0], 3) == 0 ||
				      memcmp(bytes, rsp_to_rbp[1], 3) == 0))
		place->frame = place->depth;
	else if (insn->len == 1 && bytes[0] == 0x5d) /* pop %rbp */
		place->frame = NO_FRAME;
	place->depth += stack_change(insn, &known);
	place->at += insn->len;
	return known;
}

/* Go on at the first of the places ahead. False: there is none. */
static bool take_ahead(struct place *place, const struct place *ahead, unsigned int n)
{
	const struct place *first = NULL;
	size_t from = place->at;

	for (unsigned int i = 0; i < n; i++) {
		if (ahead[i].at >= from && (!first || ahead[i].at < first->at))
			first = &ahead[i];
	}
	if (!first)
		return false;
	*place = *first;
	return true;
}

/* Follow the stack pointer through the code once from its start to its end. */
static bool reads_return(const struct code *code)
{
	struct place place = { .frame = NO_FRAME }, ahead[AHEAD_MAX];
	unsigned int nahead = 0;

	for (int n = 0; n < RETURN_WALK_MAX && place.at < code->size; n++) {
		struct insn insn;
		bool known;

		if (!decoder_read(code->bytes + place.at, code->size - place.at, &insn))
			return false;
		if (insn_uses_word(&insn, 4, place.depth) ||
			insn_uses_word(&insn, 5, place.frame))
			return true;
		known = step_over(code, &insn, &place);
		if (known && place.depth < 0)
			return true;
		if (insn.rel_at && insn.kind != INSN_CALL && insn.rel >= 0 && known &&
			nahead < AHEAD_MAX) {
			ahead[nahead] = place;
			ahead[nahead++].at += (size_t)insn.rel;
		}
		if ((!known || insn_ends(&insn)) && !take_ahead(&place, ahead, nahead))
			return false;
	}
	return false;
}

void x86_site_probe(const struct isa_module *module, size_t index)
{
	const struct isa_func *func = &module->funcs[index];
	struct x86_func *state = state_of(module, index);
	struct code code = code_of(module, func);
	struct walk walk;

	if (code.size == 0) {
		state->reason = REASON_TOO_SHORT;
		return;
	}
	probe_place(func, &code, &walk, state);
	if (needs_flags(module, func, &walk, state))
		state->facts |= FACT_FLAGS_IN;
	if (func->nrows == 0 && reads_return(&code))
		state->facts |= FACT_READS_RETURN;
}

/*
 * May the padding behind funcs[index] be overwritten? Its code must end right before it with an
 * instruction that does not go on, and must not branch into it.
 */
static bool padding_verified(const struct isa_module *module, size_t index)
{
	const struct isa_func *func = &module->funcs[index];
	struct code code = code_of(module, func);
	uint64_t room = func->limit - func->end;
	struct insn insn = { .len = 0 };
	size_t at;

	if (!(state_of(module, index)->facts & FACT_PADDED))
		return false;
	for (at = 0; at < code.size; at += insn.len) {
		if (!decoder_read(code.bytes + at, code.size - at, &insn))
			return false;
		if (insn.rel_at && at + insn.len + (int64_t)insn.rel - code.size < room)
			return false;
	}
	return insn.len && insn_ends(&insn);
}

/* Is a window of @len bytes free of everything that lands in it? */
static bool undisturbed(const struct x86_func *state, size_t len)
{
	return ((state->landed | state->tabled) & ((1u << len) - 1) & ~1u) == 0;
}

/* A place for a long jump in the padding behind funcs[index] that a short jump whose next
 * instruction is at @next reaches, or 0. */
static uint64_t padding_near(const struct isa_module *module, size_t index, uint64_t next)
{
	const struct isa_func *func = &module->funcs[index];
	struct x86_func *state = state_of(module, index);
	uint64_t low = next - 128, at = func->end;

	if (!(state->facts & FACT_PADDED) || state->facts & FACT_PAD_TAKEN)
		return 0;
	if ((int64_t)(low - at) > 0)
		at = low;
	if ((int64_t)(at - next) > 127 || func->limit < at || func->limit - at < X86_JUMP_SIZE)
		return 0;
	return padding_verified(module, index) ? at : 0;
}

/* Find and take padding for a short jump at the start of funcs[index]. */
static uint64_t take_padding(const struct isa_module *module, size_t index)
{
	uint64_t next = module->funcs[index].start + state_of(module, index)->offset + X86_HOP_SIZE;
	size_t first = index;

	while (first > 0 && next - module->funcs[first - 1].limit <= 128)
		first--;
	for (size_t i = first; i < module->nfuncs; i++) {
		uint64_t at;

		if ((int64_t)(module->funcs[i].end - next) > 127)
			break;
		at = padding_near(module, i, next);
		if (at) {
			state_of(module, i)->facts |= FACT_PAD_TAKEN;
			return at;
		}
	}
	return 0;
}

static void refuse(struct x86_func *state, enum site_reason reason)
{
	state->choice = SITE_REFUSED;
	state->reason = reason;
}

/* Everything that does not need padding of another function. */
static void settle_own(const struct isa_module *module, size_t index)
{
	const struct isa_func *func = &module->funcs[index];
	struct x86_func *state = state_of(module, index);

	bool is_entry = !func->inside; /* else it may be jumped to, and from its own code */

	if (is_entry && func->anonymous && x86_scan_jumped_to(module, index)) {
		refuse(state, REASON_FRAGMENT);
		state->hop_len = 0;
	} else if (is_entry && state->facts & FACT_LOOPS) {
		refuse(state, REASON_LOOP_TO_ENTRY);
		state->hop_len = 0;
	} else if (state->choice != SITE_REFUSED && !undisturbed(state, state->len)) {
		refuse(state, state->landed & ~1u ? REASON_JUMP_INSIDE : REASON_JUMP_TABLE);
	} else if (state->choice == SITE_PADDING) {
		if (func->limit - func->start - state->offset >= X86_JUMP_SIZE &&
			padding_verified(module, index))
			state->facts |= FACT_PAD_TAKEN;
		else
			refuse(state, REASON_TOO_SHORT);
	}
}

static void settle_hop(const struct isa_module *module, size_t index)
{
	struct x86_func *state = state_of(module, index);

	if (state->choice != SITE_REFUSED || !state->hop_len || !undisturbed(state, state->hop_len))
		return;
	state->hop = take_padding(module, index);
	if (!state->hop)
		return;
	state->choice = SITE_HOP;
	state->reason = REASON_NONE;
	state->len = state->hop_len;
}

void x86_site_settle(const struct isa_module *module)
{
	for (size_t i = 0; i < module->nfuncs; i++)
		settle_own(module, i);
	for (size_t i = 0; i < module->nfuncs; i++)
		settle_hop(module, i);
}

void x86_site(const struct isa_module *module, size_t index, struct isa_site *site)
{
	const struct x86_func *state = state_of(module, index);

	*site = (struct isa_site){
		.choice = state->choice,
		.reason = state->reason,
		.flags_in = state->facts & FACT_FLAGS_IN,
		.offset = state->offset,
		.len = state->len,
		.hop = state->hop,
	};
	if (site->choice == SITE_REFUSED) {
		/* what a breakpoint would displace */
		site->len = state->first;
	} else if (state->keeps || state->facts & (FACT_READS_RETURN | FACT_CALLS_INSIDE)) {
		site->entry_only = true;
		site->reason = state->keeps ? state->keeps : REASON_READS_RETURN;
	}
}
