# `cmake --install` and, from another project, find_package(isomer) with the target isomer::isomer.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/isomer)
install(TARGETS isomer EXPORT isomerTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT isomerTargets NAMESPACE isomer:: DESTINATION ${package_dir})
# Headers keep their tree. What a translation unit of one instruction set is made of stays inside, and so does the test kit.
install(DIRECTORY isomer DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h" PATTERN "*_impl.h" EXCLUDE
        PATTERN "simd" EXCLUDE PATTERN "properties*.h" EXCLUDE)
if(TARGET isomer_cli)
  install(TARGETS isomer_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
if(TARGET isomer_http)
  install(TARGETS isomer_http LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/isomer)
endif()

configure_package_config_file(cmake/isomerConfig.cmake.in ${PROJECT_BINARY_DIR}/isomerConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/isomerConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/isomerConfig.cmake ${PROJECT_BINARY_DIR}/isomerConfigVersion.cmake DESTINATION ${package_dir})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/isomer)
