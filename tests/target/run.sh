#!/bin/sh
# SPDX-License-Identifier: MIT
# Build and run every program of this directory, untraced and traced; see README.md and --help.
exec python3 "$(dirname "$0")/check.py" "$@"
