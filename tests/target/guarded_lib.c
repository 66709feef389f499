/* SPDX-License-Identifier: MIT */
/* The library of guarded.c. */
void guarded_work(void);
void guarded_probe(void);

void guarded_work(void)
{
	__asm__ volatile("");
}

/* Jump to an instruction that is no landing pad. */
void guarded_probe(void)
{
#ifdef __aarch64__
	__asm__ volatile("adr x9, 1f\n\tbr x9\n1:\tnop" : : : "x9");
#endif
}
