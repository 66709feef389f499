/* SPDX-License-Identifier: MIT */
/* After the last detach the text is what it was, byte for byte, whatever had been attached. */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include "check.h"
#include <link.h>

#define TEXTS_MAX 64

static struct text {
	const unsigned char *start;
	unsigned char *copy;
	size_t size;
} texts[TEXTS_MAX];
static int ntexts;

static int note_texts(struct dl_phdr_info *info, size_t size, void *unused)
{
	(void)size;
	(void)unused;
	for (int i = 0; i < info->dlpi_phnum && ntexts < TEXTS_MAX; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type != PT_LOAD || !(ph->p_flags & PF_X))
			continue;
		texts[ntexts].start = (void *)(info->dlpi_addr + ph->p_vaddr);
		texts[ntexts].size = ph->p_memsz;
		texts[ntexts].copy = malloc(ph->p_memsz);
		memcpy(texts[ntexts].copy, texts[ntexts].start, ph->p_memsz);
		ntexts++;
	}
	return 0;
}

static size_t differences(void)
{
	size_t n = 0;

	for (int i = 0; i < ntexts; i++)
		for (size_t k = 0; k < texts[i].size; k++)
			n += texts[i].copy[k] != texts[i].start[k];
	return n;
}

static void nothing(struct ftr_call *call, void *data)
{
	(void)call;
	(void)data;
}

int main(void)
{
	static const struct ftr_probe_spec specs[] = {
		{ .name = "*", .module = "libc.so*", .flags = FTR_BEST_EFFORT },
		{ .name = "str*", .module = "libc.so*", .entry = nothing,
			.flags = FTR_BEST_EFFORT | FTR_GENERAL_REGS },
		{ .name = "mem*", .module = "libc.so*", .entry = nothing, .ret = nothing,
			.flags = FTR_BEST_EFFORT },
		{ .name = "note*", .entry = nothing },
	};
	enum { N = sizeof(specs) / sizeof(specs[0]) };
	struct ftr_probe *probes[N];

	/* Once, so that what the library patches for itself is there. */
	CHECK(ftr_attach(&specs[3], &probes[3]) == 1, "%s", ftr_error());
	CHECK_INT(ftr_detach(probes[3]), 0);
	dl_iterate_phdr(note_texts, NULL);
	for (int order = 0; order < 2; order++) {
		for (int i = 0; i < N; i++) {
			int n = ftr_attach(&specs[i], &probes[i]);

			CHECK(n > 0, "%d: %d %s", i, n, ftr_error());
		}
		CHECK(differences() > 20);
		for (int i = 0; i < N; i++)
			CHECK_INT(ftr_detach(probes[order ? i : N - 1 - i]), 0);
		CHECK_INT(differences(), 0);
	}
	puts("ok");
	return 0;
}
