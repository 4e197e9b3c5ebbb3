# -DLRA_CUDA=ON: nvcc and cuBLAS. CMake looks for nvcc in PATH, CUDACXX and CUDA_PATH; the wheels of NVIDIA have all that
# is needed too (scripts/cuda-wheels.sh), for which -DLRA_CUDA_ROOT=<folder of bin/nvcc> is the shortest way.
set(LRA_CUDA_ROOT "" CACHE PATH "Folder of a CUDA toolkit or of the wheels, with bin/nvcc inside; empty: CMake looks for it")
set(LRA_CUDA_ARCHITECTURES "80-real;90" CACHE STRING
  "CUDA architectures: code for 8.0 (A100) and 9.0 (H100, H200), PTX of 9.0 for later ones")
if(LRA_CUDA_ROOT)
  set(CMAKE_CUDA_COMPILER ${LRA_CUDA_ROOT}/bin/nvcc)
endif()
set(CMAKE_CUDA_ARCHITECTURES ${LRA_CUDA_ARCHITECTURES})
enable_language(CUDA)
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # unknown to CMake 3.25
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
endif()
if(LRA_CUDA_ROOT)
  set(CUDAToolkit_ROOT ${LRA_CUDA_ROOT})
endif()
find_package(CUDAToolkit 12.0 REQUIRED)
# cuBLAS of the same folder: there may be others, and those of the wheels have their version in the name alone. The
# runtime is linked statically, which is CMake's default.
add_library(lra_cublas INTERFACE)
target_include_directories(lra_cublas SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS})
foreach(library cublas cublasLt)
  set(found "")
  if(LRA_CUDA_ROOT)
    file(GLOB found ${LRA_CUDA_ROOT}/lib*/lib${library}.so*)
  endif()
  if(found)
    list(GET found 0 found)
    target_link_libraries(lra_cublas INTERFACE ${found})
  else()
    target_link_libraries(lra_cublas INTERFACE CUDA::${library})
  endif()
endforeach()
