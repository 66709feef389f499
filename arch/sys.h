/* SPDX-License-Identifier: MIT */
/*
 * System calls made directly, without libc's wrappers: these may be traced, replaced by the
 * program, or not yet usable (the preload constructor runs before libc's). Results are the
 * kernel's: a negative value is -errno. The program's errno is never touched.
 */
#ifndef ARCH_SYS_H
#define ARCH_SYS_H

#include "mem.h"
#include <sys/mman.h>
#include <sys/syscall.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18 /* Linux 4.14, which older libcs do not know */
#endif

#if defined(__x86_64__)
static inline long sys_call6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "0"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}
#elif defined(__aarch64__)
static inline long sys_call6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc #0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
}
#elif defined(__powerpc64__)
static inline long sys_call6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r0 __asm__("r0") = nr;
	register long r3 __asm__("r3") = a;
	register long r4 __asm__("r4") = b;
	register long r5 __asm__("r5") = c;
	register long r6 __asm__("r6") = d;
	register long r7 __asm__("r7") = e;
	register long r8 __asm__("r8") = f;

	/* The kernel reports failure in cr0.SO with a positive errno. */
	__asm__ volatile("sc; bns+ 1f; neg 3,3; 1:"
			 : "+r"(r0), "+r"(r3), "+r"(r4), "+r"(r5), "+r"(r6), "+r"(r7), "+r"(r8)
			 :
			 : "memory", "cr0", "r9", "r10", "r11", "r12", "ctr", "xer");
	return r3;
}
#else
#error "no system call sequence for this CPU: add it here and see arch/README.md"
#endif

#define SYS_CALL_PICK(_1, _2, _3, _4, _5, _6, _7, name, ...) name
#define sys_call(...)                                                                              \
	SYS_CALL_PICK(__VA_ARGS__, SYS_CALL6, SYS_CALL5, SYS_CALL4, SYS_CALL3, SYS_CALL2,          \
		SYS_CALL1, SYS_CALL0)(__VA_ARGS__)
#define SYS_CALL0(nr)                sys_call6(nr, 0, 0, 0, 0, 0, 0)
#define SYS_CALL1(nr, a)             sys_call6(nr, (long)(a), 0, 0, 0, 0, 0)
#define SYS_CALL2(nr, a, b)          sys_call6(nr, (long)(a), (long)(b), 0, 0, 0, 0)
#define SYS_CALL3(nr, a, b, c)       sys_call6(nr, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define SYS_CALL4(nr, a, b, c, d)    sys_call6(nr, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define SYS_CALL5(nr, a, b, c, d, e) \
	sys_call6(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)
#define SYS_CALL6(nr, a, b, c, d, e, f) \
	sys_call6(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

/* The kernel's page size (AT_PAGESZ), once the tracer has started: 64 KiB on many powerpc and arm64
 * systems. 4096 before. */
extern size_t sys_page;

/* The few calls that everybody needs; flags and results as the kernel's. */
int sys_open(const char *path, int flags, int mode);
void sys_close(int fd);
long sys_read(int fd, void *buf, size_t n);	   /* retries EINTR */
long sys_write_all(int fd, const void *buf, size_t n); /* 0 or -errno */
long sys_pwrite_all(int fd, const void *buf, size_t n, uint64_t offset); /* 0 or -errno */
void *sys_mmap(void *addr, size_t len, int prot, int flags, int fd, uint64_t offset);
int sys_munmap(void *addr, size_t len);
bool sys_failed(const void *mapped); /* of a sys_mmap result */
int sys_getpid(void);
int sys_gettid(void);

/* The whole of a small file such as /proc/self/maps, terminated; NULL when it cannot be read. */
char *sys_slurp(struct arena *arena, const char *path, size_t *len);

#endif
