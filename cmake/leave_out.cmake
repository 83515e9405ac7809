# Tests that a build leaves out, and why: .ci/expected.py fails for any other test that no program has.

# fccl_leave_out(REASON PATH...): sources of tests, folders of such, or patterns of tests' names. A folder stands for those of its
# sources that no program has.
function(fccl_leave_out reason)
  foreach(path IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH path BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
    cmake_path(RELATIVE_PATH path BASE_DIRECTORY ${CMAKE_SOURCE_DIR})
    message(STATUS "Tests of ${path}: left out, ${reason}")
    set_property(GLOBAL APPEND_STRING PROPERTY FCCL_LEFT_OUT "${path}\t${reason}\n")
  endforeach()
endfunction()
