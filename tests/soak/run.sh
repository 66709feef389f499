#!/bin/sh
# SPDX-License-Identifier: MIT
# Run soak.cpp for a while; see --help.
exec python3 "$(dirname "$0")/soak.py" "$@"
