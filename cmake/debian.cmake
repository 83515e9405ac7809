# The Debian package that `cpack` makes in a build folder: library, headers, fccl-info and the perf binaries.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME fccl)
set(CPACK_PACKAGE_CONTACT "The FCCL maintainers <maintainers@fccl.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
# libfccl.so.0 lies in /usr/lib, which the loader knows only by its cache.
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/triggers)
file(WRITE ${PROJECT_BINARY_DIR}/triggers "activate-noawait ldconfig\n")
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_CURRENT_LIST_DIR}/debian_depends.cmake)
include(CPack)
