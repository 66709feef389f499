/* SPDX-License-Identifier: MIT */
/*
 * The whole contract between generic code and a CPU.
 *
 * Two halves. `struct isa` is the half that only computes: given bytes and addresses it finds the
 * place to patch, relocates the displaced instructions and writes a detour with its unwind rows.
 * It runs on every host for every CPU, reads and writes nothing but its arguments, and is tested
 * everywhere. The arch_* functions at the end are the half that runs: they exist once per build,
 * for the CPU of the process.
 *
 * Words: a *site* is the place in a function that is patched. The *window* is the run of whole
 * instructions that the patch displaces. The *detour* of F has three parts: D (entry), which F's
 * patch jumps to; T (return point), where F returns to; and B (body), the displaced instructions
 * followed by a jump back into F.
 */
#ifndef ARCH_ARCH_H
#define ARCH_ARCH_H

#include "mem.h"

/* How a site is patched, in the order of preference. Values are part of the data format. */
enum site_choice {
	SITE_REFUSED = 0,
	SITE_NOPS = 1,	  /* nops made for patching */
	SITE_ONE = 2,	  /* one instruction covers the patch */
	SITE_SEVERAL = 3, /* several whole instructions, nothing jumps between them */
	SITE_PADDING = 4, /* the function is shorter; verified padding behind it is used */
	SITE_HOP = 5,	  /* a short jump to a long jump in verified padding nearby */
	SITE_TRAP = 6,	  /* a breakpoint instruction; only when asked for */
	SITE_ISLAND = 7,  /* a branch to a verified padding word that branches on (powerpc) */
};

/* Why a function has no site, or is hooked at its entry only. Values are part of the data format;
 * isa_reason_name() gives the word that ftr-report prints. */
enum site_reason {
	REASON_NONE = 0,
	/* refused */
	REASON_TOO_SHORT,	/* no room for any patch */
	REASON_JUMP_INSIDE,	/* a branch lands inside the window */
	REASON_LOOP_TO_ENTRY,	/* the function jumps to its own first instruction */
	REASON_JUMP_TABLE,	/* an indirect jump of the function may land inside the window */
	REASON_UNDECODABLE,	/* the window has bytes that are no instruction */
	REASON_NOT_RELOCATABLE, /* the window has an instruction that cannot be moved exactly */
	REASON_OUT_OF_REACH,	/* no free memory near enough for the detour */
	REASON_MEMORY_DIFFERS,	/* the bytes in memory are not those of the file */
	REASON_TEXT_RELOCATIONS, /* the module's text is written by the loader */
	REASON_FRAGMENT,	/* a part of another function that is jumped to, not called */
	REASON_SIGNAL_FRAME,	/* entered by the kernel, not by a call */
	REASON_RESOLVER,	/* lazy binding entry of the loader: no return address on top */
	REASON_UNWINDER,	/* ftr itself calls it while an exception passes */
	REASON_NO_IMAGE,	/* the detour image could not be made or loaded */
	REASON_TRAP_UNSAFE,	/* a breakpoint would not be safe here */
	/* patched, entry only: the return is not seen */
	REASON_RETURNS_TWICE,	/* setjmp, vfork, getcontext and kin */
	REASON_READS_RETURN,	/* uses its own return address other than by returning */
	REASON_NO_RETURN,	/* has no return address (the program's first function) */
	REASON_FOREIGN_STACK,	/* code of a runtime with stack rules of its own */
	REASON_WATCHED,		/* the tracer itself watches it (_exit, prctl ...) */
	REASON_HIDDEN_UNWINDER, /* the module carries an unwinder that cannot be addressed */
	REASON_COUNT
};
const char *isa_reason_name(enum site_reason reason); /* "too-short"; "none" for 0 */
const char *isa_choice_name(enum site_choice choice); /* "nops", "one", "several", ... */

/*
 * The executable part of a module, as in its file. Addresses are link-time (what nm prints)
 * throughout `struct isa`, except where a comment says run-time.
 */
