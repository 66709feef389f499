# SPDX-License-Identifier: MIT
# ftr-bench and the functions that it calls, which are in a library of their own so that they can
# be traced while ftr-bench itself is not.

set(dir ${PROJECT_SOURCE_DIR}/tools/bench)
find_package(Threads REQUIRED)

add_library(ftr-bench-target SHARED ${dir}/target.c ${dir}/target_${FTR_PORT}.S)
# Calls inside the library are direct, and fib is not turned into half a loop.
target_compile_options(ftr-bench-target PRIVATE $<$<COMPILE_LANGUAGE:C>:-O2;-fno-optimize-sibling-calls>)
target_link_options(ftr-bench-target PRIVATE -Wl,-Bsymbolic)
target_link_libraries(ftr-bench-target PRIVATE ftr_warnings)

add_executable(ftr-bench ${dir}/main.c ${dir}/child.c ${dir}/children.c ${dir}/print.c ${dir}/rows.c ${dir}/measure.c ${dir}/uprobe.c
  ${dir}/counts.c ${dir}/handlers.c ${dir}/pool.c ${dir}/returns_${FTR_PORT}.S arch/mem.c arch/sys.c)
target_compile_options(ftr-bench PRIVATE $<$<COMPILE_LANGUAGE:C>:${loops}>)
target_compile_definitions(ftr-bench PRIVATE FTR_LIBDIR="${CMAKE_INSTALL_LIBDIR}")
target_link_libraries(ftr-bench PRIVATE ftr_warnings ftr-bench-target Threads::Threads)
set_target_properties(ftr-bench PROPERTIES BUILD_RPATH_USE_ORIGIN ON
  INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}/ftr")
list(APPEND tools ftr-bench)
