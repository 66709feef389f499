/* SPDX-License-Identifier: MIT */
/* A note as sys/sdt.h makes them, for the nop at the label 990 of assembly: for places and operands that
 * its macros would not make. */
#ifndef PROBE_NOTE_H
#define PROBE_NOTE_H

#define NOTE(provider, name, arguments)                                                            \
	".pushsection .note.stapsdt,\"\",\"note\"\n\t.balign 4\n\t.4byte 992f-991f,994f-993f,3\n"  \
	"991:\t.asciz \"stapsdt\"\n992:\t.balign 4\n993:\t.8byte 990b\n\t.8byte _.stapsdt.base\n"  \
	"\t.8byte 0\n\t.asciz \"" provider "\"\n\t.asciz \"" name "\"\n\t.asciz \"" arguments "\"\n" \
	"994:\t.balign 4\n.popsection\n"                                                           \
	".ifndef _.stapsdt.base\n.pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n" \
	"\t.weak _.stapsdt.base\n\t.hidden _.stapsdt.base\n_.stapsdt.base:\t.space 1\n"          \
	"\t.size _.stapsdt.base, 1\n.popsection\n.endif\n"

#endif
