// Takes in the file that nvcc has made.
#include "device/sum_image.h"

// FCCL_SUM_IMAGE is the path of the file.
asm(".pushsection .rodata, \"a\"\n"
    ".balign 64\n"
    ".globl kSumImageBegin\n"
    ".globl kSumImageEnd\n"
    ".hidden kSumImageBegin\n"
    ".hidden kSumImageEnd\n"
    "kSumImageBegin:\n"
    ".incbin \"" FCCL_SUM_IMAGE
    "\"\n"
    "kSumImageEnd:\n"
    ".popsection\n");

extern "C" {
extern const std::byte kSumImageBegin[], kSumImageEnd[];
}

namespace fccl::core {

std::span<const std::byte> sum_image() { return {kSumImageBegin, kSumImageEnd}; }

}  // namespace fccl::core