struct isa_text {
	const uint8_t *bytes;
	uint64_t addr; /* of bytes[0] */
	size_t size;
};

/* From @from (offset from the function's start) on, the return address is at base + offset. */
struct isa_row {
	uint32_t from;
	int32_t offset;
	uint8_t base; /* DWARF number of the base register; 0xff: not known, do not judge */
};

/* Unwind instructions that take effect at offset @at from the function's start. */
struct isa_cfi {
	uint32_t at;
	uint32_t len;
	const uint8_t *bytes; /* raw DW_CFA_*, without advance_loc */
};

struct isa_func {
	uint64_t start, end; /* [start, end): its own bytes; end is never beyond limit */
	uint64_t limit;	     /* first byte behind that belongs to anything else: another symbol,
			      * another unwind range or the section's end */
	const struct isa_row *rows; /* sorted; NULL when the module has no rows for it */
	uint32_t nrows;
	bool anonymous; /* known from unwind tables only */
	uint8_t local; /* powerpc: of the local entry, bytes from start */
	bool inside;   /* no function, but a place in the one before that is to be patched; both are
			* one for what jumps to where */
	uint8_t keeps; /* REASON_RETURNS_TWICE or REASON_READS_RETURN: known by name to need its
			* caller's own return address, so who jumps to it is entry only too; else 0 */
};

/* A word that the loader fills with the address of such a function. */
struct isa_slot {
	uint64_t addr;
	uint8_t keeps; /* see isa_func */
};

/* A module's code as the planner sees it. Built once per module by isa->scan(). */
struct isa_module {
	const struct isa *isa;
	struct arena *arena; /* lives as long as the module's planning */
	const struct isa_text *texts;
	size_t ntexts;
	const struct isa_func *funcs; /* sorted by start */
	size_t nfuncs;
	const uint64_t *pointers; /* link-time addresses that relocations or data may hold and that */
	size_t npointers;	  /* point into texts; sorted */
	const struct isa_slot *slots; /* sorted by address */
	size_t nslots;
	/* Readable data that may hold jump tables, as in the file. */
	const struct isa_text *datas;
	size_t ndatas;
	void *scan; /* the port's own */
};

struct isa_site {
	uint8_t choice; /* enum site_choice */
	uint8_t reason; /* enum site_reason: why refused, or why entry only */
	bool entry_only;
	bool flags_in;	/* condition flags at the entry are used, or returned */
	bool scratch_in; /* registers that calls may change anyway are used, or their being kept
			  * (arm64: x16, x17; powerpc: see scan.c) */
	bool scratch_out; /* arm64: whoever calls it relies on x16 or x17 behind the call */
	bool leaf;	/* calls nothing, and so is active once in a thread; reads no static chain */
	uint8_t offset; /* of the patch from the function's start */
	uint8_t len;	/* of the window: bytes displaced from start + offset on */
	uint8_t far_len; /* of the window of SITE_SEVERAL, whose patch reaches isa->far_reach; 0: none */
	uint64_t hop;	/* SITE_HOP, SITE_ISLAND: address of the padding used */
};

/* What a detour does. Values are part of the data format. */
enum detour_mode { MODE_COUNT = 1, MODE_PROFILE = 2, MODE_TRACE = 3 };

/*
 * One entry of the shadow stack, as detours write it: a traced call in progress. A thread's shadow
 * stack is indexed by the stack slot of the return address (where that is in a register, by the
 * stack pointer at the entry): the entry of slot S is at mirror + (S & mask) * size / 8. The mirror
 * is aligned to its own size. See rethook/shadow.h. In count mode only the first half exists.
 */
