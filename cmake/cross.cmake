# SPDX-License-Identifier: MIT
# What the toolchain files of other CPUs share; they set ftr_cpu (as tools/sysroot.sh calls it),
# FTR_TRIPLET and CMAKE_SYSTEM_PROCESSOR.
#
# FTR_SYSROOT: a sysroot of Debian's packages, made by tools/sysroot.sh unless another is given.
set(CMAKE_SYSTEM_NAME Linux)
cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH ftr_top)
set(FTR_SYSROOT ${ftr_top}/build/sysroot/${ftr_cpu} CACHE PATH "Root of the target's files")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES FTR_SYSROOT)

get_property(ftr_trying GLOBAL PROPERTY IN_TRY_COMPILE)
if(NOT ftr_trying)
  execute_process(COMMAND sh ${ftr_top}/tools/sysroot.sh ${ftr_cpu} ${FTR_SYSROOT}
    COMMAND_ERROR_IS_FATAL ANY)
endif()

set(CMAKE_C_COMPILER ${FTR_TRIPLET}-gcc)
set(CMAKE_CXX_COMPILER ${FTR_TRIPLET}-g++)
set(CMAKE_ASM_COMPILER ${CMAKE_C_COMPILER})
set(CMAKE_SYSROOT ${FTR_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(kind LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()
set(ENV{PKG_CONFIG_DIR} "")
set(ENV{PKG_CONFIG_LIBDIR} ${FTR_SYSROOT}/usr/lib/${FTR_TRIPLET}/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${FTR_SYSROOT})

set(FTR_EMULATOR sh ${ftr_top}/tests/qemu/run.sh ${ftr_cpu} ${FTR_SYSROOT})
set(CMAKE_CROSSCOMPILING_EMULATOR ${FTR_EMULATOR})
