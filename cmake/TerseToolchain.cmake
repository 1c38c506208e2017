# Compiler, linker and sanitizer settings that every target shares.

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_program(TERSE_CCACHE ccache)
if(TERSE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Paths relative to the checkout: every clone hits the cache that another one filled. With the compiler's own list of
  # headers (which Ninja asks for anyway) a source that is not in the cache is not preprocessed a second time for it.
  set(CMAKE_CXX_COMPILER_LAUNCHER
    "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}" CCACHE_DEPEND=1 "${TERSE_CCACHE}")
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()
# Binaries name no folder of the machine that built them.
add_compile_options("-ffile-prefix-map=${CMAKE_SOURCE_DIR}=.")

find_program(TERSE_MOLD mold)
# GCC's cross compilers look for a linker of their machine's name, which mold's package does not have.
if(TERSE_MOLD AND NOT CMAKE_CROSSCOMPILING)
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

# Everything that a library says in a header must be the same everywhere, so this is for all targets.
if(TERSE_FAULTS)
  add_compile_definitions(TERSE_FAULTS)
endif()

if(TERSE_FUZZ)
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_FLAGS -fsanitize=fuzzer,address)
  check_cxx_source_compiles(
    "extern \"C\" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }" TERSE_HAS_LIBFUZZER)
  unset(CMAKE_REQUIRED_FLAGS)
  if(NOT TERSE_HAS_LIBFUZZER OR TERSE_SANITIZER)
    message(FATAL_ERROR "TERSE_FUZZ needs clang with its libFuzzer, and brings its own sanitizers. The compiler is "
                        "${CMAKE_CXX_COMPILER_ID} and TERSE_SANITIZER is '${TERSE_SANITIZER}'. Install clang-14 and "
                        "libclang-rt-14-dev and configure a fresh folder with the preset `fuzz`.")
  endif()
  # Every library tells the fuzzer which of its branches an input took; reporting every comparison too takes longer than
  # most of what is tested.
  if(TERSE_FUZZ_FAST)
    set(_sanitizers undefined,float-cast-overflow)
    # These checks are left out: AddressSanitizer's build makes them too, and some make each access to a member a
    # branch.
    set(_left_out vptr,null,alignment,object-size,pointer-overflow)
    set(_ignored "${CMAKE_SOURCE_DIR}/tests/fuzz/fast_ignored.txt")
    add_compile_options(-fsanitize-coverage=inline-8bit-counters,pc-table -fsanitize=${_sanitizers}
      -fno-sanitize=${_left_out} -fsanitize-ignorelist=${_ignored} -fsanitize-coverage-ignorelist=${_ignored})
  else()
    set(_sanitizers address,undefined,float-cast-overflow)
    add_compile_options(-fsanitize=fuzzer-no-link,${_sanitizers})
  endif()
  add_compile_options(-fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
  add_link_options(-fsanitize=${_sanitizers})
endif()

if(TERSE_SANITIZER)
  set(_san -fsanitize=${TERSE_SANITIZER} -fno-omit-frame-pointer)
  if(TERSE_SANITIZER STREQUAL "address")
    list(APPEND _san -fsanitize=undefined)
    # These double the time that compiling takes. The fuzzers' build and the preset asan-all make them.
    if(NOT TERSE_UBSAN_ALL)
      list(APPEND _san -fno-sanitize=vptr,null,alignment,object-size,pointer-overflow)
    endif()
    list(APPEND _san -fno-sanitize-recover=undefined)
  endif()
  add_compile_options(${_san} -g1)
  add_link_options(${_san})
endif()