struct shadow_entry {
	/* What is loaded or stored at the same time is in pairs, for CPUs that do that at once. */
	uint64_t owner; /* address of the records the call is counted in; 0: the place is free;
			 * written first, before the call is counted, zeroed last, after the
			 * return is */
	uint32_t func; /* function id */
	uint32_t flags; /* zeroed by detours, used by the slow path */
	uint64_t ret;  /* the real return address */
	uint64_t slot; /* not 0: the entry is valid; written last, zeroed first */
	/* not in count mode: */
	uint64_t child;	 /* clock ticks spent in traced callees; 0 where the place is free */
	uint64_t start;	 /* clock at entry */
	uint64_t parent; /* struct shadow_entry that encloses this one */
	uint64_t link;	 /* in the overflow: the next in its chain */
};
#define SHADOW_HOOKED	  32 /* in its flags: it has a hook_state */
/*
 * In `flags`: the entry was made by a function that another one has jumped to. The other's return point
 * is passed on the way to the body, as if it had returned: each call that a detour makes is followed by a return to
 * it, as the processor expects. That is where the flag goes. Not used on powerpc.
 */
#define SHADOW_TAIL	  256
#define SHADOW_NO_TAIL	  512 /* the function's return point is no such way: handlers are called there */

/*
 * At mirror + this is the address of the thread's func_records, in memory that a fork wipes. 0: none yet, and
 * until there are the mirror itself is not valid either.
 */
#define MIRROR_RECORDS	  (-16)
#define SHADOW_SLOT_MAX	  INT64_MAX /* above every slot, in signed comparison too */
#define SHADOW_COUNT_SIZE 32
#define SHADOW_TIMED_SIZE 64

/*
 * The head of a thread's shadow stack, as the unwind expression reads it. Nodes are never freed:
 * an unwinder may be looking at any time. The list begins at a word whose address is in the CIEs,
 * see struct shadow_root.
 */
struct shadow_node {
	uint64_t next;	   /* struct shadow_node, 0 at the end */
	uint64_t mirror;   /* of the entries */
	/*
	 * Entries whose place in the mirror was taken, of full size, in chains (`link`) that begin
	 * at buckets + (slot & SHADOW_BUCKETS).
	 */
	uint64_t buckets;
	uint64_t overflow, overflow_end, overflow_room;
};
#define SHADOW_BUCKETS 0x7fff8

/* What the CIEs refer to. */
struct shadow_root {
	uint64_t nodes; /* the first struct shadow_node */
	uint64_t zero;	/* always zero: what an unsuccessful search yields */
	uint64_t mask;	/* of slots; a multiple of 8 */
	uint64_t scale; /* entry size / 8 */
};

/* Behind each detour's code. Places are relative to the struct's own address. */
struct detour_info {
	uint32_t id;
	int32_t resume; /* make the call of the body; the shadow entry is in place */
	int32_t bypass; /* run the body without a shadow entry */
	int32_t leave;	/* return to the caller; 0: entry only */
	uint32_t watch; /* 0, or which of the functions that the tracer itself wants to see */
	int32_t ret;	/* the return point, where jumps from the function and to it may take the short
			 * path; else 0 */
	uint64_t point; /* struct hook_point, of a hooked function; else 0. Begins with a hook_plain */
};

/* Behind it in a hooked function's detour, places like its own; 0: there is none. */
struct hook_places {
	int32_t run;	 /* make the call of the body: the entry is in place, if there is one */
	int32_t pass;	 /* the same without an entry */
	int32_t skip;	 /* account the call as returned, and return what is in the registers */
	int32_t drop;	 /* return what is in the registers */
	int32_t account; /* the return handlers have run: go on returning */
	int32_t owed;	 /* call return handlers (HOOK_TAG_OWED), the saved registers are as at leave */
};

/* Why the stub isa_common.hook_entry is entered, in the low bits of the detour_info's address. */
#define HOOK_TAG_ENTERED 0 /* a call with a shadow entry */
#define HOOK_TAG_PASSED	 1 /* a call without */
#define HOOK_TAG_OWED	 2 /* the last of some calls that ended in jumps has returned */
#define HOOK_TAG_MASK	 3ul

struct ftr_call;

