# SPDX-License-Identifier: MIT
# Installation: libraries, header, tools, manual pages, pkg-config and CMake files; and the .deb.
include(CMakePackageConfigHelpers)

install(TARGETS ${libraries} EXPORT ftr
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS ${tools} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET ftr-bench-target)
  install(TARGETS ftr-bench-target LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/ftr)
endif()
if(header)
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ftr)
endif()
file(GLOB pages CONFIGURE_DEPENDS docs/man/*.[0-9])
foreach(page IN LISTS pages)
  cmake_path(GET page EXTENSION LAST_ONLY section)
  string(SUBSTRING ${section} 1 1 section)
  install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
endforeach()
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)

# What a program takes to link libftr.a; see cmake/static.cmake.
set(static_libs -Wl,--export-dynamic-symbol=ftr_loader_lock)
if(FTR_PORT STREQUAL x86_64)
  string(PREPEND static_libs "-lZydis ")
endif()
# They may be moved with what they describe, as far as paths are not absolute.
set(pc_prefix ${CMAKE_INSTALL_PREFIX})
if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  file(RELATIVE_PATH up "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
  string(REGEX REPLACE "/$" "" up "${up}")
  set(pc_prefix "\${pcfiledir}/${up}")
endif()
set(pc_includedir ${CMAKE_INSTALL_INCLUDEDIR})
if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
  string(PREPEND pc_includedir "\${prefix}/")
endif()
foreach(package ftr ftr-static)
  configure_file(cmake/${package}.pc.in ${package}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${package}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/ftr)
configure_package_config_file(cmake/ftr-config.cmake.in ftr-config.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(ftr-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ftr-config.cmake ${PROJECT_BINARY_DIR}/ftr-config-version.cmake
  DESTINATION ${package_dir})
install(EXPORT ftr NAMESPACE ftr:: FILE ftr-targets.cmake DESTINATION ${package_dir})

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME ftr)
set(CPACK_PACKAGE_CONTACT "The ftr authors <ftr@localhost>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES OFF)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "A library to preload that records every function
a program enters and leaves, and the tools that report what it recorded.")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
include(CPack)
