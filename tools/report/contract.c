/* SPDX-License-Identifier: MIT */
#include "arch/arch.h"
#include "contract.h"
#include "datafile.h"

#define IN_PLACE_OF(field, written)                                                                \
	_Static_assert(                                                                            \
		offsetof(struct datafile_record, field) == offsetof(struct func_record, written),  \
		"struct datafile_record is struct func_record")
#define SAME(field) IN_PLACE_OF(field, field)
SAME(calls);
SAME(returned);
SAME(unwound);
SAME(left);
SAME(total);
IN_PLACE_OF(self, callees);
SAME(nmin);
SAME(max);
_Static_assert(sizeof(struct datafile_record) == FUNC_RECORD_SIZE, "a record is 64 bytes");

const char *contract_reason(unsigned int reason)
{
	return reason < REASON_COUNT ? isa_reason_name(reason) : "unknown";
}

const char *contract_mode(unsigned int mode)
{
	switch (mode) {
	case MODE_COUNT:
		return "count";
	case MODE_PROFILE:
		return "profile";
	case MODE_TRACE:
		return "trace";
	default:
		return NULL;
	}
}

bool contract_mode_timed(unsigned int mode)
{
	return mode != MODE_COUNT;
}

bool contract_refused(unsigned int choice)
{
	return choice == SITE_REFUSED;
}