/*
 * All that there is to do for a function's calls: the handlers of its only hook, which is of the
 * usual kind. Hook stubs may call them without asking hook.c, in this way: read `serial`, make the
 * thread's first hook_activation with it, read the rest, and see that `serial` is still the same.
 */
struct hook_plain {
	uint64_t serial; /* 0: there is more to do, or nothing */
	void (*entry)(struct ftr_call *, void *), (*ret)(struct ftr_call *, void *); /* or NULL */
	void *data;
};

/* A hooked call whose handlers are running. */
struct hook_activation {
	uint64_t slot;	 /* of the call; 0: none. Stored first, zeroed last */
	uint64_t serial; /* of the hook whose handler runs; 0: none yet */
};

/* What a call's return handlers have to know. */
struct hook_state {
	const struct detour_info *info;
	uint64_t limit;	  /* the newest hook at the entry */
	uint64_t seen;	  /* a bit for each place: its hook has seen the entry */
	uint64_t words[]; /* by place; a plain hook's is 0 */
};
#define HOOK_STATE_SIZE 64 /* of one for a few hooks; there is one for each slot in the window */

/* What the slow stubs build on the stack for the C functions of struct isa_env. */
struct slow_frame {
	uint64_t slot;
	const struct detour_info *info; /* NULL in slow_unwind */
	struct shadow_entry *entry;	/* between slow_exit or slow_unwind and slow_release; */
	uint64_t key;			/* its slot. Entry: out, 1: a return point will not be returned to */
	uint64_t ret;			/* entry: the return address; exit, unwind: out, the real one */
	uint64_t go;			/* out: where to go on */
	/* the port's saved registers follow */
};

/* One word, so that it takes one store to begin. After plain handlers (hook_plain) the first half
 * tells whether there is something to finish. */
struct call_state {
	uint8_t spilled; /* the port's: which vector registers are in `spill`; 0: none */
	bool apart;	 /* they have all been put aside: arch_call_vectors() */
	bool returning : 1; /* it is a return; else an entry */
	bool plain : 1;	 /* what the stub has left out of ftr_call comes by hook_unfold() */
	bool skipped;	 /* the function is not to run, */
	bool settled;	 /* and that is past: return handlers run */
	bool answered;	 /* results are in `result`: it may be skipped */
	bool owed;	 /* the return comes late: HOOK_TAG_OWED */
	bool unfolded;
};

/*
 * What of a result handlers have asked for. When the function is skipped, no other register changes:
 * a caller may know which ones the function leaves alone (gcc's -fipa-ra). 0: as RESULT_GENERAL.
 */
enum result_part {
	RESULT_GENERAL = 1,
	RESULT_GENERAL_2 = 2, /* the second register of a 128-bit integer */
	RESULT_VECTOR = 4,
	RESULT_FLOAT = 8, /* where it is not in a vector register */
	RESULT_FLOAT_2 = 16,
	RESULT_SINGLE = 32, /* a float, to be widened */
	RESULT_EXTENDED = 64,
	RESULT_ELSEWHERE = 128, /* in memory, or there is none */
};

/*
 * What the hook stubs build, aligned to 64 bytes: a call as its handlers see it, with all that may
 * be in registers at an entry or a return.
 */
struct ftr_call {
	struct slow_frame frame;
	uint64_t regs[24];  /* the port's general registers; loaded when the call goes on */
	void *visit;	    /* rethook/hook.c's */
	uint8_t *vectors;   /* where vector registers are, with state.apart */
	struct call_state state;
	/* of the handler that runs; the first three once it is unfolded: */
	uint64_t *word;	  /* of its hook and the call; NULL: */
	uint64_t scratch; /* the word when nobody will see it again */
	uint64_t ret;	  /* a return's real return address */
	int saved_errno;  /* what errno will be */
	struct {
		uint64_t general[2];
		uint8_t vectors[64];
		uint8_t extended[16]; /* x87, where there is one */
		uint64_t asked;	      /* enum result_part */
	} result;
	_Alignas(64) uint8_t spill[512]; /* the port's: vector registers */
};

