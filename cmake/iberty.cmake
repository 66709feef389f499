# SPDX-License-Identifier: MIT
# ftr_iberty.o: the demanglers of libiberty in one object whose references to libc are turned into
# references to arch/mem.c and tracer/iberty.c. The traced process's own functions of these names
# may be replaced, or traced.
set(output ${PROJECT_BINARY_DIR}/ftr_iberty.o)
set(renames
  memcpy=ftr_memcpy memmove=ftr_memmove memset=ftr_memset memcmp=ftr_memcmp strlen=ftr_strlen
  strcmp=str_cmp strncmp=iberty_strncmp
  __sprintf_chk=iberty_sprintf_chk __snprintf_chk=iberty_snprintf_chk
  malloc=iberty_malloc realloc=iberty_realloc free=iberty_free)
# lld is not told by an archive what it is for.
set(emulation_x86_64 elf_x86_64)
set(emulation_arm64 aarch64linux)
set(emulation_powerpc elf64lppc)
list(TRANSFORM renames PREPEND --redefine-sym=)
add_custom_command(OUTPUT ${output}
  COMMAND ${CMAKE_LINKER} -m ${emulation_${FTR_PORT}} -r -o ${output}.all
    -u cplus_demangle_v3_callback -u rust_demangle_callback ${IBERTY_LIBRARY}
  COMMAND ${CMAKE_OBJCOPY} ${renames} ${output}.all ${output}
  DEPENDS ${IBERTY_LIBRARY} ${CMAKE_CURRENT_LIST_FILE}
  VERBATIM)
add_custom_target(ftr_iberty DEPENDS ${output})
set_source_files_properties(${output} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
