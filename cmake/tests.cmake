# The target `tests`: everything that ctest runs; and for .ci/expected.py what its programs are made of, and what is left out.

# targets_below(RESULT FOLDER): the programs and libraries of a source folder and of those that it adds.
function(targets_below result folder)
  get_property(
    found
    DIRECTORY ${folder}
    PROPERTY BUILDSYSTEM_TARGETS)
  get_property(
    folders
    DIRECTORY ${folder}
    PROPERTY SUBDIRECTORIES)
  foreach(below IN LISTS folders)
    targets_below(found_below ${below})
    list(APPEND found ${found_below})
  endforeach()
  set(${result}
      ${found}
      PARENT_SCOPE)
endfunction()

# sources_of(RESULT TARGET): the sources of a program, and of the objects that it links, as "TARGET<tab>PATH" lines.
function(sources_of result target)
  set(lines "")
  get_target_property(linked ${target} LINK_LIBRARIES)
  foreach(part IN ITEMS ${target} LISTS linked)
    if(NOT TARGET ${part})
      continue()
    endif()
    get_target_property(type ${part} TYPE)
    if(part STREQUAL target OR type STREQUAL "OBJECT_LIBRARY")
      get_target_property(folder ${part} SOURCE_DIR)
      get_target_property(sources ${part} SOURCES)
      foreach(source IN LISTS sources)
        cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${folder} NORMALIZE)
        cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
        string(APPEND lines "${target}\t${source}\n")
      endforeach()
    endif()
  endforeach()
  set(${result}
      ${lines}
      PARENT_SCOPE)
endfunction()

add_custom_target(tests)
set(test_sources "")
foreach(folder tests plugins/ofi perf_tests tools)
  targets_below(found ${PROJECT_SOURCE_DIR}/${folder})
  if(found)
    add_dependencies(tests ${found})
  endif()
  foreach(target IN LISTS found)
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "EXECUTABLE")
      sources_of(sources ${target})
      string(APPEND test_sources "${sources}")
    endif()
  endforeach()
endforeach()
file(WRITE ${PROJECT_BINARY_DIR}/test_sources.txt "${test_sources}")
get_property(left_out GLOBAL PROPERTY FCCL_LEFT_OUT)
file(WRITE ${PROJECT_BINARY_DIR}/tests_left_out.txt "${left_out}")
