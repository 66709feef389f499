/* SPDX-License-Identifier: MIT */
/*
 * Every kind of argument and result of the calling convention.
 *
 * cross: yes
 * expect: take_big calls=3
 * expect: give_big calls=3
 * expect: give_small calls=3
 * expect: give_mixed calls=3
 * expect: give_long_double calls=3
 * expect: give_long_complex calls=3
 * expect: give_complex calls=3
 * expect: give_int128 calls=3
 * expect: give_float_pair calls=3
 * expect: give_bool calls=3
 * expect: many_integers calls=3
 * expect: many_doubles calls=3
 * expect: many_of_all calls=3
 * expect: aligned_on_stack calls=3
 * expect: give_nothing calls=3
 */
#include "target.h"

#include <complex.h>
#include <stdbool.h>
#include <string.h>

struct big {
	long word[9];
};

struct small {
	char text[16];
};

struct mixed {
	long integer;
	double real;
};

struct float_pair {
	float a, b;
};

struct aligned {
	_Alignas(32) long word[4];
};

static NOIPA long take_big(long before, struct big big, long after)
{
	HIT();
	return before + big.word[0] * 10 + big.word[8] * 100 + after * 1000;
}

static NOIPA struct big give_big(long seed, double half)
{
	struct big big;

	HIT();
	for (int i = 0; i < 9; i++)
		big.word[i] = seed + i + (long)(half * 2);
	return big;
}

static NOIPA struct small give_small(const char *text)
{
	struct small small = {""};

	HIT();
	strncpy(small.text, text, sizeof(small.text) - 1);
	return small;
}

static NOIPA struct mixed give_mixed(struct mixed in)
{
	HIT();
	return (struct mixed){in.integer + 1, in.real + 0.5};
}

static NOIPA long double give_long_double(long double x, int i, long double y)
{
	HIT();
	return x * i + y;
}

static NOIPA long double complex give_long_complex(long double complex z)
{
	HIT();
	return z * (2.0L + 1.0L * I);
}

static NOIPA double complex give_complex(double complex z, double complex w)
{
	HIT();
	return z * w;
}

static NOIPA unsigned __int128 give_int128(unsigned __int128 x, long i, unsigned __int128 y)
{
	HIT();
	return x * (unsigned long)i + y;
}

static NOIPA struct float_pair give_float_pair(struct float_pair p, float f)
{
	HIT();
	return (struct float_pair){p.b + f, p.a - f};
}

static NOIPA bool give_bool(signed char c, unsigned short s)
{
	HIT();
	return c < 0 && s == 65535;
}

static NOIPA long many_integers(long a, long b, long c, long d, long e, long f, long g, long h,
	long i, long j, long k, long l)
{
	HIT();
	return a + b * 2 + c * 3 + d * 4 + e * 5 + f * 6 + g * 7 + h * 8 + i * 9 + j * 10 + k * 11 +
		l * 12;
}

static NOIPA double many_doubles(double a, double b, double c, double d, double e, double f,
	double g, double h, double i, double j, double k, double l)
{
	HIT();
	return a + b * 2 + c * 3 + d * 4 + e * 5 + f * 6 + g * 7 + h * 8 + i * 9 + j * 10 + k * 11 +
		l * 12;
}

static NOIPA double many_of_all(int a, double b, struct big c, float d, long double e, char f,
	struct mixed g, long h, __int128 i, double j, short k, struct small l, long m, float n)
{
	HIT();
	return a + b + c.word[4] + d + (double)e + f + g.integer + g.real + h + (double)i + j + k +
		l.text[1] + m + n;
}

static NOIPA long aligned_on_stack(
	long a, struct aligned s, long b, long c, long d, long e, long f, long g)
{
	HIT();
	return (long)((unsigned long)&s % 32) + a + b + c + d + e + f + g + s.word[3];
}

static NOIPA void give_nothing(void)
{
	HIT();
}

int main(void)
{
	for (int i = 1; i <= 3; i++) {
		struct big big = give_big(i, 0.5 * i);
		struct mixed mixed = give_mixed((struct mixed){i, i / 2.0});
		struct small small = give_small("fifteen letters");
		struct aligned aligned = {{1, 2, 3, i}};
		struct float_pair pair = give_float_pair((struct float_pair){i, 2 * i}, 0.25f);
		long double complex lz = give_long_complex(i + 2.0L * I);
		double complex z = give_complex(i + 1.0 * I, 2.0 - i * I);
		unsigned __int128 wide = give_int128((unsigned __int128)i << 70, 3, 7);

		give_nothing();
		printf("%ld %ld %s %ld %g\n", take_big(i, big, 5), big.word[8], small.text,
			mixed.integer, mixed.real);
		printf("%Lg %Lg %Lg %g %g\n", give_long_double(1.5L, i, 0.25L), creall(lz), cimagl(lz),
			creal(z), cimag(z));
		printf("%lx %lx %g %g %d\n", (long)(wide >> 64), (long)wide, pair.a, pair.b,
			give_bool(-i, 65535));
		printf("%ld %g\n", many_integers(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, i),
			many_doubles(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, i));
		printf("%g %ld\n",
			many_of_all(1, 2, big, 3, 4, 5, mixed, 6, 7, 8, 9, small, 10, i),
			aligned_on_stack(1, aligned, 2, 3, 4, 5, 6, 7));
	}
	hits("");
	return 0;
}
