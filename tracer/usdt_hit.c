/* SPDX-License-Identifier: MIT */
/* A static probe runs. No system call is made, unless a handler asks for an argument in memory. */
#include "../arch/mem.h"
#include "peek.h"
#include "usdt.h"
#include "../arch/sys.h"
#include "../rethook/hook.h"
#include <errno.h>

#define EXPORTED     __attribute__((visibility("default")))
#define PER_THREAD   __thread __attribute__((tls_model("initial-exec")))
#define NESTED_MAX   8

struct ftr_usdt_hit {
	const struct usdt_place *place;
	const struct arch_hit *state;
	const void *kept; /* see arch_hit_vector() */
};

/* Whose handlers run in this thread, innermost last. */
static PER_THREAD const struct ftr_usdt *nested[NESTED_MAX];
static PER_THREAD unsigned depth;

bool usdt_in_handler(void)
{
	return depth;
}

static bool is_blind(const struct ftr_usdt *owner)
{
	for (unsigned i = 0; i < depth; i++)
		if (nested[i] == owner)
			return true;
	return depth == NESTED_MAX;
}

static void run_hooks(const struct usdt_hooks *hooks, struct ftr_usdt_hit *hit)
{
	for (size_t i = 0; hooks && i < hooks->n; i++) {
		const struct usdt_hook *h = &hooks->list[i];

		if (is_blind(h->owner))
			continue;
		nested[depth++] = h->owner;
		__atomic_load_n(&h->handler, __ATOMIC_RELAXED)(hit, h->data);
		depth--;
	}
}

void usdt_hit(struct arch_hit *state, const void *kept)
{
	struct usdt_place *place = (struct usdt_place *)state->record;
	struct ftr_usdt_hit hit = { place, state, kept };
	int *error = hook_errno(), saved = *error;

	__atomic_fetch_add(place->running, 1, __ATOMIC_SEQ_CST);
	run_hooks(__atomic_load_n(&place->hooks, __ATOMIC_SEQ_CST), &hit);
	usdt_count_down(place->running);
	*error = saved;
}

EXPORTED const struct ftr_usdt_probe *ftr_usdt_probe(const struct ftr_usdt_hit *hit)
{
	return &hit->place->probe;
}

static uint64_t register_value(const struct arch_hit *state, uint8_t reg)
{
	return reg < ARCH_HIT_REGS ? state->regs[reg] : 0;
}

/* Argument @n, if it is a number of that kind: what it says of itself, and its bits. */
static int read_argument(const struct ftr_usdt_hit *hit, unsigned n, bool is_float,
	const struct stap_arg **found, uint64_t *raw)
{
	const struct stap_arg *arg = &hit->place->args[n < STAP_ARGS_MAX ? n : 0];
	bool in_vector = arg->kind == STAP_REGISTER && arg->base >= STAP_FLOAT_REGISTER;

	*found = arg;
	*raw = (uint64_t)arg->value;
	if (n >= hit->place->probe.arguments)
		return -ENOENT;
	if (arg->kind == STAP_UNKNOWN || (arg->is_float || in_vector) != is_float
		|| (is_float && arg->size < 4))
		return -ENOTSUP;
	if (in_vector)
		return arch_hit_vector(hit->kept, arg->base - STAP_FLOAT_REGISTER, raw) ? 0
										 : -ENOTSUP;
	if (arg->kind == STAP_REGISTER)
		*raw = register_value(hit->state, arg->base);
	if (arg->kind != STAP_MEMORY)
		return 0;
	*raw += register_value(hit->state, arg->base);
	*raw += register_value(hit->state, arg->index) * arg->scale;
	return peek_bytes(raw, *raw, arg->size) ? 0 : -EFAULT;
}

EXPORTED int ftr_usdt_argument(const struct ftr_usdt_hit *hit, unsigned n, int64_t *value)
{
	const struct stap_arg *arg;
	uint64_t raw;
	int err = read_argument(hit, n, false, &arg, &raw);

	if (!err)
		*value = stap_extend(arg, raw);
	return err;
}

EXPORTED int ftr_usdt_double(const struct ftr_usdt_hit *hit, unsigned n, double *value)
{
	const struct stap_arg *arg;
	uint64_t raw;
	int err = read_argument(hit, n, true, &arg, &raw);

	if (err)
		return err;
	raw = stap_double(arg, raw);
	memcpy(value, &raw, sizeof(raw));
	return 0;
}
