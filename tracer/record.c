/* SPDX-License-Identifier: MIT */
#include "record.h"
#include "../arch/sys.h"
#include "../rethook/shadow.h"
#include "../rethook/thread.h"
#include "../trampolines/flush.h"
#include "../trampolines/maps.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define IMAGES_MAX  10000 /* of one process, by exec */
#define AHEAD_MAX   256	  /* thread blocks mapped in advance, */
#define AHEAD_BYTES (1ul << 30) /* and their bytes, of address space and of a sparse file */
#define THREAD_SIZE ((sizeof(struct thread_header) + 63) & ~63ul)

/* What a fork must take away: a child's calls must not count in its parent's files. */
struct wiped {
	struct counts_header *header; /* NULL in a forked child that has no files yet */
	uint32_t lock;		      /* of header->nblocks, the file's length and rec.path */
};

static struct {
	const char *data; /* directory; NULL: no files, all is in memory */
	char name[64];	   /* PID-START-N of this process or, in a child, of its own */
	struct counts_header *last; /* the mapped header, the parent's after a fork */
	struct wiped *wiped;
	uint8_t *ahead;	 /* thread blocks that are mapped but not yet backed by storage */
	uint32_t nahead; /* blocks 0 to here */
	uint32_t next_id;
	uint32_t pid;
	uint32_t nimages;
	char path[CONFIG_PATH_MAX + 128]; /* not on the stack: a thread may attach on a small one */
} rec;

_Static_assert(sizeof(struct counts_header) <= FORMAT_HEADER_SIZE, "header size");

static void use_header(struct counts_header *h)
{
	rec.last = h;
	flush_count_in(&h->flushes_asked, &h->flushes_done);
}

