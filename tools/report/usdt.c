/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "text.h"
#include "usdt.h"
#include "../../tracer/stap.h"

#define USDT_GAP 2 /* spaces between columns */

struct usdt_columns {
	size_t provider, name; /* the widest */
};

/* Map a file whole. NULL, with errno, or 0 in it: it is empty. */
static void *usdt_map(const char *path, size_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *bytes = MAP_FAILED;
	struct stat st;

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st)) {
		*size = (size_t)st.st_size;
		errno = 0;
		if (*size)
			bytes = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, fd, 0);
	}
	close(fd);
	return bytes == MAP_FAILED ? NULL : bytes;
}

static void usdt_measure(const struct elffile *elf, struct usdt_columns *columns)
{
	struct stap_probe p;

	*columns = (struct usdt_columns){ strlen("provider"), strlen("name") };
	for (uint64_t at = 0; stap_next(elf, &at, &p);) {
		size_t provider = text_visible(NULL, p.provider), name = text_visible(NULL, p.name);

		columns->provider = provider > columns->provider ? provider : columns->provider;
		columns->name = name > columns->name ? name : columns->name;
	}
}

static void usdt_cell(FILE *to, const char *s, size_t width)
{
	size_t used = text_visible(to, s);

	fprintf(to, "%*s", (int)(width - used + USDT_GAP), "");
}

static void usdt_row(FILE *to, const struct stap_probe *p, const struct usdt_columns *columns)
{
	usdt_cell(to, p->provider, columns->provider);
	usdt_cell(to, p->name, columns->name);
	fprintf(to, "%#18" PRIx64 "  ", p->addr);
	if (p->semaphore)
		fprintf(to, "%#18" PRIx64 "  ", p->semaphore);
	else
		fprintf(to, "%18s  ", "-");
	text_visible(to, *p->args ? p->args : "-");
	fputc('\n', to);
}

static void usdt_print(const struct elffile *elf, FILE *to)
{
	struct usdt_columns columns;
	struct stap_probe p;

	usdt_measure(elf, &columns);
	usdt_cell(to, "provider", columns.provider);
	usdt_cell(to, "name", columns.name);
	fprintf(to, "%18s  %18s  %s\n", "address", "semaphore", "arguments");
	for (uint64_t at = 0; stap_next(elf, &at, &p);)
		usdt_row(to, &p, &columns);
}

int usdt_list(const char *path, FILE *to, FILE *errors)
{
	const char *why = "empty";
	struct elffile elf;
	size_t size = 0;
	void *bytes = usdt_map(path, &size);
	int err = -1;

	if (!bytes && errno)
		why = strerror(errno);
	else if (bytes)
		err = elffile_parse(&elf, bytes, size, &why);
	if (err)
		fprintf(errors, "ftr-report: %s: %s\n", path, why);
	else
		usdt_print(&elf, to);
	if (bytes)
		munmap(bytes, size);
	return err ? -1 : 0;
}
