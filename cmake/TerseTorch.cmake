# LibTorch: Debian's or another one that CMAKE_PREFIX_PATH leads to; with TERSE_TORCH the one that lies in an installed
# Python package. Such a package is linked here by hand, because its own TorchConfig asks for the CUDA toolkit, which
# only those need who compile kernels.
set(TERSE_TORCH "$ENV{TERSE_TORCH}" CACHE PATH "Folder of a Python package torch (python3 -c 'import torch; print(*torch.__path__)')")
if(NOT TERSE_TORCH)
  find_package(Torch REQUIRED)
  return()
endif()

set(TORCH_INCLUDE_DIRS "${TERSE_TORCH}/include" "${TERSE_TORCH}/include/torch/csrc/api/include")
if(NOT EXISTS "${TERSE_TORCH}/include/torch/script.h")
  message(FATAL_ERROR "TERSE_TORCH is ${TERSE_TORCH}, which has no include/torch/script.h; name the folder of the Python package torch")
endif()
set(TORCH_LIBRARIES)
foreach(name torch_cpu c10)
  find_library(TERSE_TORCH_${name} ${name} PATHS "${TERSE_TORCH}/lib" NO_DEFAULT_PATH NO_CACHE REQUIRED)
  list(APPEND TORCH_LIBRARIES "${TERSE_TORCH_${name}}")
endforeach()
# Its kernels register themselves when it is loaded: nothing refers to it.
find_library(TERSE_TORCH_cuda torch_cuda PATHS "${TERSE_TORCH}/lib" NO_DEFAULT_PATH NO_CACHE)
if(TERSE_TORCH_cuda)
  list(APPEND TORCH_LIBRARIES "-Wl,--no-as-needed,${TERSE_TORCH_cuda},--as-needed")
endif()
