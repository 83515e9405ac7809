# What `cmake --install` puts under a prefix: the library, its plug-ins and headers, a CMake package and a pkg-config file.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/fccl)
set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(
  TARGETS fccl
  EXPORT fcclTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development)
if(TARGET fccl_ofi)
  install(TARGETS fccl_ofi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/fccl DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
install(EXPORT fcclTargets NAMESPACE fccl:: DESTINATION ${package_dir} COMPONENT development)

# The contract of a transport for plug-ins that are built elsewhere: the component `transport` of the package. It is apart, since it
# needs tl::expected, which programs do not.
set(contract_dir ${CMAKE_INSTALL_INCLUDEDIR}/fccl/transport)
foreach(header wire/transport.h base/message_kind.h base/result.h topology/cost_constants.h topology/nic.h topology/place.h)
  cmake_path(GET header PARENT_PATH room)
  install(FILES ${PROJECT_SOURCE_DIR}/src/${header} DESTINATION ${contract_dir}/${room} COMPONENT development)
endforeach()
add_library(fccl_transport INTERFACE)
set_target_properties(fccl_transport PROPERTIES EXPORT_NAME transport)
target_compile_features(fccl_transport INTERFACE cxx_std_20)
target_include_directories(fccl_transport INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
                                                    $<INSTALL_INTERFACE:${contract_dir}>)
target_link_libraries(fccl_transport INTERFACE tl::expected)
install(TARGETS fccl_transport EXPORT fcclTransportTargets)
install(EXPORT fcclTransportTargets NAMESPACE fccl:: DESTINATION ${package_dir} COMPONENT development)

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/fcclConfig.cmake.in ${PROJECT_BINARY_DIR}/fcclConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/fcclConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(
  FILES ${PROJECT_BINARY_DIR}/fcclConfig.cmake ${PROJECT_BINARY_DIR}/fcclConfigVersion.cmake
  DESTINATION ${package_dir}
  COMPONENT development)

# The prefix is found from where the file lies, so that an installed tree can be moved.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX}/${pkgconfig_dir} OUTPUT_VARIABLE prefix_from_pkgconfig)
configure_file(${CMAKE_CURRENT_LIST_DIR}/fccl.pc.in ${PROJECT_BINARY_DIR}/fccl.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/fccl.pc DESTINATION ${pkgconfig_dir} COMPONENT development)
