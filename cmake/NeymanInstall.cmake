# `cmake --install` and find_package(neyman): one target, neyman::neyman.
include(CMakePackageConfigHelpers)

install(TARGETS neyman EXPORT neyman-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(TARGET neyman_mpi)
  install(TARGETS neyman_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(TARGET neyman_cli)
  install(TARGETS neyman_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(FILES cli/completion.bash RENAME neyman
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES cli/completion.zsh RENAME _neyman
    DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
endif()
install(DIRECTORY include/neyman DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY examples/ DESTINATION ${CMAKE_INSTALL_DATADIR}/neyman/examples)
install(FILES docs/study.schema.json DESTINATION ${CMAKE_INSTALL_DATADIR}/neyman)
install(EXPORT neyman-targets NAMESPACE neyman::
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/neyman)
configure_package_config_file(cmake/neyman-config.cmake.in neyman-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/neyman)
write_basic_package_version_file(neyman-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/neyman-config.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/neyman-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/neyman)
