# compile_by_area(TARGET): where CUPTIPROF_UNITY is on, the sources of TARGET are compiled in a few files. A file is an
# area (a folder of csrc, or two folders that include much the same), so that a new source moves none of the others.
#
# Names in anonymous namespaces are therefore unique within an area, as in any one file.
set(AREA_base "base|launch|threads|cupti|store|filter|probes|trace")
set(AREA_collect "collect|session")
set(AREA_counters "counters")
set(AREA_bindings "bindings")
set(AREA_sim "sim")
set(AREA_nvtx "nvtx")

function(compile_by_area target)
  if(NOT CUPTIPROF_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  foreach(area base collect counters bindings sim nvtx)
    set(members ${sources})
    list(FILTER members INCLUDE REGEX "^${CMAKE_CURRENT_SOURCE_DIR}/csrc/(${AREA_${area}})[/.].*[.]cpp$")
    set_source_files_properties(${members} PROPERTIES UNITY_GROUP ${area})
  endforeach()
  # CPython's internal headers are for those alone who ask for them.
  set(apart ${sources})
  list(FILTER apart INCLUDE REGEX "/csrc/bindings/frames/.*[.]cpp$")
  set_source_files_properties(${apart} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
