// SPDX-License-Identifier: MIT
/*
 * A plugin for qemu-user that counts the instructions a thread executes between two places: from
 * each time it executes the one at FROM until it executes the one at TO.
 *
 *	-plugin libcount.so,from=0xADDRESS,to=0xADDRESS,out=FILE
 *
 * FILE gets a line with the number for each time. What is declared here of qemu's interface for
 * plugins is described in its manual, "QEMU TCG Plugins" (version 1 of the interface and later).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_info;
enum { NO_REGISTERS = 0, INLINE_ADD_U64 = 0 };

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
void qemu_plugin_register_vcpu_tb_trans_cb(
	uint64_t id, void (*translated)(uint64_t id, struct qemu_plugin_tb *tb));
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
	void (*executed)(unsigned int cpu, void *arg), int flags, void *arg);
void qemu_plugin_register_vcpu_insn_exec_inline(
	struct qemu_plugin_insn *insn, int operation, void *number, uint64_t value);

#define EXPORTED __attribute__((visibility("default")))
EXPORTED int qemu_plugin_version = 1;
EXPORTED int qemu_plugin_install(
	uint64_t id, const struct qemu_info *info, int argc, char **argv);

static struct {
	uint64_t from, to;
	FILE *out;
	uint64_t executed, start;
	bool inside;
} count;

static void count_from(unsigned int cpu, void *unused)
{
	(void)cpu;
	(void)unused;
	count.inside = true;
	count.start = count.executed;
}

static void count_to(unsigned int cpu, void *unused)
{
	(void)cpu;
	(void)unused;
	if (count.inside)
		fprintf(count.out, "%ju\n", (uintmax_t)(count.executed - count.start));
	fflush(count.out);
	count.inside = false;
}

static void count_translated(uint64_t id, struct qemu_plugin_tb *tb)
{
	(void)id;
	for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint64_t at = qemu_plugin_insn_vaddr(insn);

		qemu_plugin_register_vcpu_insn_exec_inline(insn, INLINE_ADD_U64, &count.executed, 1);
		if (at == count.from)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, count_from, NO_REGISTERS, NULL);
		else if (at == count.to)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, count_to, NO_REGISTERS, NULL);
	}
}

int qemu_plugin_install(uint64_t id, const struct qemu_info *info, int argc, char **argv)
{
	(void)info;
	for (int i = 0; i < argc; i++) {
		if (!strncmp(argv[i], "from=", 5))
			count.from = strtoull(argv[i] + 5, NULL, 0);
		else if (!strncmp(argv[i], "to=", 3))
			count.to = strtoull(argv[i] + 3, NULL, 0);
		else if (!strncmp(argv[i], "out=", 4))
			count.out = fopen(argv[i] + 4, "w");
	}
	if (!count.from || !count.to || !count.out) {
		fprintf(stderr, "count: needs from=, to= and out=\n");
		return -1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, count_translated);
	return 0;
}