static uint64_t clock_ns(int which)
{
	struct timespec ts = { 0, 0 };

	sys_call(SYS_clock_gettime, which, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* The tightest of a few readings: no interrupt between the two clocks. */
static struct format_anchor anchor(void)
{
	struct format_anchor best = { 0, 0 };
	uint64_t width = ~0ull;

	for (int i = 0; i < 5; i++) {
		uint64_t before = arch_clock();
		uint64_t ns = clock_ns(CLOCK_MONOTONIC);
		uint64_t after = arch_clock();

		if (after - before < width) {
			width = after - before;
			best = (struct format_anchor){ before + width / 2, ns };
		}
	}
	return best;
}

/* A short file of /proc into @buf, terminated; its length or -errno. */
static long read_small(const char *path, char *buf, size_t size)
{
	int fd = sys_open(path, O_RDONLY, 0);
	long n;

	if (fd < 0)
		return fd;
	n = sys_read(fd, buf, size - 1);
	sys_close(fd);
	buf[n > 0 ? n : 0] = 0;
	return n;
}

static uint64_t parse_decimal(const char *p)
{
	uint64_t v = 0;

	for (; *p >= '0' && *p <= '9'; p++)
		v = v * 10 + (uint64_t)(*p - '0');
	return v;
}

/* proc(5): field 22 of stat; the command in field 2 may hold anything, so count from its ')'. */
static uint64_t start_time(void)
{
	char *stat = rec.path, *p = NULL;

	if (read_small("/proc/self/stat", stat, 1024) <= 0)
		return 0;
	for (char *q = stat; *q; q++)
		if (*q == ')')
			p = q;
	for (int field = 2; p && *p && field < 22; p++)
		field += *p == ' ';
	return p ? parse_decimal(p) : 0;
}

static uint64_t parse_uuid_half(const char **p)
{
	uint64_t v = 0;

	for (int digits = 0; **p && digits < 16; (*p)++) {
		char c = **p;

		if (c == '-')
			continue;
		v = v << 4 | (uint64_t)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
		digits++;
	}
	return v;
}

static void fill_boot_id(struct counts_header *h)
{
	char text[64];
	const char *p = text;

	if (read_small("/proc/sys/kernel/random/boot_id", text, sizeof(text)) < 36)
		return;
	h->boot_id[0] = parse_uuid_half(&p);
	h->boot_id[1] = parse_uuid_half(&p);
}

static int make_directory(const char *path)
{
	long err = sys_call(SYS_mkdirat, AT_FDCWD, path, 0777);

	return err == -EEXIST ? 0 : (int)err;
}

static int open_counts(int flags)
{
	str_print(rec.path, sizeof(rec.path), "%s/%s.counts", rec.data, rec.name);
	return sys_open(rec.path, O_RDWR | flags, 0666);
}

/* Create PID-START-N.counts with the first free N. The descriptor or -errno. */
static int create_counts(uint64_t start, uint32_t *image)
{
	int fd = -EEXIST;

	for (*image = 0; fd == -EEXIST && *image < IMAGES_MAX; (*image)++) {
		str_print(rec.name, sizeof(rec.name), "%d-%lu-%u", rec.pid, start, *image);
		fd = open_counts(O_CREAT | O_EXCL);
	}
	(*image)--;
	return fd;
}

/* A file of this size would raise SIGXFSZ. */
static bool beyond_limit(uint64_t size)
{
	struct rlimit limit;

	return !sys_call(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &limit)
		&& limit.rlim_cur != RLIM_INFINITY && size > limit.rlim_cur;
}

/* Allocate the file's blocks from @from on, without a signal at the limit. */
static int extend(int fd, uint64_t from, uint64_t size)
{
	long err;

	if (beyond_limit(from + size))
		return -EFBIG;
	do
		err = sys_call(SYS_fallocate, fd, 0, from, size);
	while (err == -EINTR);
	if (err == -EOPNOTSUPP) { /* no such call on this file system: write zeros */
		static const char zeros[4096];

		err = 0;
		for (uint64_t at = from; !err && at < from + size; at += sizeof(zeros))
			err = sys_pwrite_all(fd, zeros, sizeof(zeros), at);
	}
	return (int)err;
}

static void *map_shared(int fd, uint64_t offset, size_t size)
{
	return sys_mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
}

/* A place for @size bytes that are this process's alone. */
static void *map_private(size_t size)
{
	return sys_mmap(NULL, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

/* The header of a new counts file. 0 or -errno with *@why; the file is gone then. */
static int new_header(uint64_t start, uint32_t *image, struct counts_header **header,
	const char **why)
{
	int fd, err;

	*image = 0;
	*why = "no room for the data";
	if (!rec.data) {
		*header = map_private(FORMAT_HEADER_SIZE);
		return sys_failed(*header) ? -ENOMEM : 0;
	}
	fd = create_counts(start, image);
	if (fd < 0) {
		*why = "no file can be created in the data directory";
		return fd;
	}
	err = extend(fd, 0, FORMAT_HEADER_SIZE);
	*header = err ? NULL : map_shared(fd, 0, FORMAT_HEADER_SIZE);
	sys_close(fd);
	if (!err && sys_failed(*header))
		err = -ENOMEM;
	if (err)
		sys_call(SYS_unlinkat, AT_FDCWD, rec.path, 0);
	return err;
}

int record_begin(const struct config *config, char *const *argv, const char **why)
{
	struct counts_header *h;
	uint64_t start = start_time();
	uint32_t image;
	int err;

	rec.data = config->data[0] ? config->data : NULL;
	rec.pid = (uint32_t)sys_getpid();
	*why = "the data directory cannot be made";
	err = rec.data ? make_directory(rec.data) : 0;
	if (err)
		return err;
	rec.wiped = map_private(sys_page);
	*why = "no memory";
	if (sys_failed(rec.wiped)) {
		rec.wiped = NULL;
		return -ENOMEM;
	}
	*why = "memory cannot be kept from forked children";
	if (sys_call(SYS_madvise, rec.wiped, sys_page, MADV_WIPEONFORK))
		return -ENOSYS;
	err = new_header(start, &image, &h, why);
	if (err)
		return err;
	h->version = FORMAT_VERSION;
	h->header_size = FORMAT_HEADER_SIZE;
	h->pid = rec.pid;
	h->ppid = (uint32_t)sys_call(SYS_getppid);
	h->start_time = start;
	h->image = image;
	h->mode = config->mode;
	fill_boot_id(h);
	h->wall_ns = clock_ns(CLOCK_REALTIME);
	h->first = h->last = anchor();
	h->thread_size = THREAD_SIZE;
	sys_call(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", h->exe, sizeof(h->exe) - 1);
	for (; argv && *argv; argv++) {
		size_t n = strlen(*argv) + 1;

		if (h->args_len + n > sizeof(h->args))
			break;
		memcpy(h->args + h->args_len, *argv, n);
		h->args_len += (uint32_t)n;
	}
	use_header(h);
	return 0;
}

/* A file that belongs to this process: PID-START-N.K.@suffix */
static void file_name(char *path, size_t size, uint32_t batch, const char *suffix)
{
	str_print(path, size, "%s/%s.%u.%s", rec.data, rec.name, batch, suffix);
}

void record_image_name(char *path, size_t size)
{
	char suffix[24];

	path[0] = 0;
	if (!rec.data)
		return;
	str_print(suffix, sizeof(suffix), "%u.detours", rec.nimages++);
	file_name(path, size, 0, suffix);
}

/* A forked child's parent has its own ones mapped under its own name. */
void record_image_gone(const char *path)
{
	if (!rec.data || !str_starts(path, rec.data))
		return;
	path += strlen(rec.data) + 1;
	if (str_starts(path, rec.name) && path[strlen(rec.name)] == '.')
		sys_call(SYS_unlinkat, AT_FDCWD, path - strlen(rec.data) - 1, 0);
}

/* A forked child has none of its own but those of modules it has loaded itself. */
static void remove_images(void)
{
	char suffix[24];

	for (uint32_t i = 0; i < rec.nimages; i++) {
		str_print(suffix, sizeof(suffix), "%u.detours", i);
		file_name(rec.path, sizeof(rec.path), 0, suffix);
		sys_call(SYS_unlinkat, AT_FDCWD, rec.path, 0);
	}
}

int record_symbols(const void *bytes, size_t size, uint32_t batch, uint32_t first_id, uint32_t count)
{
	char *path = rec.path;
	struct format_batch *b = &rec.last->batches[batch];
	long err;
	int fd;

	if (batch >= FORMAT_BATCHES_MAX)
		return -ENOSPC;
	file_name(path, sizeof(rec.path), batch, "symbols");
	fd = sys_open(path, O_WRONLY | O_CREAT | O_EXCL, 0666);
	if (fd < 0)
		return fd;
	err = extend(fd, 0, size);
	if (!err)
		err = sys_pwrite_all(fd, bytes, size, 0);
	sys_close(fd);
	if (err) {
		sys_call(SYS_unlinkat, AT_FDCWD, path, 0);
		return (int)err;
	}
	str_print(b->symbols, sizeof(b->symbols), "%s.%u.symbols", rec.name, batch);
	b->first_id = first_id;
	b->count = count;
	__atomic_store_n(&rec.last->nbatches, batch + 1, __ATOMIC_RELEASE);
	return 0;
}

/*
 * Map room for the blocks of threads to come, without storage behind it yet: a thread that starts
 * later then needs no descriptor, which the program might see, close, or get for its own.
 */
static void map_ahead(const struct counts_header *h)
{
	uint64_t n = AHEAD_BYTES / h->block_size, size;
	int fd = rec.data ? open_counts(0) : -ENOENT;

	rec.nahead = 0;
	if (fd < 0)
		return;
	n = n < 1 ? 1 : n > AHEAD_MAX ? AHEAD_MAX : n;
	size = n * h->block_size;
	if (!beyond_limit(h->header_size + size)
		&& !sys_call(SYS_ftruncate, fd, h->header_size + size)) {
		rec.ahead = map_shared(fd, h->header_size, size);
		rec.nahead = sys_failed(rec.ahead) ? 0 : (uint32_t)n;
	}
	sys_close(fd);
}

uint32_t record_next_id(void)
{
	return rec.next_id;
}

uint32_t record_max_ids(void)
{
	return rec.last->max_ids;
}

/* Bytes of a block that ids below @next_id need. */
static uint64_t used_size(uint32_t next_id)
{
	return (THREAD_SIZE + (uint64_t)next_id * FUNC_RECORD_SIZE + sys_page - 1) & -sys_page;
}

int record_open(uint32_t next_id, uint32_t more, const char **why)
{
	struct counts_header *h = rec.last;
	uint32_t max_ids = next_id + more;
	uint64_t size = used_size(max_ids);

	*why = "too many functions";
	if (size > (1u << 31))
		return -EFBIG;
	h->max_ids = max_ids;
	h->block_size = (uint32_t)size;
	rec.next_id = next_id;
	map_ahead(h);
	h->last = anchor();
	__atomic_store_n(&h->magic, FORMAT_COUNTS_MAGIC, __ATOMIC_RELEASE);
	__atomic_store_n(&rec.wiped->header, h, __ATOMIC_RELEASE);
	return 0;
}

void record_abandon(void)
{
	if (rec.wiped)
		__atomic_store_n(&rec.wiped->header, NULL, __ATOMIC_RELEASE);
	if (!rec.name[0])
		return;
	remove_images();
	str_print(rec.path, sizeof(rec.path), "%s/%s.counts", rec.data, rec.name);
	sys_call(SYS_unlinkat, AT_FDCWD, rec.path, 0);
	if (!rec.last || !rec.last->nbatches)
		return;
	file_name(rec.path, sizeof(rec.path), 0, "symbols");
	sys_call(SYS_unlinkat, AT_FDCWD, rec.path, 0);
}

/* ---- threads ---- */

static struct counts_header *own_header(void)
{
	return rec.wiped ? __atomic_load_n(&rec.wiped->header, __ATOMIC_ACQUIRE) : NULL;
}

bool record_borrowed(void)
{
	return !shadow_hooks.sealed && own_header() && (uint32_t)sys_getpid() != rec.pid;
}

void record_wipe(void)
{
	memset(rec.wiped, 0, sizeof(*rec.wiped));
	thread_wipe();
}

static void lock(void)
{
	while (__atomic_exchange_n(&rec.wiped->lock, 1, __ATOMIC_ACQUIRE))
		sys_call(SYS_sched_yield);
}

static void unlock(void)
{
	__atomic_store_n(&rec.wiped->lock, 0, __ATOMIC_RELEASE);
}

static uint64_t block_offset(const struct counts_header *h, uint32_t index)
{
	return h->header_size + (uint64_t)index * h->block_size;
}

/* Lengthen the file by block @index, and give storage to what is used of it. */
static int extend_by_block(int fd, const struct counts_header *h, uint32_t index)
{
	uint64_t end = block_offset(h, index + 1);
	int err = beyond_limit(end)
		? -EFBIG
		: extend(fd, block_offset(h, index), used_size(rec.next_id));

	return err || index < rec.nahead ? err : (int)sys_call(SYS_ftruncate, fd, end);
}

/* Block @index, mapped and backed by storage as far as it is used; NULL: there is no room for it. */
static void *map_block(const struct counts_header *h, uint32_t index)
{
	uint8_t *block = rec.ahead + (uint64_t)index * h->block_size;
	long err = index < rec.nahead
		? sys_call(SYS_madvise, block, used_size(rec.next_id), MADV_POPULATE_WRITE)
		: -EINVAL;
	int fd;

	if (!rec.data)
		block = map_private(h->block_size);
	if (!err || !rec.data)
		return sys_failed(block) ? NULL : block;
	if (err != -EINVAL) /* which is a kernel before 5.14, too */
		return NULL;
	fd = open_counts(0);
	block = NULL;
	if (fd >= 0 && !extend_by_block(fd, h, index))
		block = map_shared(fd, block_offset(h, index), h->block_size);
	if (fd >= 0)
		sys_close(fd);
	return sys_failed(block) ? NULL : block;
}

/* Those from @first on, which were made through the file. */
static int grow_made(const struct counts_header *h, uint32_t first, uint64_t from, uint64_t to)
{
	int err = 0, fd = rec.data ? open_counts(0) : -EBADF;

	for (uint32_t i = first; fd >= 0 && !err && i < h->nblocks; i++)
		err = extend(fd, block_offset(h, i) + from, to - from);
	if (fd >= 0)
		sys_close(fd);
	return fd < 0 && rec.data ? fd : err;
}

static int grow_blocks(const struct counts_header *h, uint32_t next_id)
{
	uint64_t from = used_size(rec.next_id), to = used_size(next_id);
	long err = 0;

	for (uint32_t i = 0; to > from && !err && i < h->nblocks && i < rec.nahead; i++)
		err = sys_call(SYS_madvise, rec.ahead + (uint64_t)i * h->block_size + from,
			to - from, MADV_POPULATE_WRITE);
	if (err == -EINVAL) /* a kernel before 5.14 */
		err = grow_made(h, 0, from, to);
	else if (!err && to > from && h->nblocks > rec.nahead)
		err = grow_made(h, rec.nahead, from, to);
	return err ? -ENOSPC : 0;
}

int record_grow(uint32_t next_id)
{
	struct counts_header *h = own_header();
	int err = -ENOSPC;

	lock();
	if (h && next_id <= h->max_ids)
		err = grow_blocks(h, next_id);
	if (!err)
		rec.next_id = next_id;
	unlock();
	return err;
}

static void *new_block(struct counts_header *h, uint32_t *index)
{
	uint8_t *block = map_block(h, h->nblocks);

	*index = h->nblocks;
	if (block)
		__atomic_store_n(&h->nblocks, *index + 1, __ATOMIC_RELEASE);
	return block;
}

/* A forked child's own counts file: the parent's header with the numbers taken out. */
static struct counts_header *child_header(void)
{
	const struct counts_header *parent = rec.last;
	struct counts_header *h;
	uint64_t start = start_time();
	const char *why;
	uint32_t image;

	rec.pid = (uint32_t)sys_getpid();
	if (new_header(start, &image, &h, &why))
		return NULL;
	map_ahead(parent);
	memcpy(&h->version, &parent->version, sizeof(*h) - sizeof(h->magic));
	rec.nimages = 0;
	h->pid = rec.pid;
	h->ppid = (uint32_t)sys_call(SYS_getppid);
	h->start_time = start;
	h->image = image;
	h->wall_ns = clock_ns(CLOCK_REALTIME);
	h->lost_calls = h->lost_threads = h->lost_processes = 0;
	h->flushes_asked = h->flushes_done = 0;
	h->nblocks = 0;
	h->end = FORMAT_END_NONE;
	h->status = 0;
	__atomic_store_n(&h->magic, FORMAT_COUNTS_MAGIC, __ATOMIC_RELEASE);
	return h;
}

static void use_thread(struct shadow_thread *t, struct thread_header *th)
{
	th->tid = (uint32_t)t->tid;
	th->users++;
	th->start = arch_clock();
}

/* A forked child's own file becomes the process's. */
static struct counts_header *take_over(void)
{
	struct counts_header *h = child_header();

	if (!h) {
		__atomic_fetch_add(&rec.last->lost_processes, 1, __ATOMIC_RELAXED);
		return NULL;
	}
	use_header(h);
	__atomic_store_n(&rec.wiped->header, h, __ATOMIC_RELEASE);
	return h;
}

bool record_attach(struct shadow_thread *t)
{
	struct counts_header *h;
	uint8_t *block;
	bool forked;

	lock();
	h = own_header();
	forked = !h;
	if (forked)
		h = take_over();
	block = h ? new_block(h, &t->block) : NULL;
	unlock();
	if (block) {
		use_thread(t, (struct thread_header *)block);
		__atomic_store_n(
			t->records, (uint64_t)(block + h->thread_size), __ATOMIC_RELEASE);
	} else if (h) {
		__atomic_fetch_add(&h->lost_threads, 1, __ATOMIC_RELAXED);
	}
	return forked;
}

void record_renew(struct shadow_thread *t)
{
	use_thread(t, (struct thread_header *)((uint8_t *)shadow_records_of(t) - THREAD_SIZE));
}

void record_lost_call(void)
{
	struct counts_header *h = own_header();

	__atomic_fetch_add(&(h ? h : rec.last)->lost_calls, 1, __ATOMIC_RELAXED);
}

void record_let_go(uint32_t n)
{
	struct counts_header *h = own_header();

	__atomic_fetch_add(&(h ? h : rec.last)->lost_functions, n, __ATOMIC_RELAXED);
}

/*
 * The file has room for threads that never came; should one come now, it makes its own. The room is
 * unmapped, too: who looks through all memory, such as valgrind for leaks, would meet a signal on
 * each page without a file behind it.
 */
static void cut_off(const struct counts_header *h)
{
	uint32_t used;

	lock();
	used = h->nblocks;
	if (rec.nahead > used) {
		sys_munmap(rec.ahead + (uint64_t)used * h->block_size,
			(uint64_t)(rec.nahead - used) * h->block_size);
		rec.nahead = used;
	}
	str_print(rec.path, sizeof(rec.path), "%s/%s.counts", rec.data, rec.name);
	sys_call(SYS_truncate, rec.path, h->header_size + (uint64_t)h->nblocks * h->block_size);
	unlock();
}

/* @sp: the frames below are gone. */
static void flush_calls(uint64_t sp)
{
	struct arena arena = { 0 };
	const struct mapping *stack = NULL;
	struct maps maps;

	if (!maps_read(&maps, "/proc/self/maps", &arena))
		stack = maps_from(&maps, sp);
	shadow_flush(stack && stack->lo <= sp ? stack->lo : sp, sp, stack ? stack->hi : sp);
	arena_free(&arena);
}

void record_end(int status)
{
	struct counts_header *h = own_header();

	if (!h || record_borrowed())
		return;
	if (!shadow_hooks.sealed && rec.data) {
		flush_calls((uint64_t)__builtin_frame_address(0));
		h->last = anchor();
		remove_images();
		cut_off(h);
	}
	h->status = status & 0xff;
	__atomic_store_n(&h->end, FORMAT_END_EXIT, __ATOMIC_RELEASE);
}
