# A unity build: files of one folder are compiled a dozen at a time, since most of them are short and their compiler spends its
# time on the headers that they share. Their unnamed namespaces are one, so a name in them stands for one thing in the folder;
# a file that needs a name of its own is listed below and compiled alone. So are ops and strategies, which all have the same
# names (infer, grad, choices): adding one is adding a file. The files of a test binary are united in the same way.
#
#   fleetx_unite(SOURCES [tests/])   replaces the files in the list SOURCES by those that include them, which are made in
#                                    made/united or made/united/tests
#
# CMake's own unity builds include files by absolute paths, which keeps ccache from serving another clone.
option(FLEETX_UNITE "Compile files of a folder together; OFF: one by one, for tools that want a command for each" ON)
set(FLEETX_ALONE
  fleetx/comm/reduce fleetx/launch/job  # compiled with options of their own
  fleetx/data/download fleetx/data/packed_samples fleetx/data/text_lines
  fleetx/ps/client fleetx/ps/replica fleetx/ps/server fleetx/ps/server_link fleetx/ps/sparse_table fleetx/ps/text_tables
  tests/fleet/combinations_test tests/fleet/distributed_strategy_test  # options of their own, too
  tests/launch/starters_test tests/ps/process
  tests/runtime/allocation_test)  # replaces malloc
set(FLEETX_FOLDERS_ALONE
  fleetx/ops fleetx/strategies tests/ops tests/optimizers)
set(FLEETX_MOST_AT_ONCE 12)

function(fleetx_unite variable)
  if(NOT FLEETX_UNITE)
    return()
  endif()
  set(result ${${variable}})
  set(folders)
  foreach(source ${result})
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE name)
    cmake_path(GET name PARENT_PATH folder)
    string(REGEX REPLACE "\\.cc$" "" name ${name})
    if(NOT folder MATCHES "^(fleetx|tests)/[a-z]+$" OR folder IN_LIST FLEETX_FOLDERS_ALONE OR name IN_LIST FLEETX_ALONE)
      continue()
    endif()
    list(APPEND folders ${folder})
    list(APPEND members_${folder} ${name}.cc)
    list(REMOVE_ITEM result ${source})
  endforeach()
  list(REMOVE_DUPLICATES folders)
  foreach(folder ${folders})
    list(LENGTH members_${folder} count)
    math(EXPR parts "(${count} + ${FLEETX_MOST_AT_ONCE} - 1) / ${FLEETX_MOST_AT_ONCE}")
    foreach(part RANGE 1 ${parts})
      math(EXPR first "${count} * (${part} - 1) / ${parts}")
      math(EXPR length "${count} * ${part} / ${parts} - ${first}")
      list(SUBLIST members_${folder} ${first} ${length} members)
      list(TRANSFORM members REPLACE "(.+)" "#include \"\\1\"\n")
      list(JOIN members "" content)
      cmake_path(GET folder FILENAME last)
      set(united ${PROJECT_BINARY_DIR}/made/united/${ARGN}${last}_${part}.cc)
      file(CONFIGURE OUTPUT ${united} CONTENT "${content}" @ONLY)
      list(APPEND result ${united})
      # g++ takes unnamed namespaces of included files for those of headers.
      set_source_files_properties(${united} PROPERTIES COMPILE_OPTIONS "$<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>")
    endforeach()
  endforeach()
  set(${variable} ${result} PARENT_SCOPE)
endfunction()