/* Where a value is by the calling convention. */
enum isa_place_kind {
	PLACE_NONE,
	PLACE_GENERAL,	/* general registers from @index on, numbered as the convention uses them */
	PLACE_VECTOR,	/* vector register @index */
	PLACE_EXTENDED, /* top of the x87 stack */
	PLACE_STACK,	/* @offset bytes above the stack pointer before the call */
	PLACE_SPLIT,	/* some of it in registers, the rest in memory: cannot be told as one */
	PLACE_MEMORY,	/* a result at the address that the function was given, or returns */
};
struct isa_place {
	uint8_t kind;
	uint8_t index;
	bool indirect; /* what is there is its address */
	bool wide;     /* a result that goes on in the next register */
	bool single;   /* a float that its register holds as a double (powerpc) */
	uint32_t offset;
};

/* One function's counters in one thread's block, as detours write them. Part of the data format. */
struct func_record {
	uint64_t calls;
	uint64_t returned;
	uint64_t unwound;
	uint64_t left; /* ended without a return, or taken for that: calls - returned - left are
			* active in this thread, signed. For `total` alone: not kept where nothing is timed */
	uint64_t total; /* clock ticks; overlapping activations once */
	uint64_t callees; /* of these, those that are not the function's own: in traced callees, but for
			   * the function itself. Signed: inner activations are booked first */
	uint64_t nmin; /* ~min, so that zero means none yet */
	uint64_t max;
};
#define FUNC_RECORD_SIZE 64

#define INFOS_MAX (1u << 20) /* ids that isa_env.infos has room for */

/* Everything a detour needs to know about the process it will run in. Run-time addresses. */
struct isa_env {
	enum detour_mode mode;
	/* thread-pointer offsets of two words in a row */
	int64_t tls_mirror;  /* of the address of the thread's mirror, see MIRROR_RECORDS; 0 in a
			      * task whose thread pointer leads to memory that libc has not set up */
	int64_t tls_current; /* of the address of the newest entry; not in count mode */
	int64_t tls_own;     /* a copy of the first that is also 0 where the thread has no mirror yet */
	int64_t tls_thread;  /* of the address of the thread's struct, 0: none yet. There are: */
	uint32_t thread_active; /* struct hook_activation, the first one */
	uint32_t thread_states; /* the address of its small hook_states, 0: none yet */
	int64_t tls_errno; /* of errno itself */
	uint64_t mask;	     /* see struct shadow_root */
	uint64_t features;   /* AT_HWCAP */
	const struct detour_info **infos; /* by function id: of its newest detour that has a `ret`; NULL:
					   * tail calls are slow */
	uint64_t slow_entry; /* C: void (struct slow_frame *), see rethook/ */
	uint64_t slow_exit;
	uint64_t slow_unwind;
	uint64_t slow_release; /* behind slow_exit and slow_unwind, once the slot holds the address */
	uint64_t hook_entered; /* C: void (struct ftr_call *), see rethook/hook.h */
	uint64_t hook_returned;
	uint64_t hook_finish; /* after handlers of a hook_plain that left something to do */
	uint64_t personality; /* C: the return points' personality routine */
};

/* Offsets inside the common part of an image, made by emit_common(). */
struct isa_common {
	uint64_t base; /* run-time address of the common part */
	uint32_t size;
	uint32_t slow_entry, slow_exit, pad, personality;
	uint32_t hook_entry, hook_exit; /* stubs; 0: the port has none */
	uint32_t hook_bare, hook_any; /* more of them, the port's own */
	uint32_t tail, passed; /* what takes tail calls, where it is not part of the slow stubs */
};

#define ISA_CFI_MAX 512
/* A range of code with its own unwind rows. */
struct isa_range {
	uint32_t start, size; /* offset from the emitted bytes' start */
	uint8_t cie;	      /* enum isa_cie */
	uint16_t cfi_len;
	uint8_t cfi[ISA_CFI_MAX]; /* complete DW_CFA_* with advance_loc */
};

