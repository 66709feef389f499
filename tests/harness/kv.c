/* SPDX-License-Identifier: MIT */
#include "kv.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUCKETS 64

struct entry {
	struct entry *next;	   /* in its bucket */
	char *value;
	char key[];
};

struct kv {
	int fd;
	struct entry *buckets[BUCKETS];
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t changed;
	pthread_t writer;
	char *unsaved; /* records that are not written yet */
	size_t len;
	bool writing, closing;
	int error; /* the first of the writer's */
};

static unsigned hash(const char *key)
{
	unsigned h = 5381;

	while (*key)
		h = h * 33 + (unsigned char)*key++;
	return h % BUCKETS;
}

static struct entry *find(const struct kv *kv, const char *key)
{
	struct entry *e = kv->buckets[hash(key)];

	while (e && strcmp(e->key, key))
		e = e->next;
	return e;
}

/* Make the entry and its value, or neither. */
static int set(struct kv *kv, const char *key, const char *value)
{
	struct entry *e = find(kv, key);
	char *copy = malloc(strlen(value) + 1);

	if (!copy)
		return -ENOMEM;
	strcpy(copy, value);
	if (!e) {
		e = malloc(sizeof(*e) + strlen(key) + 1);
		if (!e) {
			free(copy);
			return -ENOMEM;
		}
		strcpy(e->key, key);
		e->value = NULL;
		e->next = kv->buckets[hash(key)];
		kv->buckets[hash(key)] = e;
	}
	free(e->value);
	e->value = copy;
	return 0;
}

/* ---- the log ---- */

static int write_all(int fd, const char *bytes, size_t len)
{
	while (len) {
		ssize_t n = write(fd, bytes, len);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			bytes += n;
			len -= (size_t)n;
		}
	}
	return fsync(fd) ? -errno : 0;
}

static void *writer_main(void *arg)
{
	struct kv *kv = arg;

	pthread_mutex_lock(&kv->lock);
	while (!kv->closing || kv->len) {
		char *bytes = kv->unsaved;
		size_t len = kv->len;
		int err;

		if (!len) {
			pthread_cond_wait(&kv->changed, &kv->lock);
			continue;
		}
		kv->unsaved = NULL;
		kv->len = 0;
		kv->writing = true;
		pthread_mutex_unlock(&kv->lock);
		err = write_all(kv->fd, bytes, len);
		free(bytes);
		pthread_mutex_lock(&kv->lock);
		kv->writing = false;
		if (err && !kv->error)
			kv->error = err;
		pthread_cond_broadcast(&kv->changed);
	}
	pthread_mutex_unlock(&kv->lock);
	return NULL;
}

/* Make room for a record, so that append() cannot fail. With the lock. */
static int reserve(struct kv *kv, const char *key, const char *value)
{
	char *bytes = realloc(kv->unsaved, kv->len + strlen(key) + strlen(value) + 3);

	if (!bytes)
		return -ENOMEM;
	kv->unsaved = bytes;
	return 0;
}

static void append(struct kv *kv, const char *key, const char *value)
{
	kv->len += (size_t)sprintf(kv->unsaved + kv->len, "%s\t%s\n", key, value);
	pthread_cond_broadcast(&kv->changed);
}

static int load_line(struct kv *kv, char *line)
{
	char *tab = strchr(line, '\t');

	if (!tab)
		return 0; /* cut off by a crash */
	*tab = 0;
	return set(kv, line, tab + 1);
}

/* Read the log, line by line. */
static int load(struct kv *kv)
{
	char buffer[512];
	size_t len = 0;

	for (;;) {
		ssize_t n = read(kv->fd, buffer + len, sizeof(buffer) - len);
		char *line = buffer, *end;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		len += (size_t)n;
		while ((end = memchr(line, '\n', len - (size_t)(line - buffer)))) {
			int err;

			*end = 0;
			err = load_line(kv, line);
			if (err)
				return err;
			line = end + 1;
		}
		len -= (size_t)(line - buffer);
		memmove(buffer, line, len);
		if (len == sizeof(buffer))
			return -EFBIG;
	}
}

/* ---- the store ---- */

static void free_all(struct kv *kv)
{
	for (int i = 0; i < BUCKETS; i++)
		while (kv->buckets[i]) {
			struct entry *e = kv->buckets[i];

			kv->buckets[i] = e->next;
			free(e->value);
			free(e);
		}
	close(kv->fd);
	free(kv->unsaved);
	free(kv);
}

int kv_open(const char *path, struct kv **out)
{
	struct kv *kv = calloc(1, sizeof(*kv));
	int err;

	if (!kv)
		return -ENOMEM;
	kv->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (kv->fd < 0) {
		err = -errno;
		free(kv);
		return err;
	}
	pthread_mutex_init(&kv->lock, NULL);
	pthread_cond_init(&kv->changed, NULL);
	err = load(kv);
	if (!err)
		err = -pthread_create(&kv->writer, NULL, writer_main, kv);
	if (err)
		free_all(kv);
	else
		*out = kv;
	return err;
}

int kv_put(struct kv *kv, const char *key, const char *value)
{
	int err;

	if (!*key || strpbrk(key, "\t\n") || strpbrk(value, "\t\n"))
		return -EINVAL;
	pthread_mutex_lock(&kv->lock);
	err = reserve(kv, key, value);
	if (!err)
		err = set(kv, key, value);
	if (!err)
		append(kv, key, value);
	pthread_mutex_unlock(&kv->lock);
	return err;
}

const char *kv_get(struct kv *kv, const char *key)
{
	const struct entry *e = find(kv, key);

	return e ? e->value : NULL;
}

int kv_sync(struct kv *kv)
{
	int err;

	pthread_mutex_lock(&kv->lock);
	while (kv->len || kv->writing)
		pthread_cond_wait(&kv->changed, &kv->lock);
	err = kv->error;
	pthread_mutex_unlock(&kv->lock);
	return err;
}

int kv_close(struct kv *kv)
{
	int err = kv_sync(kv);

	pthread_mutex_lock(&kv->lock);
	kv->closing = true;
	pthread_cond_broadcast(&kv->changed);
	pthread_mutex_unlock(&kv->lock);
	pthread_join(kv->writer, NULL);
	free_all(kv);
	return err;
}

double kv_load(const struct kv *kv)
{
	int used = 0;

	for (int i = 0; i < BUCKETS; i++)
		used += kv->buckets[i] != NULL;
	return (double)used / BUCKETS;
}
