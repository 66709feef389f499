/* SPDX-License-Identifier: MIT */
/*
 * The program under test: a key-value store that keeps a log of what was put. Records are written
 * by a thread of its own.
 */
#ifndef KV_H
#define KV_H

#ifdef __cplusplus
extern "C" {
#endif

struct kv;

/* Open the store at @path, made if it is not there. 0 with *@kv or -errno. */
int kv_open(const char *path, struct kv **kv);

/* Keys and values have no newline or tab. A value's memory is the store's, until the next put of
 * its key. 0 or -errno: -EINVAL, -ENOMEM. */
int kv_put(struct kv *kv, const char *key, const char *value);

/* NULL: there is none. */
const char *kv_get(struct kv *kv, const char *key);

/* Wait until all that was put is on disk. 0, or -errno of what could not be written. */
int kv_sync(struct kv *kv);

/* Sync, and free everything. As kv_sync(). */
int kv_close(struct kv *kv);

/* A fraction of the buckets in use, from 0 to 1. */
double kv_load(const struct kv *kv);

#ifdef __cplusplus
}
#endif

#endif
