// Takes in the file that nvcc has made.
#include "device/sum_image.h"

// FCCL_SUM_IMAGE is the path of the file.
asm(".pushsection .rodata, \"a\"\n"
    ".balign 64\n"
    ".globl fccl_sum_image_begin\n"
    ".globl fccl_sum_image_end\n"
    ".hidden fccl_sum_image_begin\n"
    ".hidden fccl_sum_image_end\n"
    "fccl_sum_image_begin:\n"
    ".incbin \"" FCCL_SUM_IMAGE
    "\"\n"
    "fccl_sum_image_end:\n"
    ".popsection\n");

extern "C" {
extern const std::byte fccl_sum_image_begin[], fccl_sum_image_end[];
}

namespace fccl::core {

std::span<const std::byte> sum_image() { return {fccl_sum_image_begin, fccl_sum_image_end}; }

}  // namespace fccl::core
