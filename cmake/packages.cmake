# Finds what FCCL is built on, and names all that is missing at once, by Debian's packages.
set(missing "")

# needs(DEBIAN NAME): as find_package(NAME REQUIRED); DEBIAN has it.
macro(needs debian name)
  find_package(${name} QUIET)
  if(NOT ${name}_FOUND)
    list(APPEND missing ${debian})
  endif()
endmacro()

# needs_module(DEBIAN NAME MODULE): PkgConfig::NAME, a module of pkg-config; DEBIAN has it.
macro(needs_module debian name module)
  pkg_check_modules(${name} QUIET IMPORTED_TARGET ${module})
  if(NOT ${name}_FOUND)
    list(APPEND missing ${debian})
  endif()
endmacro()

find_package(Threads REQUIRED)
needs(libfmt-dev fmt)
needs(libspdlog-dev spdlog)
needs(libexpected-dev tl-expected)
needs(libpugixml-dev pugixml)
if(FCCL_BUILD_TOOLS OR FCCL_BUILD_PERF_TESTS)
  needs(nlohmann-json3-dev nlohmann_json)
endif()
needs(pkg-config PkgConfig)
if(PkgConfig_FOUND)
  needs_module(libsodium-dev sodium libsodium)
  needs_module(libhwy-dev hwy libhwy)
  needs_module(libhwloc-dev hwloc hwloc)
endif()

if(missing)
  list(JOIN missing " " missing)
  # CMake keeps an indented line as it is.
  message(FATAL_ERROR "FCCL is built on packages that are not here. On Debian and Ubuntu:\n\n    apt-get install ${missing}\n\n"
                      "docs/how_to/install.md has their names on other systems.")
endif()
