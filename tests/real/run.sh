#!/bin/sh
# SPDX-License-Identifier: MIT
# Run well-known programs untraced and traced whole; see README.md and --help.
exec python3 "$(dirname "$0")/check.py" "$@"