enum isa_cie {
	CIE_DETOUR, /* initial row: the return address by the shadow-stack expression; has the
		     * personality isa_common.personality, and needs no LSDA */
	CIE_SHADOW, /* the same initial row, without personality */
	CIE_PLAIN,  /* initial row: as at a function's entry */
	CIE_COUNT
};

#define ID_NONE 0x7fffffffu /* a function that is hooked and not recorded; fits an immediate */

/* An emitted detour. */
struct isa_detour {
	uint32_t size;
	uint32_t ret;  /* offset of T; 0: entry only */
	uint32_t body; /* offset of B; 0: none, D calls the function behind its nops */
	uint32_t info; /* offset of struct detour_info, if isa_env.infos is to lead to it; else 0 */
	struct isa_range ranges[2];
	uint32_t nranges;
};

struct isa_emit {
	const struct isa_env *env;
	const struct isa_common *common;
	const struct isa_module *module;
	const struct isa_func *func;
	const struct isa_site *site;
	int64_t bias;	/* run-time minus link-time address of the module */
	uint32_t id;	/* function id, or ID_NONE */
	uint32_t watch; /* entry only, every call goes to slow_entry; see struct detour_info */
	uint64_t point; /* struct hook_point: handlers are called at its entry; 0: none */
	bool hook_return; /* and at its return; not when the site is entry only */
	uint64_t at;	/* run-time address the detour will have */
	const struct isa_cfi *cfi; /* the function's unwind instructions inside the window, the CIE's
				    * own initial ones first with at = 0; NULL: none known */
	uint32_t ncfi;
};

#define HIT_DETOUR_MAX 256

#define ISA_PATCH_MAX 16
/* Bytes to store over a module's text. */
struct isa_patch {
	uint64_t addr; /* run-time */
	uint8_t len;
	uint8_t bytes[ISA_PATCH_MAX];
};

struct isa {
	const char *name;	/* "x86_64" */
	uint16_t elf_machine;	/* EM_* */
	uint32_t elf_flags;	/* e_flags of an image */
	uint8_t ra_column;	/* DWARF return address column */
	uint8_t entry_cfa_base; /* CFA at a function's entry: DWARF register ... */
	uint8_t entry_cfa_offset; /* ... + offset */
	int8_t entry_ra_offset; /* return address at CFA + this; 0: in a register */
	uint8_t patch_size;	/* bytes of a patch that has room, and of one in padding */
	uint64_t reach;		/* a patch's jump reaches this far in both directions */
	uint64_t far_reach;	/* and that of a longer patch; 0: there is none */
	uint32_t detour_max;	/* upper bound of one detour's size */
	uint32_t common_max;

	/*
	 * Look over a module once: note everything that jumps or points into it, so that site()
	 * can be asked. Allocates from module->arena. 0, -ENOMEM.
	 */
	int (*scan)(struct isa_module *module);

	/* Choose the site of funcs[index]. Fills *@site, refusals included. */
	void (*site)(const struct isa_module *module, size_t index, struct isa_site *site);

	/*
	 * Take a verified padding in [lo, hi) that is in reach of funcs[index], for good: @site,
	 * which site() has chosen, becomes a SITE_ISLAND. False: there is none. NULL: the CPU's
	 * branches reach far enough.
	 */
	bool (*island)(const struct isa_module *module, size_t index, uint64_t lo, uint64_t hi,
		struct isa_site *site);

	/* Write the code all detours of an image share, to run at @at. Returns its ranges' count;
	 * @ranges has room for 4. */
	uint32_t (*emit_common)(const struct isa_env *env, uint64_t at, uint8_t *out,
		struct isa_common *common, struct isa_range *ranges);

	/*
	 * Write the detour of one function. 0; -ERANGE: something it refers to cannot be reached
	 * from there; -EINVAL: cannot be relocated exactly.
	 */
	int (*emit)(const struct isa_emit *in, uint8_t *out, struct isa_detour *detour);

