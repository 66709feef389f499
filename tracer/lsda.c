/* SPDX-License-Identifier: MIT */
#include "lsda.h"

/* DW_EH_PE_*, LSB 5.0 core, 10.5.1 */
#define PE_OMIT	  0xff
#define PE_ULEB	  0x01
#define PE_UDATA4 0x03

struct reader {
	const uint8_t *next, *end;
	bool damaged;
};

static uint8_t read_byte(struct reader *r)
{
	if (r->next >= r->end) {
		r->damaged = true;
		return 0;
	}
	return *r->next++;
}

static uint64_t read_uleb(struct reader *r)
{
	uint64_t v = 0;
	uint8_t b;

	for (unsigned shift = 0;; shift += 7) {
		b = read_byte(r);
		if (shift < 64)
			v |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80) || r->damaged)
			return v;
	}
}

static uint64_t read_number(struct reader *r, uint8_t encoding)
{
	uint64_t v = 0;

	if (encoding == PE_ULEB)
		return read_uleb(r);
	if (encoding != PE_UDATA4) {
		r->damaged = true;
		return 0;
	}
	for (unsigned shift = 0; shift < 32; shift += 8)
		v |= (uint64_t)read_byte(r) << shift;
	return v;
}

/* The rest of the segment that @addr lies in. */
static struct reader reader_at(const struct elffile *elf, uint64_t addr)
{
	uint64_t size = 1 << 20;
	const uint8_t *bytes = NULL;

	while (size && !(bytes = elffile_at(elf, addr, size)))
		size /= 2;
	return (struct reader){ bytes, bytes + size, !bytes };
}

size_t lsda_pads(const struct elffile *elf, const struct eh_fde *fde, uint64_t from, uint64_t to,
	uint64_t *pads, size_t max)
{
	struct reader r = reader_at(elf, fde->lsda);
	uint64_t base = fde->start, length;
	const uint8_t *end;
	uint8_t encoding;
	size_t n = 0;

	/* Pads count from the function's start, unless there is an LPStart, which gcc and clang
	 * write for parts split off. Its encodings are the pointer's; those in use here are two. */
	encoding = read_byte(&r);
	if (encoding != PE_OMIT)
		base = read_number(&r, encoding);
	encoding = read_byte(&r); /* of the type table, which is not needed */
	if (encoding != PE_OMIT)
		read_uleb(&r);
	encoding = read_byte(&r);
	length = read_uleb(&r);
	if (r.damaged || length > (uint64_t)(r.end - r.next))
		return 0;
	end = r.next + length;
	while (r.next < end && !r.damaged) {
		uint64_t pad;

		read_number(&r, encoding);
		read_number(&r, encoding);
		pad = read_number(&r, encoding);
		read_uleb(&r);
		pad = pad ? pad + base : 0;
		if (!r.damaged && pad >= from && pad < to && n < max)
			pads[n++] = pad;
	}
	return n;
}
