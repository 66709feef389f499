/* SPDX-License-Identifier: MIT */
/*
 * Runs a fuzz target without libFuzzer:
 *
 *   fuzz_x [-runs=N] [-seed=S] FILE...
 *
 * gives the target every file as it is, then N mutations of them. The same seed gives the same
 * mutations. Compiled with -DFUZZ_STANDALONE and linked to one target.
 */
#ifdef FUZZ_STANDALONE

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	uint8_t *bytes;
	size_t size;
};

static uint64_t random_state = 1;

/* xorshift64* */
static uint64_t next_random(void)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return random_state * 0x2545f4914f6cdd1dull;
}

static size_t random_below(size_t n)
{
	return n ? (size_t)(next_random() >> 16) % n : 0;
}

static int read_input(const char *path, struct input *input)
{
	FILE *f = fopen(path, "rb");
	long size;

	if (!f || fseek(f, 0, SEEK_END) || (size = ftell(f)) < 0) {
		perror(path);
		return -1;
	}
	rewind(f);
	input->bytes = malloc((size_t)size + 1);
	input->size = input->bytes ? fread(input->bytes, 1, (size_t)size, f) : 0;
	fclose(f);
	return input->bytes ? 0 : -1;
}

/* Where changes matter most is at the front: half of them go to the first 4 KiB. */
static size_t random_place(size_t size)
{
	return random_below(size > 4096 && next_random() >> 63 ? 4096 : size);
}

static void mutate(uint8_t *bytes, size_t *size)
{
	static const uint64_t interesting[] = { 0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fffffff,
		0x80000000, 0xffffffff, INT64_MAX, (uint64_t)INT64_MIN, UINT64_MAX };
	size_t at = random_place(*size), n = (size_t)1 << random_below(4);
	uint64_t value = interesting[random_below(sizeof(interesting) / sizeof(*interesting))];

	if (n > *size - at)
		n = *size - at;
	switch (random_below(6)) {
	case 0:
		bytes[at] ^= (uint8_t)(1u << random_below(8));
		break;
	case 1:
		bytes[at] = (uint8_t)next_random();
		break;
	case 2:
		memcpy(bytes + at, &value, n);
		break;
	case 3:
		bytes[at] += (uint8_t)(random_below(17) - 8);
		break;
	case 4:
		memmove(bytes + at, bytes + random_below(*size - n + 1), n);
		break;
	default:
		if (!random_below(8))
			*size = at + 1;
	}
}

/* From an allocation of just that size, so that a read behind it is seen. */
static int run_copy(const struct input *input, size_t changes)
{
	uint8_t *bytes = malloc(input->size ? input->size : 1), *exact;
	size_t size = input->size;

	if (!bytes)
		return -1;
	memcpy(bytes, input->bytes, size);
	while (changes-- && size)
		mutate(bytes, &size);
	exact = size < input->size ? realloc(bytes, size ? size : 1) : bytes;
	LLVMFuzzerTestOneInput(exact, size);
	free(exact);
	return 0;
}

int main(int argc, char **argv)
{
	struct input *inputs = calloc((size_t)argc, sizeof(*inputs));
	size_t ninputs = 0;
	unsigned long runs = 0;

	for (int i = 1; inputs && i < argc; i++) {
		if (!strncmp(argv[i], "-runs=", 6))
			runs = strtoul(argv[i] + 6, NULL, 0);
		else if (!strncmp(argv[i], "-seed=", 6))
			random_state = strtoull(argv[i] + 6, NULL, 0) * 2 + 1;
		else if (read_input(argv[i], &inputs[ninputs++]))
			return 1;
	}
	if (!ninputs) {
		fprintf(stderr, "usage: %s [-runs=N] [-seed=S] FILE...\n", argv[0]);
		return 2;
	}
	for (size_t i = 0; i < ninputs; i++)
		if (run_copy(&inputs[i], 0))
			return 1;
	for (unsigned long run = 0; run < runs; run++)
		if (run_copy(&inputs[random_below(ninputs)], 1 + random_below(16)))
			return 1;
	printf("%zu files, %lu mutations\n", ninputs, runs);
	for (size_t i = 0; i < ninputs; i++)
		free(inputs[i].bytes);
	free(inputs);
	return 0;
}

#endif
