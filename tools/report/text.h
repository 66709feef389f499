/* SPDX-License-Identifier: MIT */
/*
 * Text for people and machines. Names come from foreign files and are bytes: nothing here trusts
 * their encoding or depends on the locale.
 */
#ifndef REPORT_TEXT_H
#define REPORT_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * The character that @s begins with (UTF-8: shortest form, no surrogates). Returns its length in
 * bytes; 0: not a character, or the end of the string.
 */
size_t text_decode(const char *s, uint32_t *character);

/*
 * Write the character that @s, not its end, begins with, so that the output is valid UTF-8: a byte
 * that belongs to no character becomes U+FFFD. Returns the number of bytes of @s this was.
 */
size_t text_put(FILE *to, const char *s);

/*
 * What is safe to show on a terminal, everything else as \xNN. Returns the number of characters;
 * @to may be NULL to know just that.
 */
size_t text_visible(FILE *to, const char *s);

#define TEXT_NS_MAX 24
/* Three digits and a unit: "999ns", "1.23us", "45.6ms", "789s". Returns @buf. */
char *text_ns(char buf[TEXT_NS_MAX], uint64_t ns);

/* The last part of a path. */
const char *text_base(const char *path);

#endif
