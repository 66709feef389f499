/* SPDX-License-Identifier: MIT */
/* For assembly. */

	/* \op of all vector registers, which are from r9 on: vs0 to vs31, then v0 to v31. Uses r10. */
	.macro each vsx, vmx
	.irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
	li 10, 16 * \n
	\vsx \n, 9, 10
	li 10, 512 + 16 * \n
	\vmx \n, 9, 10
	.endr
	.endm

	/* The control registers of both kinds, to r1 + \fpscr and r1 + \vscr, and back. Once the vectors are
	 * kept, and before they are taken back. Uses r10, vs0 and v0. */
	.macro put_control_aside fpscr, vscr
	mffs 0
	stfd 0, \fpscr(1)
	mfvscr 0
	li 10, \vscr
	stvx 0, 1, 10
	.endm

	.macro take_control_back fpscr, vscr
	lfd 0, \fpscr(1)
	mtfsf 255, 0, 1, 0
	li 10, \vscr
	lvx 0, 1, 10
	mtvscr 0
	.endm
