/* SPDX-License-Identifier: MIT */
/*
 * What the tools need of arch/arch.h: its names and values. That header gives memcpy and its kin
 * other assembler names, so only contract.c includes it.
 */
#ifndef REPORT_CONTRACT_H
#define REPORT_CONTRACT_H

#include <stdbool.h>

const char *contract_reason(unsigned int reason); /* "too-short"; "unknown" for foreign values */
const char *contract_mode(unsigned int mode);	  /* "count", ...; NULL for foreign values */
bool contract_mode_timed(unsigned int mode);	  /* its records hold times */
bool contract_refused(unsigned int choice);	  /* no site was found */

#endif
