// The C interface: what is declared for later. Each call says so by name and changes nothing.
#include "c_api/c_api.h"

using fccl::not_yet;

extern "C" {

fcclResult_t fcclMemAlloc(void**, size_t) { return not_yet(__func__); }
fcclResult_t fcclMemFree(void*) { return not_yet(__func__); }
fcclResult_t fcclCommRegister(const fcclComm_t, void*, size_t, void**) { return not_yet(__func__); }
fcclResult_t fcclCommDeregister(const fcclComm_t, void*) { return not_yet(__func__); }

}  // extern "C"
