# Compiler, linker and sanitizer settings that every target shares.

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_program(TERSE_CCACHE ccache)
if(TERSE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${TERSE_CCACHE}")
  set(CMAKE_C_COMPILER_LAUNCHER "${TERSE_CCACHE}")
endif()

find_program(TERSE_MOLD mold)
if(TERSE_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

add_library(terse_flags INTERFACE)
target_compile_options(terse_flags INTERFACE
  -Wall -Wextra -Werror -Wno-unused-parameter -Wno-sign-compare
  # Both ends must do the same float operations in the same order, so a multiply and an add never fuse.
  -ffp-contract=off
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>
  # GCC 12 reports these two inside library templates that it inlined.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized -Wno-stringop-overflow>)
target_include_directories(terse_flags INTERFACE "${CMAKE_SOURCE_DIR}")

if(TERSE_SANITIZER)
  set(_san -fsanitize=${TERSE_SANITIZER} -fno-omit-frame-pointer)
  if(TERSE_SANITIZER STREQUAL "address")
    list(APPEND _san -fsanitize=undefined -fno-sanitize-recover=undefined)
  endif()
  add_compile_options(${_san} -g1)
  add_link_options(${_san})
endif()
