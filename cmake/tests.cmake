# SPDX-License-Identifier: MIT
# The tests. Each says "SKIP: reason" and exits with 77 when it cannot run here.

set(definitions FTR_SOURCE_DIR="${PROJECT_SOURCE_DIR}" FTR_BUILD_DIR="${PROJECT_BINARY_DIR}")

# Unit tests: one Criterion program per tests/unit/test_*.c, linked with all of the library but
# its constructor. test_report_* get the sources of ftr-report too.
if(NOT FTR_FUZZ)
  file(GLOB support CONFIGURE_DEPENDS tests/unit/*.S tests/unit/support_*.c
    tests/unit/${FTR_PORT}/support_*.c)
  if(CMAKE_CROSSCOMPILING OR FTR_SANITIZE STREQUAL "thread")
    # Criterion does not exist for every CPU, nor beside ThreadSanitizer's memory: a small stand-in
    # does.
    add_library(ftr_criterion OBJECT tests/unit/standin/standin.c)
    target_include_directories(ftr_criterion PUBLIC tests/unit/standin)
    target_link_libraries(ftr_criterion PRIVATE ftr_warnings)
    set(criterion ftr_criterion)
  else()
    find_package(PkgConfig REQUIRED)
    pkg_check_modules(CRITERION REQUIRED IMPORTED_TARGET criterion)
    set(criterion PkgConfig::CRITERION)
  endif()
  add_library(ftr_unit_support OBJECT ${support})
  target_include_directories(ftr_unit_support PRIVATE tests/unit)
  target_link_libraries(ftr_unit_support PRIVATE ftr_warnings ftr_checked ${criterion})
  add_library(ftr_test STATIC $<TARGET_OBJECTS:ftr_core> ${ports}
    $<TARGET_OBJECTS:ftr_unit_support>)
  set_target_properties(ftr_test PROPERTIES LINKER_LANGUAGE C)

  # Those in the directory of a CPU run code of that CPU.
  file(GLOB units CONFIGURE_DEPENDS tests/unit/test_*.c tests/unit/${FTR_PORT}/test_*.c)
  foreach(source IN LISTS units)
    cmake_path(GET source STEM name)
    add_executable(${name} ${source})
    set_target_properties(${name} PROPERTIES
      RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/unit)
    target_compile_definitions(${name} PRIVATE ${definitions})
    target_include_directories(${name} PRIVATE tests/unit)
    # Rows of a table may leave their last fields out.
    target_compile_options(${name} PRIVATE -Wno-missing-field-initializers)
    if(name STREQUAL test_expect OR name STREQUAL test_callstack OR name STREQUAL test_signature)
      # They play the public functions themselves: theirs come before those of the library.
      target_link_options(${name} PRIVATE -Wl,-z,muldefs)
    endif()
    if(name MATCHES "^test_report_")
      target_sources(${name} PRIVATE $<TARGET_OBJECTS:ftr_report>)
    endif()
    target_link_libraries(${name} PRIVATE ftr_warnings ftr_checked ftr_test ${IBERTY_LIBRARY}
      ${ZYDIS_LIBRARY} ${criterion})
    add_test(NAME unit/${name} COMMAND ${name} --jobs 1 --verbose)
    set_tests_properties(unit/${name} PROPERTIES LABELS unit TIMEOUT 300)
  endforeach()
  if(FTR_FULL_TESTS AND TARGET test_live)
    add_test(NAME toggles
      COMMAND test_live --jobs 1 --verbose --filter live/callers_at_full_speed)
    set_tests_properties(toggles PROPERTIES LABELS toggles TIMEOUT 7200
      ENVIRONMENT FTR_TOGGLES=100000)
  endif()
endif()

# Fuzzers: clang's libFuzzer, else a driver of our own that mutates the inputs it is given. They
# begin with a small shared object and what tests/fuzz/corpus/NAME/ holds.
file(GLOB fuzzers CONFIGURE_DEPENDS tests/fuzz/fuzz_*.c)
set(dir ${PROJECT_BINARY_DIR}/tests/fuzz)
add_library(ftr_fuzzed STATIC $<TARGET_OBJECTS:ftr_core> ${ports}
  $<TARGET_OBJECTS:ftr_report>)
set_target_properties(ftr_fuzzed PROPERTIES LINKER_LANGUAGE C)
add_library(ftr_fuzz_seed SHARED tools/bench/target.c)
set_target_properties(ftr_fuzz_seed PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${dir}/seed)
foreach(source IN LISTS fuzzers)
  cmake_path(GET source STEM name)
  add_executable(${name} ${source})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${dir})
  target_link_libraries(${name} PRIVATE ftr_warnings ftr_checked ftr_fuzzed ${IBERTY_LIBRARY}
    ${ZYDIS_LIBRARY})
  # What a libFuzzer finds goes into the first directory it is given: one of its own.
  file(MAKE_DIRECTORY ${dir}/${name}.found)
  if(FTR_FUZZ)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    file(GLOB inputs CONFIGURE_DEPENDS tests/fuzz/corpus/${name})
    set(inputs -max_total_time=${FTR_FUZZ_SECONDS} ${dir}/${name}.found ${dir}/seed ${inputs})
  else()
    target_sources(${name} PRIVATE tests/fuzz/standalone.c)
    target_compile_definitions(${name} PRIVATE FUZZ_STANDALONE)
    file(GLOB inputs CONFIGURE_DEPENDS tests/fuzz/corpus/${name}/*)
    list(PREPEND inputs $<TARGET_FILE:ftr_fuzz_seed>)
  endif()
  add_test(NAME fuzz/${name} WORKING_DIRECTORY ${dir}/${name}.found
    COMMAND ${name} -runs=${FTR_FUZZ_RUNS} -seed=1 ${inputs})
  set_tests_properties(fuzz/${name} PROPERTIES LABELS fuzz TIMEOUT 300)
endforeach()

get_property(names DIRECTORY PROPERTY TESTS)
if(names)
  set_tests_properties(${names} PROPERTIES SKIP_RETURN_CODE 77)
endif()

# The rest needs libftr.so, which is never built with a sanitizer.
if(FTR_SANITIZE)
  return()
endif()

# Programs of another CPU are run under qemu-user, and the report is read on this machine: by the
# tool of a host build of its own.
if(CMAKE_CROSSCOMPILING)
  include(ExternalProject)
  set(host ${PROJECT_BINARY_DIR}/host)
  ExternalProject_Add(ftr_host SOURCE_DIR ${PROJECT_SOURCE_DIR} BINARY_DIR ${host}
    PREFIX ${host}.cmake CMAKE_ARGS -DBUILD_TESTING=OFF -DCMAKE_BUILD_TYPE=${CMAKE_BUILD_TYPE}
    BUILD_COMMAND ${CMAKE_COMMAND} --build ${host} --target ftr-report ftr
    INSTALL_COMMAND "" BUILD_ALWAYS ON)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/machine.json CONTENT [[
{ "cpu": "@FTR_PORT@", "triplet": "@FTR_TRIPLET@", "sysroot": "@CMAKE_SYSROOT@",
  "report": "@host@/ftr-report" }
]] @ONLY)
endif()

set(options_target)
set(options_real)
if(CMAKE_CROSSCOMPILING)
  set(options_target --quick)
endif()
set(options_faults --all)
set(options_soak --seconds 300)
if(NOT FTR_FULL_TESTS)
  set(options_real --quick)
  set(options_faults)
  set(options_soak)
endif()
set(suites target real unwind harness)
if(NOT CMAKE_CROSSCOMPILING)
  list(APPEND suites faults soak valgrind)
endif()
foreach(suite IN LISTS suites)
  file(GLOB script CONFIGURE_DEPENDS tests/${suite}/run.sh)
  if(script)
    add_test(NAME ${suite}
      COMMAND sh ${script} --build ${PROJECT_BINARY_DIR} ${options_${suite}})
    set_tests_properties(${suite} PROPERTIES LABELS ${suite} TIMEOUT 3600 SKIP_RETURN_CODE 77
      RUN_SERIAL ON)
  endif()
endforeach()

# count: what a call costs, in instructions: exact, so with limits. data: read on another CPU.
# flushes: how many of instruction caches.
set(suites flushes)
if(CMAKE_CROSSCOMPILING)
  list(APPEND suites count data)
endif()
foreach(suite IN LISTS suites)
  add_test(NAME ${suite}
    COMMAND python3 ${PROJECT_SOURCE_DIR}/tests/qemu/${suite}.py --build ${PROJECT_BINARY_DIR})
  set_tests_properties(${suite} PROPERTIES LABELS ${suite} TIMEOUT 300 SKIP_RETURN_CODE 77)
endforeach()

# Programs that use the library (include/ftr/ftr.h): linked with it in either form, and traced by it
# at the same time.
find_package(Threads REQUIRED)
add_library(probe_constructed SHARED tests/probe/library/constructed.c)
set_target_properties(probe_constructed PROPERTIES LIBRARY_OUTPUT_DIRECTORY
  ${PROJECT_BINARY_DIR}/tests/probe)
target_link_libraries(probe_constructed PRIVATE ftr_warnings)
set(argument_loader $<TARGET_FILE:probe_constructed>)
# A library with a copy of its own of the library.
add_library(probe_plugin SHARED tests/probe/library/plugged.c)
set_target_properties(probe_plugin PROPERTIES LIBRARY_OUTPUT_DIRECTORY
  ${PROJECT_BINARY_DIR}/tests/probe)
target_link_libraries(probe_plugin PRIVATE ftr_warnings ftr_static)
target_link_options(probe_plugin PRIVATE LINKER:-Bsymbolic)
set(argument_plugin $<TARGET_FILE:probe_plugin>)
file(GLOB programs CONFIGURE_DEPENDS tests/probe/*.c)
# The macros of static probes are the same for every CPU: those of this machine do.
if(CMAKE_CROSSCOMPILING)
  file(GLOB sdt /usr/include/sys/sdt*.h /usr/include/*/sys/sdt*.h)
  file(COPY ${sdt} DESTINATION ${PROJECT_BINARY_DIR}/tests/sdt/sys)
