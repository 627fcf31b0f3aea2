# Headers that are compiled once instead of once per file, in the builds under sanitizers: clang spends most of such a
# build on them. (g++ gains little by it, and with every change of one of these headers all would be compiled again.)
#
#   fleetx_precompile(NAME HEADER LIBRARY|-OPTION...)   HEADER, compiled with OPTION... and with what LIBRARY... asks for
#   fleetx_precompiled_code(NAME TARGET LIBRARY...)     its inline functions and templates become code once, in TARGET,
#                                                       and not in every file of it
#   fleetx_use_precompiled(TARGET NAME)                 every file of TARGET begins with it
#
# Builds under sanitizers are not optimised: an op takes 2.5 times as long to compile with -O1 (softmax.cc: 9.0 s instead of
# 3.5 s, conv2d.cc: 10.4 instead of 4.4), 12 minutes of CPU more for fleetx/ops, and all tests of the ops together take about 6
# minutes: their profile is flat, its first loop has 7 %.
#
# CMake's own way passes paths by -Xclang, which keeps ccache from serving another clone, and generates no code.
function(fleetx_precompile name header)
  if(NOT FLEETX_SANITIZE)
    return()
  endif()
  set(libraries ${ARGN})
  list(FILTER libraries EXCLUDE REGEX "^-")
  set(options ${ARGN})
  list(FILTER options INCLUDE REGEX "^-")
  add_library(${name} OBJECT EXCLUDE_FROM_ALL ${header})
  set_source_files_properties(${header} PROPERTIES LANGUAGE CXX)
  target_link_libraries(${name} PRIVATE ${libraries})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  set_target_properties(${name} PROPERTIES CXX_COMPILER_LAUNCHER ${PROJECT_SOURCE_DIR}/cmake/precompile)
  # -fno-pch-timestamp: compiled again from the same headers it is the same file.
  target_compile_options(${name} PRIVATE ${options} -x c++-header -fpch-instantiate-templates
                         "SHELL:-Xclang -fno-pch-timestamp")
  # A copy, because Ninja lets files wait for what a command makes, and not for the object of another target.
  set(ast ${CMAKE_CURRENT_BINARY_DIR}/${name}.ast)
  add_custom_command(OUTPUT ${ast} DEPENDS ${name} $<TARGET_OBJECTS:${name}>
                     COMMAND ${CMAKE_COMMAND} -E copy $<TARGET_OBJECTS:${name}>.sum ${ast}.sum
                     COMMAND ${CMAKE_COMMAND} -E copy $<TARGET_OBJECTS:${name}> ${ast})
  add_custom_target(${name}_file DEPENDS ${ast})
  set_property(TARGET ${name} PROPERTY PRECOMPILED ${ast})
endfunction()

function(fleetx_precompiled_code name target)
  if(NOT FLEETX_SANITIZE)
    return()
  endif()
  target_compile_options(${name} PRIVATE "SHELL:-Xclang -fmodules-codegen")
  get_target_property(ast ${name} PRECOMPILED)
  set_source_files_properties(${ast} PROPERTIES LANGUAGE CXX GENERATED ON)
  add_library(${name}_code OBJECT EXCLUDE_FROM_ALL ${ast})
  set_target_properties(${name}_code PROPERTIES CXX_COMPILER_LAUNCHER "")
  add_dependencies(${name}_code ${name}_file)
  target_link_libraries(${name}_code PRIVATE ${ARGN})
  target_compile_options(${name}_code PRIVATE -x ast -Wno-unused-command-line-argument)
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:${name}_code>)
  # Code that nobody calls may call what no library has (parts of std::filesystem::path).
  target_link_options(${target} INTERFACE -Wl,--allow-shlib-undefined)
endfunction()

function(fleetx_use_precompiled target name)
  if(FLEETX_SANITIZE)
    get_target_property(ast ${name} PRECOMPILED)
    target_compile_options(${target} PRIVATE "SHELL:-include-pch ${ast}")
    add_dependencies(${target} ${name}_file)
  endif()
endfunction()