	/* The length of the nop at @code; 0: there is none. */
	size_t (*nop)(const uint8_t *code, size_t room);

	/*
	 * Write what a place inside a function is sent to: code that calls arch_hit_stub, with
	 * @record for its C function, then does what was displaced and goes back. Returns the size,
	 * at most HIT_DETOUR_MAX; -ERANGE, -EINVAL as above.
	 */
	int (*emit_hit)(const struct isa_emit *in, uint64_t stub, uint64_t record, uint8_t *out);

	/* The stores that send a function to its detour: one, or two for SITE_HOP and SITE_ISLAND
	 * (padding first). Returns their count, or -ERANGE. */
	int (*patch)(const struct isa_emit *in, struct isa_patch patches[2]);

	/*
	 * Where argument @n and the result are, of the types that @types describes as
	 * ftr_argument() has it. PLACE_NONE: @types is wrong.
	 */
	struct isa_place (*argument)(const char *types, unsigned n);
	struct isa_place (*result)(char type);

	/* May the function whose first bytes are @code change vector or floating-point registers? Yes
	 * unless all of it is seen and it calls nothing. */
	bool (*uses_vectors)(const uint8_t *code, size_t size);

	/* Initial unwind instructions of a CIE. @root: run-time address of the struct shadow_root.
	 * Returns the length, 0 when @room is too small (512 suffices). */
	size_t (*cie)(enum isa_cie which, uint64_t root, uint8_t *out, size_t room);
};

extern const struct isa isa_x86_64;
extern const struct isa isa_arm64;
extern const struct isa isa_powerpc;

/* ---- the half that runs, for the CPU of the process ---- */

extern const struct isa *const arch_isa;

uint64_t arch_clock(void);	   /* the counter that detours read */

/* What tls offsets count from. */
#if defined(__x86_64__)
static inline uintptr_t arch_thread_pointer(void)
{
	uintptr_t tp;

	__asm__("mov %%fs:0, %0" : "=r"(tp)); /* psABI: the first word of the TCB is its address */
	return tp;
}
#else
uintptr_t arch_thread_pointer(void);
#endif

/*
 * A call's return address lies in memory at its slot all the time (x86), so that a slot that holds
 * no return point proves its frame dead; otherwise it may be in a register.
 */
extern const bool arch_slot_in_memory;

/*
 * Else, of the calling thread: has the function that was entered at @slot saved its return address,
 * which is @point? It has where it is in a call. True also where that cannot be told. Ask by rising
 * slots.
 */
struct arch_frames {
	uint64_t from, top; /* the stack in use; from rises */
	uint64_t frame;	    /* __builtin_frame_address(0) at first */
	uint64_t steps;	    /* to take in all */
};
bool arch_has_saved(uint64_t slot, uint64_t point, struct arch_frames *frames);

/* For a function that is entered from a slow stub and calls code that is not ours: the stubs do not
 * align the stack, since our own code needs no alignment. */
#if defined(__x86_64__)
#define ARCH_ALIGNS_STACK __attribute__((force_align_arg_pointer))
#else
#define ARCH_ALIGNS_STACK
#endif

/* Of what a signal has interrupted, by its ucontext_t: where it goes on, and the stack pointer. */
#define ARCH_CONTEXT_SIZE 1024 /* how much of a ucontext_t these look at, at most */
uint64_t arch_pc(const void *context);
uint64_t arch_sp(const void *context);

/* In a SIGTRAP handler, with its ucontext_t: the address of the breakpoint; and where to go on. */
uint64_t arch_trap_site(const void *context);
void arch_set_pc(void *context, uint64_t pc);

/*
 * Replacing code that other threads may be executing. What is arch_code_unit bytes long is replaced
 * by one store; what is longer, with arch_breakpoint over its first unit meanwhile. Is that allowed
 * for @patch over the bytes @old?
 */
extern const uint8_t arch_code_unit;
extern const uint8_t arch_breakpoint[];
bool arch_may_replace(const struct isa_patch *patch, const uint8_t *old);

