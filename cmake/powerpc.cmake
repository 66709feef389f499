# SPDX-License-Identifier: MIT
# Toolchain of the preset "powerpc": Debian's cross compiler.
set(CMAKE_SYSTEM_PROCESSOR ppc64le)
set(ftr_cpu powerpc)
set(FTR_TRIPLET powerpc64le-linux-gnu)
include(${CMAKE_CURRENT_LIST_DIR}/cross.cmake)
