/* SPDX-License-Identifier: MIT */
/*
 * The child process: measures every row of its world. It prints, for children.c to read,
 *	ROW NANOSECONDS SHARE	or	ROW ! why it was not measured
 * and in the end, for rows that are traced, how many calls that were in all:
 *	ROW = CALLS
 * In the mode "count" it attaches a probe again and again, and prints nothing for that but
 *	flushes ! why it could not
 */
#include "bench.h"
#include "returns.h"
#include <stdio.h>
#include <string.h>

static void child_row(const struct row *row, uint64_t *rounds)
{
	struct timing timing;
	const char *why = NULL;
	uint64_t hits;
	int fd = -1, err;

	if (row->threads > 1 && bench.cpus[1] < 0)
		why = "needs a second CPU";
	else if (row->probe)
		why = uprobe_open(row, &fd);
	else if (row->nprobes)
		why = handlers_attach(row);
	if (why) {
		printf("%s ! %s\n", row->name, why);
		return;
	}
	err = measure_row(row, &timing);
	handlers_detach();
	if (err)
		die("%s: %s", row->name, strerror(err));
	*rounds = timing.rounds;
	if (row->probe) {
		hits = uprobe_close(fd);
		if (hits != timing.rounds) {
			printf("%s ! %ju calls, but %ju hits\n", row->name,
				(uintmax_t)timing.rounds, (uintmax_t)hits);
			return;
		}
	}
	printf("%s %.6f %.6f\n", row->name, timing.ns, timing.share);
}

static void child_flushes(void)
{
	const struct row *row = &rows[find_row("entry")];

	for (int i = 0; i < FLUSH_PROBES; i++) {
		const char *why = handlers_attach(row);

		if (why) {
			printf("flushes ! %s\n", why);
			return;
		}
		handlers_detach();
	}
}

void child_main(enum world world)
{
	uint64_t rounds[nrows];

	returns_start_thread();
	memset(rounds, 0, sizeof(rounds));
	for (size_t i = 0; i < nrows; i++) {
		if (world == WORLD_PLAIN || rows[i].traced_too)
			child_row(&rows[i], &rounds[i]);
	}
	if (world == WORLD_COUNT)
		child_flushes();
	/* For the parent to check: how often each function was called in all. */
	for (size_t i = 0; i < nrows; i++) {
		if (rows[i].traced_too)
			printf("%s = %ju\n", rows[i].name, (uintmax_t)rounds[i] * rows[i].calls);
	}
}
