# SPDX-License-Identifier: MIT
# Toolchain of the preset "arm64": Debian's cross compiler.
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(ftr_cpu arm64)
set(FTR_TRIPLET aarch64-linux-gnu)
include(${CMAKE_CURRENT_LIST_DIR}/cross.cmake)
