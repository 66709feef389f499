# SPDX-License-Identifier: MIT
# libftr.a: one object that shows nothing but ftr_*, with its code in a section of its own, so that
# it can tell its functions from the program's.
set(output ${PROJECT_BINARY_DIR}/ftr_static.o)
set(renames .text .text.unlikely .text.startup .text.hot .text.exit)
list(TRANSFORM renames REPLACE "(.+)" "--rename-section=\\1=ftr_text")
add_custom_command(OUTPUT ${output}
  COMMAND ${CMAKE_LINKER} -r -o ${output}.all ${objects}
  COMMAND ${CMAKE_OBJCOPY} --localize-hidden --wildcard --keep-global-symbol=ftr_* ${renames}
    ${output}.all ${output}
  DEPENDS ${objects} ${CMAKE_CURRENT_LIST_FILE}
  COMMAND_EXPAND_LISTS VERBATIM)
set_source_files_properties(${output} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
add_library(ftr_static STATIC ${output})
# tracer/loader.c looks for it by its name.
target_link_options(ftr_static INTERFACE LINKER:--export-dynamic-symbol=ftr_loader_lock)
