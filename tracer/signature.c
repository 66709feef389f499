/* SPDX-License-Identifier: MIT */
#include "signature.h"
#include "decimal.h"

/* What ftr_argument() calls a letter of ours; 0: none of the letters. */
static char public_letter(char letter)
{
	switch (letter) {
	case 'b':
	case 'h':
	case 'w':
	case 'p':
	case 'z':
		return 'i';
	case 'i':
	case 'x':
	case 'f':
	case 'd':
	case 'D':
	case 'v':
	case 's':
		return letter;
	default:
		return 0;
	}
}

/* One parameter, or the '.', at @s; what follows it. NULL: wrong. */
static const char *parse_one(struct signature *signature, const char *s, size_t *len)
{
	char letter = *s == '.' ? '.' : public_letter(*s);

	if (!letter || *len + 8 > sizeof(signature->types))
		return NULL;
	if (letter != '.') {
		if (signature->n == SIGNATURE_MAX)
			return NULL;
		signature->letters[signature->n++] = *s;
	} else if (signature->fixed != SIGNATURE_MAX) {
		return NULL;
	} else {
		signature->fixed = signature->n;
	}
	signature->types[(*len)++] = letter;
	s++;
	if (letter != 's')
		return s;
	if (*s < '1' || *s > '9')
		return NULL;
	for (int digits = 0; *s >= '0' && *s <= '9' && digits < 6; digits++)
		signature->types[(*len)++] = *s++;
	return s;
}

bool signature_parse(struct signature *signature, const char *text)
{
	size_t len = 0;

	*signature = (struct signature){ .none = !text, .fixed = SIGNATURE_MAX };
	if (!text)
		return true;
	if (*text != '(') {
		if (!public_letter(*text))
			return false;
		signature->result = *text++;
	}
	if (*text++ != '(')
		return false;
	while (text && *text && *text != ')')
		text = parse_one(signature, text, &len);
	if (!text || *text != ')' || text[1])
		return false;
	if (signature->fixed == SIGNATURE_MAX)
		signature->fixed = signature->n;
	return true;
}

char signature_letter(const struct signature *signature, unsigned n)
{
	if (n == FTR_RESULT)
		return signature->result;
	return n < signature->n ? signature->letters[n] : 0;
}

char signature_kind(char letter)
{
	char public = public_letter(letter);

	return public == 'f' ? 'd' : public == 'i' || public == 'd' ? public : 0;
}

uint64_t signature_cut(char letter, uint64_t value)
{
	switch (letter) {
	case 'b':
		return (uint64_t)(int8_t)value;
	case 'h':
		return (uint64_t)(int16_t)value;
	case 'w':
		return (uint64_t)(int32_t)value;
	default:
		return value;
	}
}

bool signature_value(const struct signature *signature, struct ftr_call *call, unsigned n,
	uint64_t *value)
{
	char letter = signature_letter(signature, n);
	const void *place;
	uint32_t narrow;

	if (!letter || !signature_kind(letter))
		return false;
	place = n == FTR_RESULT ? ftr_result(call, public_letter(letter))
				: ftr_argument(call, signature->types, n);
	if (!place)
		return false;
	if (letter == 'f') {
		memcpy(&narrow, place, sizeof(narrow));
		*value = decimal_widen(narrow);
	} else {
		memcpy(value, place, sizeof(*value));
		*value = signature_cut(letter, *value);
	}
	return true;
}

/* @text in quotes, with escapes. */
static size_t print_text(char *out, size_t size, const char *text)
{
	size_t n = str_print(out, size, "\"");

	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '\n')
			n += str_print(out + n, size - n, "\\n");
		else if (c < ' ' || c == 0x7f)
			n += str_print(out + n, size - n, "\\x%02x", c);
		else
			n += str_print(out + n, size - n, c == '"' || c == '\\' ? "\\%c" : "%c", c);
	}
	return n + str_print(out + n, size - n, "\"");
}

size_t signature_print(char *out, size_t size, char letter, uint64_t value, const char *text)
{
	char number[DECIMAL_MAX];

	if (signature_kind(letter) == 'd') {
		decimal_print(number, value);
		return str_print(out, size, "%s", number);
	}
	if (!signature_kind(letter))
		return str_print(out, size, "?");
	if (letter == 'z' && text)
		return print_text(out, size, text);
	if (letter == 'z' || letter == 'p')
		return str_print(out, size, value ? "0x%lx" : "NULL", value);
	return str_print(out, size, "%ld", (long)value);
}