/*
 * Do instruction caches have to be told of stores? Then: that what the calling thread has stored at
 * [@lo, @hi) is executed from now on, on all CPUs. What is stored through /proc/self/mem, and what is
 * mapped, the kernel flushes.
 */
extern const bool arch_flushes;
void arch_flush(uint64_t lo, uint64_t hi);

/* May a call end at @code + @n that begins at @code or later? Not sure means yes. */
bool arch_call_ends(const uint8_t *code, unsigned n);

/*
 * The stack pointer of code that a signal interrupted, if @words, the first of ARCH_SAVED_WORDS of
 * some stack, is where the signal frame keeps it; else 0.
 */
#define ARCH_SAVED_WORDS 48
uint64_t arch_saved_sp(const uint64_t *words);

/*
 * In a signal handler: is the state that of a system call which the signal has ended with EINTR, if
 * a system call is right before the program counter? @state: the six arguments (the first one only
 * where the CPU keeps it), stack pointer and program counter, as /proc/self/task/TID/syscall shows
 * them. Then: make the call again once the handler returns.
 */
#define ARCH_CALL_STATE 8
bool arch_ended_call(const void *context, uint64_t state[ARCH_CALL_STATE]);
void arch_restart_call(void *context, long number, uint64_t first_argument);

/* What arch_hit_stub builds: the state at a place inside a function. */
#if defined(__x86_64__)
#define ARCH_HIT_REGS 16
#else
#define ARCH_HIT_REGS 32
#endif
struct arch_hit {
	uint64_t regs[ARCH_HIT_REGS]; /* numbered as the CPU does; used when the program goes on */
	uint64_t flags;
	uint64_t resume; /* in the detour */
	uint64_t site;	 /* run-time address of the place */
	uint64_t record; /* see isa->emit_hit */
};

/* It keeps all registers, vectors included, and calls: */
extern void (*const arch_hit_stub)(void);
void usdt_hit(struct arch_hit *hit, const void *kept); /* tracer/usdt_hit.c */

/* The low 64 bits of vector register @number, by what usdt_hit() is given as @kept. False: it is not
 * there. */
bool arch_hit_vector(const void *kept, unsigned number, uint64_t *value);

/* Before the first detour that calls the stub. False: this processor cannot. */
bool arch_hit_prepare(void);

/* Where a signal handler returns to: rt_sigreturn(2). */
void arch_signal_return(void);

/* Integer argument 0 to 5 of the call that a slow_frame was made for. */
uint64_t arch_argument(const struct slow_frame *frame, unsigned n);

/* Do this CPU's detours call handlers? The functions below are not called else. */
extern const bool arch_calls_handlers;

/*
 * The hook stubs' other half. Once, before the first call of these: find out what state the CPU has.
 */
void arch_call_prepare(void);

/* Call @function with all vector and floating-point state put aside at call->vectors, and as a C
 * function may expect it; taken back afterwards. */
void arch_call_vectors(void (*function)(struct ftr_call *), struct ftr_call *call);

/* The memory that stands for @place until the handlers are through. */
void *arch_call_argument(struct ftr_call *call, struct isa_place place);
void *arch_call_result(struct ftr_call *call, struct isa_place place);

/* What was written there becomes the registers' contents. With @skip call->result becomes the
 * function's result. In arch_call_vectors() when it is in use; the last thing there. Else not
 * needed when nothing is spilled. */
void arch_call_finish(struct ftr_call *call, bool skip);

/*
 * Make @context, a ucontext_t of the calling thread, that of the call's caller. False: the port
 * cannot tell all that unwinders need; they come through our frames.
 */
bool arch_call_context(const struct ftr_call *call, void *context);

/* The frame is one of an entry, made for HOOK_TAG_OWED: let results be where they are at a return. */
void arch_call_owed(struct ftr_call *call);

/* Does a return point begin here? @code is readable. */
bool arch_is_return_point(const void *code);

#endif
