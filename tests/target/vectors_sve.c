/* SPDX-License-Identifier: MIT */
/*
 * Arguments, results and kept registers of SVE2, and of the vector calling convention: the z, p and q
 * registers that a caller has in use are whole after a call, also after a thread's first one, which
 * takes the slow path.
 *
 * flags: arm64: -O2 -march=armv8.5-a+sve2 -pthread
 * flags: arm64: -O1 -march=armv8.5-a+sve2 -pthread -mbranch-protection=standard
 * flags: arm64: clang -O2 -march=armv8.5-a+sve2 -pthread
 * needs: arm64 sve2
 * env: FTR_FUNCTIONS=*,!thread_main,!check_*
 * expect: first calls=5
 * expect: add calls=50
 * expect: many calls=50
 * expect: choose calls=50
 * expect: mix calls=50
 * expect: vector_pcs calls=50
 */
#include "target.h"
#include <arm_neon.h>
#include <arm_sve.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define THREADS 5
#define ROUNDS	10

static NOIPA svuint64_t first(svuint64_t a, svbool_t odd)
{
	HIT();
	return svadd_n_u64_m(odd, a, 1);
}

static NOIPA svfloat64_t add(svfloat64_t a, svfloat64_t b)
{
	HIT();
	return svadd_f64_x(svptrue_b64(), a, b);
}

/* All registers for arguments. */
static NOIPA svuint64_t many(svuint64_t a, svuint64_t b, svuint64_t c, svuint64_t d, svuint64_t e,
	svuint64_t f, svuint64_t g, svuint64_t h)
{
	svbool_t all = svptrue_b64();

	HIT();
	a = svmla_n_u64_x(all, a, b, 3);
	a = svmla_n_u64_x(all, a, c, 5);
	a = svmla_n_u64_x(all, a, d, 7);
	a = svmla_n_u64_x(all, a, e, 11);
	a = svmla_n_u64_x(all, a, f, 13);
	a = svmla_n_u64_x(all, a, g, 17);
	return svmla_n_u64_x(all, a, h, 19);
}

static NOIPA svbool_t choose(svbool_t a, svbool_t b, svbool_t c, svbool_t d)
{
	svbool_t all = svptrue_b8();

	HIT();
	return svorr_b_z(all, svand_b_z(all, a, b), svbic_b_z(all, c, d));
}

/* An instruction of SVE2. */
static NOIPA svuint64_t mix(svuint64_t a, svuint64_t b, svuint64_t c)
{
	HIT();
	return sveor3_u64(a, b, c);
}

/* Keeps q8 to q23 whole, where other functions keep their lower halves. */
static NOIPA __attribute__((aarch64_vector_pcs)) uint64x2_t vector_pcs(uint64x2_t a, uint64x2_t b)
{
	HIT();
	return vaddq_u64(a, b);
}

/* ---- callers, with values of their own in the registers that the functions keep ---- */

static uint64_t lane(uint64_t n, uint64_t i)
{
	return n + i * (n * n + 1);
}

static inline svuint64_t lanes(uint64_t n)
{
	return svindex_u64(n, n * n + 1);
}

static bool bit(uint64_t n, uint64_t i)
{
	return (i * (n + 1) & 7) < 3;
}

static inline svbool_t bits(uint64_t n)
{
	svbool_t all = svptrue_b8();

	return svcmplt_n_u8(all, svand_n_u8_x(all, svindex_u8(0, (uint8_t)(n + 1)), 7), 3);
}

static inline uint64_t sum(svuint64_t a)
{
	return svaddv_u64(svptrue_b64(), a);
}

static inline uint64_t count(svbool_t p)
{
	return svcntp_b8(svptrue_b8(), p);
}

static NOIPA uint64_t check_first(void)
{
	svuint64_t a = lanes(5), b = lanes(6);
	svbool_t p = bits(2);
	uint64_t wanted = 0, got = sum(first(a, svptrue_b64())) + 3 * sum(a) + 5 * sum(b) + count(p);

	for (uint64_t i = 0; i < svcntd(); i++)
		wanted += 1 + 4 * lane(5, i) + 5 * lane(6, i);
	for (uint64_t i = 0; i < svcntb(); i++)
		wanted += bit(2, i);
	return wanted ^ got;
}

static NOIPA uint64_t check_sve(uint64_t n)
{
	svuint64_t a = lanes(n), b = lanes(n + 1), c = lanes(n + 2), d = lanes(n + 3);
	svbool_t p = bits(n), q = bits(n + 1), r = bits(n + 2), all = svptrue_b64();
	svuint64_t m = mix(many(a, b, c, d, a, b, c, d), a, d);
	svfloat64_t x = add(svcvt_f64_u64_x(all, a), svcvt_f64_u64_x(all, b));
	uint64_t wanted = 0, got = count(choose(p, q, r, bits(n + 3)));

	got += 2 * count(p) + 4 * count(q) + 8 * count(r);
	got += sum(m) + 3 * sum(a) + 5 * sum(b) + 7 * sum(c) + 9 * sum(d) + (uint64_t)svaddv_f64(all, x);
	for (uint64_t i = 0; i < svcntd(); i++) {
		uint64_t e = lane(n, i), f = lane(n + 1, i), g = lane(n + 2, i), h = lane(n + 3, i);

		wanted += ((12 * e + 16 * f + 22 * g + 26 * h) ^ e ^ h) + 4 * e + 6 * f + 7 * g + 9 * h;
	}
	for (uint64_t i = 0; i < svcntb(); i++) {
		bool e = bit(n, i), f = bit(n + 1, i), g = bit(n + 2, i), h = bit(n + 3, i);

		wanted += (uint64_t)((e && f) || (g && !h)) + 2 * e + 4 * f + 8 * g;
	}
	return wanted ^ got;
}

static NOIPA uint64_t check_vector_pcs(uint64_t n)
{
	uint64x2_t kept[16], a = vdupq_n_u64(n);
	uint64_t wrong = 0;

#pragma GCC unroll 16
	for (uint64_t i = 0; i < 16; i++) {
		kept[i] = vcombine_u64(vdup_n_u64(n * i), vdup_n_u64(n + i));
		__asm__("" : "+w"(kept[i])); /* not to be made again */
	}
	a = vector_pcs(a, kept[3]);
#pragma GCC unroll 16
	for (uint64_t i = 0; i < 16; i++)
		wrong |= (vgetq_lane_u64(kept[i], 0) ^ n * i) | (vgetq_lane_u64(kept[i], 1) ^ (n + i));
	return wrong | (vgetq_lane_u64(a, 0) ^ (n + 3 * n)) | (vgetq_lane_u64(a, 1) ^ (n + n + 3));
}

static void *thread_main(void *wrong)
{
	uint64_t *all = wrong;

	*all = check_first();
	for (uint64_t n = 1; n <= ROUNDS; n++)
		*all |= check_sve(n) | check_vector_pcs(n);
	return NULL;
}

int main(void)
{
	for (int i = 0; i < THREADS; i++) {
		uint64_t wrong;
		pthread_t thread;

		if (pthread_create(&thread, NULL, thread_main, &wrong) || pthread_join(thread, NULL))
			return 2;
		if (wrong)
			return 1;
	}
	hits("");
	return 0;
}
