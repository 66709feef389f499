#!/bin/sh
# SPDX-License-Identifier: MIT
# Trace programs that run under valgrind; see --help.
exec python3 "$(dirname "$0")/memcheck.py" "$@"
