# Read by cpack: on which packages the Debian package depends, as dpkg-shlibdeps finds. What opens libfabric or an MPI at run time
# serves without it, so those are recommended and suggested.

# packages_of(RESULT FILE...): those that hold what the files are linked to.
function(packages_of result)
  set(folder ${CPACK_PACKAGE_DIRECTORY}/shlibdeps)
  file(WRITE ${folder}/debian/control "Source: fccl\n\nPackage: fccl\nArchitecture: any\n")
  execute_process(
    COMMAND dpkg-shlibdeps -O --ignore-missing-info -l${CPACK_PACKAGE_DIRECTORY} ${ARGN}
    WORKING_DIRECTORY ${folder}
    OUTPUT_VARIABLE found
    OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX REPLACE "^shlibs:Depends=" "" found "${found}")
  set(${result}
      "${found}"
      PARENT_SCOPE)
endfunction()

set(built ${CPACK_PACKAGE_DIRECTORY})
file(GLOB programs ${built}/perf_tests/*_perf)
packages_of(CPACK_DEBIAN_PACKAGE_DEPENDS ${built}/libfccl.so ${built}/fccl-info ${programs})
if(EXISTS ${built}/libfccl_ofi.so)
  packages_of(CPACK_DEBIAN_PACKAGE_RECOMMENDS ${built}/libfccl_ofi.so)
endif()
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "openmpi-bin, mpich")
