# Compile flags of everything that is ours: a target links fleetx_flags.
add_library(fleetx_flags INTERFACE)
# The project is written for g++. clang builds it for the fuzz targets only, and has other opinions on pragmas.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(fleetx_flags INTERFACE -Wall -Wextra -Werror)
endif()
target_compile_options(fleetx_flags INTERFACE -fno-math-errno -fno-trapping-math)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # The vector code of simd.h mixes functions of different instruction sets; no vector type crosses an interface.
  target_compile_options(fleetx_flags INTERFACE -Wno-psabi)
endif()
if(FLEETX_SANITIZE)
  target_compile_options(fleetx_flags INTERFACE -fsanitize=${FLEETX_SANITIZE} -fno-omit-frame-pointer
                                                -fno-sanitize-recover=all)
  target_link_options(fleetx_flags INTERFACE -fsanitize=${FLEETX_SANITIZE})
endif()
