/* SPDX-License-Identifier: MIT */
/*
 * The data files: what libftr.so writes and the tools read. docs/data-format.md describes the
 * same for people. All integers are in the byte order of the writer; a reader tells it from
 * `magic` and swaps. Every offset and count must be checked against the file's size: a file may be
 * cut off, half written, or foreign.
 *
 * A data directory holds, per process image (a process that calls exec has several in turn):
 *
 *   PID-START-N.counts     struct counts_header, then thread blocks. Written through shared
 *                          mappings while the program runs, so it survives any end of it.
 *   PID-START-N.K.symbols  struct symbols_header, then tables. Written once, before the first
 *                          function they describe is patched. Forked children refer to their
 *                          parent's files by name.
 *   PID-START-N.K.detours  the images (ELF shared objects) that carry the detours.
 *
 * START is the process's start time in clock ticks since boot (/proc/PID/stat field 22), N counts
 * the images of that process from 0, K the batches of modules from 0.
 */
#ifndef TRACER_FORMAT_H
#define TRACER_FORMAT_H

#include <stdint.h>

#define FORMAT_COUNTS_MAGIC  0x31544e5552544600ull /* "\0FTRUNT1" in memory, little endian */
#define FORMAT_SYMBOLS_MAGIC 0x314d595352544600ull /* "\0FTRSYM1" */
#define FORMAT_VERSION       2
#define FORMAT_NAME_MAX      96 /* of a symbols file's name, with its zero */
#define FORMAT_BATCHES_MAX   512
#define FORMAT_HEADER_SIZE   65536 /* thread blocks begin here */

enum format_end {
	FORMAT_END_NONE = 0, /* running, killed by a signal, or replaced by exec: see the tools */
	FORMAT_END_EXIT = 1, /* status is the exit status */
};

/* Counter values at one moment: counter ticks and CLOCK_MONOTONIC nanoseconds. */
struct format_anchor {
	uint64_t ticks;
	uint64_t ns;
};

/* A batch of functions described by one symbols file. */
struct format_batch {
	char symbols[FORMAT_NAME_MAX]; /* file name inside the data directory, terminated */
	uint32_t first_id;
	uint32_t count;
};

struct counts_header {
	uint64_t magic;
	uint32_t version;
	uint32_t header_size; /* FORMAT_HEADER_SIZE */
	uint32_t pid, ppid;
	uint64_t start_time; /* as in the file's name */
	uint64_t boot_id[2]; /* first 16 bytes of the kernel's boot id, to know "this boot" */
	uint64_t wall_ns;    /* CLOCK_REALTIME at the first anchor */
	uint32_t mode;	     /* enum detour_mode */
	uint32_t end;	     /* enum format_end */
	int32_t status;
	uint32_t image; /* N */
	struct format_anchor first, last;
	uint64_t lost_calls;   /* calls that were seen and could not be recorded */
	uint64_t lost_threads; /* threads that got no block */
	uint64_t lost_processes; /* forked children that could not make their file */
	uint32_t nblocks;	 /* thread blocks in use; block i is at
				  * header_size + i * block_size */
	uint32_t block_size;	 /* bytes, the thread header included; a multiple of the page size */
	uint32_t max_ids;	 /* function records per block; record of id at
				  * thread_size + id * FUNC_RECORD_SIZE (arch/arch.h: func_record) */
	uint32_t thread_size;	 /* sizeof(struct thread_header) rounded up to 64 */
	uint32_t nbatches;
	uint32_t args_len; /* bytes of args */
	char exe[1024];	   /* terminated */
	char args[4096];   /* arguments, each terminated, cut off at this size */
	struct format_batch batches[FORMAT_BATCHES_MAX];
	uint64_t lost_functions; /* traced by a breakpoint, which the program has then made unsafe */
	uint64_t flushes_asked; /* detours and patches that were to be in place, on CPUs whose
				 * instruction caches do not see stores by themselves; else 0 */
	uint64_t flushes_done; /* those that were not there yet, and were stored and flushed */
};

struct thread_header {
	uint32_t tid;	/* of the thread that uses the block or used it last; 0: never used */
	uint32_t users; /* threads that have used it, one after the other */
	uint64_t start; /* counter ticks at the latest thread's first traced call */
	uint64_t spare[6];
};

struct symbols_header {
	uint64_t magic;
	uint32_t version;
	uint32_t machine; /* EM_* of the traced program */
	uint32_t first_id; /* of functions[0] */
	uint32_t nfunctions; /* functions with an id: they have a func_record */
	uint32_t nskipped;   /* further entries of functions[] behind them: not traced */
	uint32_t nmodules;
	uint64_t modules_offset;   /* struct symbols_module[nmodules], from the file's start */
	uint64_t functions_offset; /* struct symbols_function[nfunctions + nskipped] */
	uint64_t aliases_offset;   /* uint32_t[naliases]: string offsets */
	uint64_t strings_offset;
	uint64_t strings_size;
	uint32_t naliases;
	uint32_t spare;
	uint64_t file_size;
};

struct symbols_module {
	uint32_t path; /* string offset */
	uint32_t build_id_len;
	uint8_t build_id[32];
	uint64_t bias;	   /* run-time minus link-time address */
	uint64_t image;	   /* string offset of the image's file name, 0: none */
};

struct symbols_function {
	uint64_t address; /* link-time, what nm prints */
	uint32_t size;
	uint32_t module; /* index */
	uint32_t name;	 /* string offset of the raw symbol; 0: no symbol, shown as module+0xaddress */
	uint32_t alias;	 /* index of the first alias */
	uint16_t naliases;
	uint8_t choice; /* enum site_choice */
	uint8_t reason; /* enum site_reason; skipped, or entry only when choice != SITE_REFUSED */
};

#endif
