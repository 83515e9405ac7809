# The kernels of sums, which nvcc makes, as one file that is taken into libfccl: for the GPUs below, and as PTX for later ones.
# Sets sum_image to the sources of device/ that have it, or that say there is none.
set(sum_image device/no_sum_image.cpp)
if(NOT FCCL_CUDA_HEADERS OR FCCL_SANITIZE)
  return()
endif()
find_program(FCCL_NVCC nvcc HINTS ${FCCL_CUDA_HEADERS}/../bin ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
set(nvcc_knows "")
if(FCCL_NVCC)
  execute_process(COMMAND ${FCCL_NVCC} --list-gpu-code OUTPUT_VARIABLE nvcc_knows ERROR_QUIET)
endif()
if(NOT nvcc_knows MATCHES "sm_100")
  message(STATUS "Sums on GPUs: left out; they want nvcc of CUDA 12.8 or later (FCCL_NVCC: ${FCCL_NVCC})")
  return()
endif()
message(STATUS "Sums on GPUs: by ${FCCL_NVCC}")
set(sum_image device/sum_image.cpp)
set(image ${CMAKE_CURRENT_BINARY_DIR}/sums.fatbin)
add_custom_command(
  OUTPUT ${image}
  COMMAND
    ${FCCL_NVCC} -ccbin ${CMAKE_CXX_COMPILER} -std=c++20 -O3 --fmad=false --compress-mode=size -gencode=arch=compute_80,code=sm_80
    -gencode=arch=compute_90,code=sm_90 "-gencode=arch=compute_100,code=[sm_100,compute_100]" -I ${CMAKE_CURRENT_SOURCE_DIR} -fatbin -o
    ${image} ${CMAKE_CURRENT_SOURCE_DIR}/kernels/gpu/sum.cu
  DEPENDS kernels/gpu/sum.cu kernels/gpu/sum.h
  COMMENT "Compiling the sums of GPUs for sm_80, sm_90, sm_100 and as PTX"
  VERBATIM)
set_source_files_properties(${sum_image} PROPERTIES COMPILE_DEFINITIONS FCCL_SUM_IMAGE="${image}" OBJECT_DEPENDS ${image})
