# The library, its plug-in and fccl-info as another build folder of the same sources has made them, so that an adapter can be built
# alone.
add_library(fccl SHARED IMPORTED GLOBAL)
set_target_properties(
  fccl
  PROPERTIES IMPORTED_LOCATION ${FCCL_PREBUILT}/libfccl.so.${PROJECT_VERSION}
             IMPORTED_SONAME libfccl.so.${PROJECT_VERSION_MAJOR}
             INTERFACE_INCLUDE_DIRECTORIES ${PROJECT_SOURCE_DIR}/include)
add_library(fccl::fccl ALIAS fccl)
if(EXISTS ${FCCL_PREBUILT}/libfccl_ofi.so)
  add_library(fccl_ofi MODULE IMPORTED GLOBAL)
  set_target_properties(fccl_ofi PROPERTIES IMPORTED_LOCATION ${FCCL_PREBUILT}/libfccl_ofi.so)
endif()
if(EXISTS ${FCCL_PREBUILT}/fccl-info)
  add_executable(fccl-info IMPORTED GLOBAL)
  set_target_properties(fccl-info PROPERTIES IMPORTED_LOCATION ${FCCL_PREBUILT}/fccl-info)
endif()
