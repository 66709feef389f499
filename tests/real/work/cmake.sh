# SPDX-License-Identifier: MIT
# Configure, build and test a project, and run a script.
set -eu
mkdir project
cd project
cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.18)
project(sample VERSION 1.2.3 LANGUAGES C)
include(CheckIncludeFile)
check_include_file(unistd.h HAVE_UNISTD)
configure_file(config.h.in config.h)
add_library(part STATIC part.c)
add_executable(sample main.c)
target_include_directories(part PUBLIC ${CMAKE_CURRENT_BINARY_DIR})
target_link_libraries(sample PRIVATE part)
enable_testing()
add_test(NAME runs COMMAND sample)
add_test(NAME fails COMMAND sample x)
set_tests_properties(fails PROPERTIES WILL_FAIL ON)
END
echo '#define VERSION "@PROJECT_VERSION@"' >config.h.in
printf '#include "config.h"\nconst char *version(void) { return VERSION; }\n' >part.c
printf '#include <stdio.h>\nconst char *version(void);\nint main(int n, char **v) { puts(version()); return !v[0] || n > 1; }\n' >main.c
cmake -S . -B build -DCMAKE_BUILD_TYPE=Release | sed 's/ ([0-9.]*s)//'
cmake --build build -j2 >/dev/null
./build/sample
ctest --test-dir build 2>&1 | grep -E 'Passed|passed' | sed 's/ *[0-9.]* sec//'
cat >script.cmake <<'END'
foreach(i RANGE 1 3000)
  math(EXPR n "${i} * 7919 % 101")
  list(APPEND numbers ${n})
endforeach()
list(REMOVE_DUPLICATES numbers)
list(SORT numbers COMPARE NATURAL)
list(LENGTH numbers length)
string(REGEX REPLACE "([0-9]);" "\\1," text "${numbers}")
string(SHA256 digest "${text}")
message(STATUS "${length} ${digest}")
string(JSON value GET "{\"a\": [1, 2, {\"b\": \"c\"}]}" a 2 b)
execute_process(COMMAND sh -c "exit 7" RESULT_VARIABLE status)
message(FATAL_ERROR "${value} ${status}")
END
cmake -P script.cmake || echo "status $?"
cd ..
rm -rf project
