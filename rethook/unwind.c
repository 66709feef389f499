/* SPDX-License-Identifier: MIT */
#include "unwind.h"

/* Itanium C++ ABI, Exception Handling, 1.2.1 and 1.6.1 */
#define UA_SEARCH_PHASE	 1
#define UA_CLEANUP_PHASE 2
#define UA_HANDLER_FRAME 4
#define URC_FATAL_PHASE2 2
#define URC_INSTALL_CONTEXT  7
#define URC_CONTINUE_UNWIND 8

bool (*unwind_find)(uint64_t addr, struct unwinder *out);

#define KNOWN_MAX 8
static struct unwinder known[KNOWN_MAX];
static uint32_t nknown; /* release after an element is complete, acquire before reading */
static int known_lock;

void unwind_add(const struct unwinder *u)
{
	uint32_t n;

	if (__atomic_exchange_n(&known_lock, 1, __ATOMIC_ACQUIRE))
		return; /* someone else's turn; it will be found again */
	n = nknown;
	if (n < KNOWN_MAX) {
		known[n] = *u;
		__atomic_store_n(&nknown, n + 1, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&known_lock, 0, __ATOMIC_RELEASE);
}

static bool caller(uint64_t addr, struct unwinder *out)
{
	uint32_t n = __atomic_load_n(&nknown, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < n; i++)
		if (addr - known[i].lo < known[i].hi - known[i].lo) {
			*out = known[i];
			return true;
		}
	if (!unwind_find || !unwind_find(addr, out))
		return false;
	unwind_add(out);
	return true;
}

int unwind_personality(int version, int actions, uint64_t class, void *exception,
	struct unwind_context *context)
{
	struct shadow_thread *t = shadow_self();
	struct unwinder u;
	uint64_t ip;

	(void)version;
	(void)class;
	if (!(actions & UA_CLEANUP_PHASE))
		return URC_CONTINUE_UNWIND;
	if (!caller((uint64_t)__builtin_return_address(0), &u) || !t)
		return actions & UA_HANDLER_FRAME ? URC_FATAL_PHASE2 : URC_CONTINUE_UNWIND;
	ip = u.get_ip(context);
	if (!(actions & UA_HANDLER_FRAME) && !shadow_is_return_point(ip))
		return URC_CONTINUE_UNWIND; /* interrupted inside the detour */
	t->resume = u.resume;
	u.set_gr(context, __builtin_eh_return_data_regno(0), (uint64_t)exception);
	u.set_ip(context, shadow_pad_of(ip));
	return URC_INSTALL_CONTEXT;
}