endif()
foreach(source IN LISTS programs)
  cmake_path(GET source STEM name)
  set(arguments ${argument_${name}})
  foreach(library ftr ftr_static)
    set(program probe_${name}_${library})
    add_executable(${program} ${source})
    set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY
      ${PROJECT_BINARY_DIR}/tests/probe)
    target_link_libraries(${program} PRIVATE ftr_warnings ${library} Threads::Threads)
    if(name STREQUAL loader) # the library calls it
      set_target_properties(${program} PROPERTIES ENABLE_EXPORTS ON)
    endif()
    target_include_directories(${program} PRIVATE ${PROJECT_BINARY_DIR}/tests/sdt)
    # Calls as they are written.
    target_compile_options(${program} PRIVATE -O1 -fno-optimize-sibling-calls)
    add_test(NAME probe/${name}/${library} COMMAND ${program} ${arguments})
  endforeach()
  set(names probe/${name}/ftr probe/${name}/ftr_static)
  if(NOT CMAKE_CROSSCOMPILING)
    list(APPEND names probe/${name}/traced)
    add_test(NAME probe/${name}/traced COMMAND probe_${name}_ftr ${arguments})
    set_property(TEST probe/${name}/traced PROPERTY ENVIRONMENT
      LD_PRELOAD=$<TARGET_FILE:ftr> FTR_DATA=${PROJECT_BINARY_DIR}/tests/probe/${name}.data)
    if(name MATCHES "^(faults|handlers|idle)$") # what is loaded for probes comes later, and is not traced
      list(APPEND names probe/${name}/all)
      add_test(NAME probe/${name}/all COMMAND probe_${name}_ftr ${arguments})
      set_property(TEST probe/${name}/all PROPERTY ENVIRONMENT LD_PRELOAD=$<TARGET_FILE:ftr>
        FTR_MODULES=* FTR_DATA=${PROJECT_BINARY_DIR}/tests/probe/${name}.all.data)
    endif()
    if(name STREQUAL loader) # what it loads is traced, and the report can be read afterwards
      set(data ${PROJECT_BINARY_DIR}/tests/probe/loader.late.data)
      list(APPEND names probe/loader/late probe/loader/report)
      add_test(NAME probe/loader/late COMMAND probe_loader_ftr ${arguments})
      set_tests_properties(probe/loader/late PROPERTIES FIXTURES_SETUP probe_loader)
      set_property(TEST probe/loader/late PROPERTY ENVIRONMENT LD_PRELOAD=$<TARGET_FILE:ftr>
        FTR_MODULES=*.so FTR_DATA=${data})
      add_test(NAME probe/loader/report COMMAND ftr-report --data ${data})
      set_tests_properties(probe/loader/report PROPERTIES FIXTURES_REQUIRED probe_loader)
    endif()
  endif()
  set_tests_properties(${names} PROPERTIES LABELS probe TIMEOUT 120 SKIP_RETURN_CODE 77)
endforeach()
if(FTR_FULL_TESTS)
  add_test(NAME toggles/probe COMMAND probe_toggle_ftr 1000000)
  set_tests_properties(toggles/probe PROPERTIES LABELS toggles TIMEOUT 7200 ENVIRONMENT TIMERS=1)
endif()

# What the library shows of itself, and what it asks for.
add_test(NAME library COMMAND sh ${PROJECT_SOURCE_DIR}/tests/library.sh $<TARGET_FILE:ftr>)
if(TARGET ftr-bench)
  # Fails when ftr counts other than what was called.
  add_test(NAME bench COMMAND ftr-bench --quick)
  set_tests_properties(bench PROPERTIES TIMEOUT 300)
endif()
