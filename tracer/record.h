/* SPDX-License-Identifier: MIT */
/*
 * The data files of this process (tracer/format.h): created at start, and again by a forked child
 * at its first traced call. All counters live in shared file mappings, so nothing that was
 * recorded is lost however the process ends. No descriptor stays open.
 */
#ifndef TRACER_RECORD_H
#define TRACER_RECORD_H

#include "config.h"
#include "format.h"

struct shadow_thread;

/*
 * Make the data directory and reserve this process's file name. Notes the first clock anchor.
 * Where @config->data is empty there are no files: what is counted stays in memory.
 * 0 or -errno with *@why.
 */
int record_begin(const struct config *config, char *const *argv, const char **why);

/* A name for one more detour image of this process; empty when there are no files. The file is
 * removed when the process exits. */
void record_image_name(char *path, size_t size);

/* The image with this file has been unloaded: remove the file if it is one of this process. */
void record_image_gone(const char *path);

/* Write a symbols file for batch @batch and remember it. 0 or -errno. */
int record_symbols(const void *bytes, size_t size, uint32_t batch, uint32_t first_id,
	uint32_t count);

/*
 * Complete the counts file, with room for ids below @next_id and for @more later ones. From here on
 * threads may attach. 0 or -errno with *@why.
 */
int record_open(uint32_t next_id, uint32_t more, const char **why);

/* The id that the next function will get. */
uint32_t record_next_id(void);

/* Ids that there can be: all are below. */
uint32_t record_max_ids(void);

/* Make room for ids below @next_id in all threads' blocks. 0, or -ENOSPC. */
int record_grow(uint32_t next_id);

/* Nothing will be traced after all: take the files back. */
void record_abandon(void);

/* The process ends, by exit() or _exit(). May be called twice. */
void record_end(int status);

/* struct shadow_hooks */
bool record_attach(struct shadow_thread *thread);
void record_renew(struct shadow_thread *thread);
void record_lost_call(void);

/* @n functions are no longer traced, and were. */
void record_let_go(uint32_t n);
bool record_borrowed(void);

/* In a forked child: what MADV_WIPEONFORK does, where it is without effect. */
void record_wipe(void);

#endif
