# The target `tests`: everything that ctest runs.

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

add_custom_target(tests)
foreach(folder tests plugins/ofi perf_tests tools)
  targets_below(found ${PROJECT_SOURCE_DIR}/${folder})
  if(found)
    add_dependencies(tests ${found})
  endif()
endforeach()
