#!/bin/sh
# SPDX-License-Identifier: MIT
# Let system calls of the tracer fail; see --help.
exec python3 "$(dirname "$0")/sweep.py" "$@"
