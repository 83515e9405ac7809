/* The C interface of FCCL in NCCL's shape: a port from NCCL is `s/nccl/fccl/`, and CPU and CUDA memory share one set of calls.
 *
 * Conventions that hold for every call below:
 *   counts    are in elements of `datatype`, never in bytes;
 *   buffers   may have any alignment; NULL is refused unless the buffer's size is zero;
 *   stream    on a communicator of CPU memory is NULL (the call returns when the operation is done) or a host stream made by
 *             fcclStreamCreate (the call returns at once). On one of CUDA memory it is a cudaStream_t of its GPU: NULL or
 *             cudaStreamLegacy mean the default stream, cudaStreamPerThread the calling thread's. A stream of the other kind
 *             is refused, and so is one that records a CUDA graph;
 *   order     every rank issues the collectives of one communicator in the same order;
 *   threads   one thread at a time uses a communicator, with two exceptions. Any thread may call fcclCommRevoke,
 *             fcclCommGetAsyncError, fcclCommGetDeadRanks and fcclGetLastError at any time. Any thread may call
 *             fcclCommFinalize, fcclCommDestroy and fcclCommAbort while another is inside a collective, a split or a finalize:
 *             they return after that call. The last two free the handle for all threads: their caller makes sure that no
 *             other thread is inside or about to enter any other call, or frees the handle, too;
 *   errors    a call that is wrong on its face (NULL, bad type, bad root, not implemented, after finalize) starts nothing and
 *             leaves the communicator as it was. Every other error is the communicator's first failure: it is sticky and has
 *             a cause (fcclGetLastError). It reaches every rank: in this call, or in the next if the rank's part of this call
 *             was done. After it only destroy, abort and fcclCommShrink work;
 *   deadline  no call blocks for ever: each wait ends with fcclTimeout after the timeout of the communicator. */
#ifndef FCCL_FCCL_H
#define FCCL_FCCL_H

#include <limits.h>
#include <stddef.h>

#define FCCL_MAJOR 0
#define FCCL_MINOR 1
#define FCCL_PATCH 0
#define FCCL_VERSION_CODE (FCCL_MAJOR * 10000 + FCCL_MINOR * 100 + FCCL_PATCH)

#if defined(__GNUC__)
#define FCCL_API __attribute__((visibility("default")))
#else
#define FCCL_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Types -------------------------------------------------------------------------------------------------------------- */

typedef struct fcclComm* fcclComm_t; /* one rank's handle of a communicator */
typedef void* fcclStream_t;          /* a host stream (CPU communicators) or a cudaStream_t (CUDA communicators) */

#define FCCL_UNIQUE_ID_BYTES 128
/* Names one communicator to be made: address of its bootstrap, generation, 32-byte key. Any process that has it may join. */
typedef struct {
  char internal[FCCL_UNIQUE_ID_BYTES];
} fcclUniqueId;

typedef enum {
  fcclSuccess = 0,
  fcclUnhandledCudaError = 1,
  fcclSystemError = 2,     /* the operating system refused: memory, descriptors, sockets */
  fcclInternalError = 3,   /* a defect of FCCL */
  fcclInvalidArgument = 4, /* this call is wrong on its face; nothing was started */
  fcclInvalidUsage = 5,    /* the ranks disagree, or the call is not allowed in this state */
  fcclRemoteError = 6,     /* a peer died, left, or failed first */
  fcclInProgress = 7,      /* not done yet (fcclStreamQuery, fcclCommGetAsyncError) */
  fcclTimeout = 8,         /* a wait reached its deadline */
  fcclNotImplemented = 9,  /* declared for later; the message names the call */
  fcclAborted = 10,        /* fcclCommAbort ended the operation */
  fcclNumResults = 11
} fcclResult_t;

typedef enum {
  fcclInt8 = 0,
  fcclChar = 0,
  fcclUint8 = 1,
  fcclInt32 = 2,
  fcclInt = 2,
  fcclUint32 = 3,
  fcclInt64 = 4,
  fcclUint64 = 5,
  fcclFloat16 = 6,
  fcclHalf = 6,
  fcclFloat32 = 7,
  fcclFloat = 7,
  fcclFloat64 = 8,
  fcclDouble = 8,
  fcclBfloat16 = 9,
  fcclFloat8e4m3 = 10, /* torch.float8_e4m3fn: largest 448, NaN, no infinity */
  fcclFloat8e5m2 = 11, /* torch.float8_e5m2: largest 57344, infinities, NaN */
  fcclInt16 = 12,
  fcclUint16 = 13,
  fcclBool = 14,
  fcclNumTypes = 15
} fcclDataType_t;

/* Operators, for every type. docs/decisions/0002 fixes the value of a result: the library merges the sources as a binary tree
 * over ranks. It computes 16-bit and 8-bit floats in float32, and rounds to nearest: once within a host; between hosts once on
 * each host and once in the end (FCCL_WIRE_DTYPE). The bits are the same for every message size, alignment, path, processor and
 * run, whatever rounding or flushing of subnormals the caller has asked the processor for.
 *
 * Integers: sums and products wrap; an average is the wrapped sum divided by the number of ranks, truncated towards zero.
 *
 * Floats: results overflow to infinity, or to 448 in fcclFloat8e4m3, which has no infinity; minimum and maximum are NaN if a
 * source is, and take the zero of the lower rank of -0 and +0; a result that is NaN has one bit pattern: positive, quiet, no
 * payload (0x7f in 8-bit floats).
 *
 * fcclBool: any byte but zero is true; results are 0 or 1. fcclSum, fcclMax and fcclBor are logical or, fcclProd, fcclMin and
 * fcclBand logical and, fcclBxor exclusive or. fcclAvg and pre-multiplied sums are refused with fcclInvalidArgument.
 *
 * fcclBand, fcclBor and fcclBxor, which nccl.h does not have, are the bitwise and, or and exclusive or; for floats they are
 * refused with fcclInvalidArgument. */
typedef enum {
  fcclSum = 0,
  fcclProd = 1,
  fcclMax = 2,
  fcclMin = 3,
  fcclAvg = 4,
  fcclBand = 5,
  fcclBor = 6,
  fcclBxor = 7,
  fcclNumOps = 8,
  fcclMaxRedOp = 0x7fffffff /* values between are made by fcclRedOpCreatePreMulSum */
} fcclRedOp_t;

typedef enum {
  fcclScalarDevice = 0,       /* the scalar lies in device memory and is read when the operation runs */
  fcclScalarHostImmediate = 1 /* the scalar lies in host memory and is read before the call returns */
} fcclScalarResidence_t;

/* Says where the buffers of a communicator lie. Cuda: on the GPU that is current in the thread that makes the communicator, or
 * on the first GPU if that thread has none. Device, managed and pinned memory are served; pageable memory and another GPU's are
 * refused. Auto, the default: a split takes the kind of its parent. Otherwise the kind is Cuda if the thread has a current GPU,
 * else Cpu; the library asks for that GPU without loading or initialising CUDA. If ranks differ in it, all get an error. */
typedef enum { fcclMemoryAuto = 0, fcclMemoryCpu = 1, fcclMemoryCuda = 2 } fcclMemoryKind_t;

#define FCCL_CONFIG_MAGIC 0xfcc1beefu
#define FCCL_CONFIG_UNDEF_INT INT_MIN
#define FCCL_CONFIG_UNDEF_PTR NULL

/* Options of one communicator; start from FCCL_CONFIG_INITIALIZER, which carries size, magic and version. */
typedef struct {
  size_t size;
  unsigned int magic;
  unsigned int version;
  int blocking;         /* 1 (default): calls that make a communicator return when it is made; 0: see fcclCommInitRankConfig */
  int memoryKind;       /* fcclMemoryKind_t, the same on all ranks; see there */
  int timeoutMs;        /* deadline of every wait of an operation, milliseconds; default FCCL_TIMEOUT */
  int initTimeoutMs;    /* deadline of init, split, shrink and grow, milliseconds; default FCCL_INIT_TIMEOUT */
  const char* commName; /* appears in messages; copied, at most 31 bytes are kept */
} fcclConfig_t;

#define FCCL_CONFIG_INITIALIZER                                                                \
  {sizeof(fcclConfig_t),  FCCL_CONFIG_MAGIC,     FCCL_VERSION_CODE,     FCCL_CONFIG_UNDEF_INT, \
   FCCL_CONFIG_UNDEF_INT, FCCL_CONFIG_UNDEF_INT, FCCL_CONFIG_UNDEF_INT, FCCL_CONFIG_UNDEF_PTR}

/* ---- Library ------------------------------------------------------------------------------------------------------------ */

FCCL_API fcclResult_t fcclGetVersion(int* version);
/* Returns a constant text for a result code; never NULL. */
FCCL_API const char* fcclGetErrorString(fcclResult_t result);
/* Returns a text. With a communicator: the cause of its first failure, or "". With NULL: the last error of a call on this
 * thread. The text stays valid until the communicator is destroyed or, for NULL, until this thread's next failing call. */
FCCL_API const char* fcclGetLastError(fcclComm_t comm);

/* ---- Communicators ------------------------------------------------------------------------------------------------------ */

/* Makes a unique id and opens the bootstrap socket behind it in this process, which must live until every rank has joined.
 * One id makes one communicator. FCCL_SOCKET_IFNAME chooses the interface, FCCL_SOCKET_PORTS the port. */
FCCL_API fcclResult_t fcclGetUniqueId(fcclUniqueId* id);
/* Joins as `rank` of `nranks`; returns when all ranks have joined, or an error on every one that has. Ranks are processes of
 * one host or of several, or threads of one process (each thread calls this). Errors: fcclInvalidUsage (a rank twice, versions
 * or settings differ), fcclRemoteError (a rank died while joining), fcclTimeout, fcclSystemError (no way to other hosts). */
FCCL_API fcclResult_t fcclCommInitRank(fcclComm_t* comm, int nranks, fcclUniqueId id, int rank);
/* With config->blocking = 0 the call returns fcclInProgress at once, or an error of its arguments, and a thread of the library
 * joins. fcclCommGetAsyncError then says fcclInProgress, and in the end fcclSuccess or the error; fcclGetLastError(*comm) has
 * its text. Until then every other call on the handle is refused with fcclInvalidUsage. fcclCommDestroy, fcclCommAbort and
 * fcclCommFinalize are allowed: they end the making within about a second. After an error these calls return the error, and the
 * handle must be destroyed. One thread may make several such calls without a group. fcclCommSplit (with a color),
 * fcclCommShrink and fcclCommGrow work likewise. Until their communicator is made, the parent refuses calls that other ranks
 * must answer (fcclInvalidUsage), and destroying or aborting the parent waits for the making. A rank that ends a split also
 * ends the parent, with fcclAborted; so does one that ends a grow while a rank of the parent is still awaited. */
FCCL_API fcclResult_t fcclCommInitRankConfig(fcclComm_t* comm, int nranks, fcclUniqueId id, int rank, fcclConfig_t* config);
/* Joins like fcclCommInitRankConfig, by `nId` (>= 1) ids, each of its own fcclGetUniqueId, in the same order on all ranks. All
 * ranks meet at the first id, so its process must live until they have met; rank 0 releases the threads that serve the other
 * ids. config may be NULL. Errors: those of fcclCommInitRank; fcclInvalidArgument also if any of the ids is not one. */
FCCL_API fcclResult_t fcclCommInitRankScalable(fcclComm_t* newcomm, int nranks, int myrank, int nId, fcclUniqueId* commIds,
                                               fcclConfig_t* config);
/* Makes a communicator of `ndev` ranks, all of this process: comms[r] is the handle of rank r. The threads that join for the
 * ranks end with the call. If the calling thread has a current GPU, rank r is of CUDA memory, on GPU devlist[r], or on GPU r
 * where devlist is NULL: a GPU that is listed twice is fcclInvalidUsage, one that does not exist is fcclInvalidArgument.
 * Otherwise the ranks are of CPU memory and devlist is not read. One thread may use all handles, with groups for its calls. */
FCCL_API fcclResult_t fcclCommInitAll(fcclComm_t* comms, int ndev, const int* devlist);

#define FCCL_SPLIT_NOCOLOR (-1)
/* Collective over `comm`: ranks of equal `color` (>= 0) make a new communicator, ordered by (key, rank); FCCL_SPLIT_NOCOLOR
 * gets *newcomm = NULL. `config` may be NULL: it then means the parent's timeouts and memory kind. */
FCCL_API fcclResult_t fcclCommSplit(fcclComm_t comm, int color, int key, fcclComm_t* newcomm, fcclConfig_t* config);

#define FCCL_SHRINK_DEFAULT 0
#define FCCL_SHRINK_ABORT 1
/* Collective over the surviving ranks, and called by these only: all but the `excludeRanksCount` (>= 0) ranks of
 * `excludeRanksList` make a new communicator, in their order. All survivors give the same list, in any order; it names each
 * rank once, and never the caller. FCCL_SHRINK_DEFAULT: `comm` must be healthy; the call waits until this rank's outstanding
 * operations are done, and `comm` stays usable. FCCL_SHRINK_ABORT: for a communicator in any state but finalized, such as after
 * a failure. The call first ends the outstanding operations of all ranks, with fcclAborted unless `comm` has failed already.
 * Either way `comm` must still be destroyed, before the new one or after it. `config` may be NULL: it then means the parent's
 * timeouts and memory kind. Each wait ends at initTimeoutMs. Errors: fcclInvalidArgument (a rank out of range, twice, or the
 * caller itself), fcclInvalidUsage (`comm` is finalized; or the survivors give different lists: every survivor that has called
 * gets it), fcclRemoteError (a survivor died or left), fcclTimeout (a survivor does not call; on several hosts also lists that
 * differ in their first survivor, or only between ranks of one host), the first failure of `comm` (FCCL_SHRINK_DEFAULT). An
 * error leaves *newcomm = NULL, and fcclCommShrink may be called again. Two shrinks with different lists may follow each other
 * at once, with one exception: on several hosts, if both have the same first survivor, a rank that takes part in the second
 * alone must not call before that first survivor has made the first. */
FCCL_API fcclResult_t fcclCommShrink(fcclComm_t comm, int* excludeRanksList, int excludeRanksCount, fcclComm_t* newcomm,
                                     fcclConfig_t* config, int shrinkFlags);
/* Lists the ranks whose processes ended without finalizing or destroying `comm`, in ascending order, as fcclCommShrink takes
 * them. On entry `*count` is the room in `ranks`, on return the number of dead ranks; no more are written than there is room
 * for. With ranks = NULL it only counts. It does not wait; any thread may call it, also after a failure. Deaths on other hosts
 * are reported by their first rank and relayed by rank 0. Once either is dead, later deaths there are not reported: the caller
 * must learn of these, or of the loss of a whole host, by other means. A forked child gets fcclInvalidUsage. */
FCCL_API fcclResult_t fcclCommGetDeadRanks(fcclComm_t comm, int* ranks, int* count);

/* Makes the unique id by which new ranks join fcclCommGrow of `comm`, and opens the bootstrap socket behind it in this process.
 * One rank calls it, and hands the id to the new ranks by a way of its own. A second call is refused with fcclInvalidUsage
 * until a grow has used the first id; an unused id ends with `comm`. */
FCCL_API fcclResult_t fcclCommGetUniqueId(fcclComm_t comm, fcclUniqueId* uniqueId);
/* Collective over all ranks of `comm` and new ones: it makes a communicator of `nRanks` ranks, more than `comm` has. Ranks of
 * `comm` give `comm` and rank = -1, and keep their numbers; their uniqueId may be NULL, even on the rank that made it, since
 * they learn it from each other. New ranks give comm = NULL, uniqueId and their rank; together they take the numbers from the
 * size of `comm` to nRanks - 1. Ranks may call in any order: early ones wait. Before it, the calls on `comm` must be the same
 * on all its ranks, as for fcclCommSplit. `comm` stays usable until it is destroyed, before the new one or after it. `config`
 * may be NULL: it then means the parent's timeouts and memory kind, and for a new rank those of the environment. Ranks of
 * `comm` wait for each other until its timeout, and then for the new ranks until initTimeoutMs. Errors: those of
 * fcclCommInitRank, on all ranks that have called (a number twice, different nRanks, a new rank that does not call, is missing
 * or has died); fcclInvalidArgument (nRanks is not larger; no comm and no id); fcclInvalidUsage (no rank of `comm` has an id,
 * or two have different ones). An error leaves *newcomm = NULL, and `comm` good unless one of its own ranks has died or did not
 * call. The id is spent once all ranks of `comm` have found it. */
FCCL_API fcclResult_t fcclCommGrow(fcclComm_t comm, int nRanks, const fcclUniqueId* uniqueId, int rank, fcclComm_t* newcomm,
                                   fcclConfig_t* config);

/* Ends this rank's part: refuses calls from now on, waits until every operation that this rank has issued is done, including
 * calls that other threads are in, and tells the peers that it has left. Only fcclCommDestroy may follow; to wait without
 * leaving, use fcclStreamSynchronize. The peers need not call it. A forked child gets fcclInvalidUsage. */
FCCL_API fcclResult_t fcclCommFinalize(fcclComm_t comm);
/* Finalizes, tells the peers that this rank has left and frees the handle. Waits for a peer only in outstanding operations,
 * also of other threads, and each such wait has its deadline; a peer that still expects a call of this rank gets an error that
 * says so. On CUDA memory it does not wait for calls that the GPU has not reached, nor longer than 2 s for the others: the rest
 * fail on every rank with fcclAborted, so synchronize the streams, or finalize, first. A forked child tells no peer. */
FCCL_API fcclResult_t fcclCommDestroy(fcclComm_t comm);
/* Fails every outstanding and every later operation of every rank with fcclAborted as cause, and returns at once. The handle
 * stays good for fcclCommDestroy. Any thread may call it while another is inside a collective of `comm`. `flags` must be 0. */
FCCL_API fcclResult_t fcclCommRevoke(fcclComm_t comm, int flags);
/* Revokes, and frees the handle once this rank's calls that were inside have returned: no other thread may be about to enter
 * one. A forked child frees its copy and revokes nothing. */
FCCL_API fcclResult_t fcclCommAbort(fcclComm_t comm);
/* Sets *asyncError to the first failure of `comm`, or fcclSuccess. Looks for dead peers, so an idle rank finds them by it. */
FCCL_API fcclResult_t fcclCommGetAsyncError(fcclComm_t comm, fcclResult_t* asyncError);
/* Sets the deadline of the waits of operations issued from now on, milliseconds > 0. */
FCCL_API fcclResult_t fcclCommSetTimeout(fcclComm_t comm, int timeoutMs);
/* On CUDA memory: each call that is issued from now on records `event`, a cudaEvent_t of its GPU, at its end, and its stream
 * does not wait for it. Such calls come one after the other, as on one stream. The next user of the buffers of one must wait
 * for the event, even if the call has failed. After NULL the streams wait again. */
FCCL_API fcclResult_t fcclCommSetEndEvent(fcclComm_t comm, void* event);

FCCL_API fcclResult_t fcclCommCount(const fcclComm_t comm, int* count);
FCCL_API fcclResult_t fcclCommUserRank(const fcclComm_t comm, int* rank);
/* Says how the ranks are spread over hosts; equal on all ranks. */
typedef struct {
  int hosts;
  int mostRanks;   /* on the host that has the most */
  int fewestRanks; /* on the host that has the fewest */
  int rails;       /* NICs used per host for traffic between hosts (the minimum over hosts); 0 on a single host */
} fcclHosts_t;
FCCL_API fcclResult_t fcclCommGetHosts(const fcclComm_t comm, fcclHosts_t* hosts);
/* Sets *device to the number of the communicator's GPU in this process; fcclInvalidUsage on CPU communicators. */
FCCL_API fcclResult_t fcclCommCuDevice(const fcclComm_t comm, int* device);

/* ---- Memory that peers map ---------------------------------------------------------------------------------------------- */

/* Sets *ptr to `size` bytes of CPU memory that the other ranks of this host can read in place. The memory comes out of one file
 * per process (its arena), which each of them maps once. It serves like any other memory in every call and every communicator,
 * made before it or after. Calls on one host that move more than the mailbox (FCCL_MAILBOX_BYTES) copy once instead of twice if
 * the buffers that peers read are such memory on every rank: sendbuff, and for the fewest copies of AllReduce also recvbuff.
 * Otherwise, or if a peer's arena cannot be mapped, calls work as with other memory; results have the same bits. Sends and
 * receives, calls between hosts and calls on CUDA memory gain nothing.
 *   cost     addresses are reserved at the first allocation (FCCL_ARENA_BYTES). Pages are taken when they are first written, on
 *            the NUMA node of the thread that writes; they count for the process and its control group. Up to 256 MiB of freed
 *            memory are kept for the next allocations. An allocation that does not fit is refused with fcclSystemError, before
 *            the kernel kills processes for it. It begins at a multiple of 64 bytes, from a page on at a multiple of a page,
 *            is not cleared, and is left out of core dumps.
 *   forks    a forked child reads what its parent had written; what the child writes never changes its parent's memory. It may
 *            or may not see what the parent writes later. Its own allocations are its own. A child made by clone() or the
 *            like, without fork()'s handlers, shares the pages and must not write to them.
 *   threads  any, at any time.
 * Size 0, or a refusal, sets *ptr to NULL. */
FCCL_API fcclResult_t fcclMemAlloc(void** ptr, size_t size);
/* Frees memory of fcclMemAlloc; does nothing for NULL, or in a forked child for its parent's memory. Any other pointer is
 * fcclInvalidArgument. The memory may be freed once the calls that use it are done, before the communicators or after them. */
FCCL_API fcclResult_t fcclMemFree(void* ptr);
/* Says how many bytes fcclMemAlloc has given this process; all 0 before the first allocation, and in a forked child before its
 * own. Before the call set `size` to sizeof(fcclMemUsage_t); later versions may append fields. */
typedef struct {
  size_t size;
  size_t allocated;     /* now */
  size_t mostAllocated; /* the most at any one time */
  size_t filled;        /* memory that it occupies, including freed allocations that are kept */
  size_t reserved;      /* addresses */
  size_t gatherSlots;   /* slots of this process's communicators of CUDA memory for AllGather and Broadcast, of GPUs or host */
  size_t pairSlots;     /* slots for reductions, in the memory of GPUs */
} fcclMemUsage_t;

FCCL_API fcclResult_t fcclMemGetUsage(fcclMemUsage_t* usage);
/* For ports from NCCL: checks its arguments, and gives a handle that is valid until fcclCommDeregister or the end of `comm`.
 * Memory of fcclMemAlloc needs no registration, and peers do not map other memory because of it. */
FCCL_API fcclResult_t fcclCommRegister(const fcclComm_t comm, void* buff, size_t size, void** handle);
FCCL_API fcclResult_t fcclCommDeregister(const fcclComm_t comm, void* handle);

/* ---- Operators ---------------------------------------------------------------------------------------------------------- */

/* Makes an operator that multiplies this rank's input by *scalar (of `datatype`) and then sums. Ranks may use different scalars
 * and must create and destroy operators in the same order. Use it with `comm` and `datatype` only. fcclScalarDevice is for
 * communicators of CUDA memory: the scalar lies where buffers of `comm` may, and stay there until they have run. */
FCCL_API fcclResult_t fcclRedOpCreatePreMulSum(fcclRedOp_t* op, void* scalar, fcclDataType_t datatype,
                                               fcclScalarResidence_t residence, fcclComm_t comm);
FCCL_API fcclResult_t fcclRedOpDestroy(fcclRedOp_t op, fcclComm_t comm);

/* ---- Collectives -------------------------------------------------------------------------------------------------------- */
/* n = number of ranks. "In place" names the only overlap of sendbuff and recvbuff that is allowed; any other is refused with
 * fcclInvalidArgument on the rank that has it. */

/* recvbuff[count] = op over ranks of sendbuff[count]. In place: recvbuff == sendbuff. */
FCCL_API fcclResult_t fcclAllReduce(const void* sendbuff, void* recvbuff, size_t count, fcclDataType_t datatype, fcclRedOp_t op,
                                    fcclComm_t comm, fcclStream_t stream);
/* recvbuff[count] on every rank = sendbuff[count] of `root`; sendbuff is read on root only. In place: recvbuff == sendbuff. */
FCCL_API fcclResult_t fcclBroadcast(const void* sendbuff, void* recvbuff, size_t count, fcclDataType_t datatype, int root,
                                    fcclComm_t comm, fcclStream_t stream);
/* fcclBroadcast in place; kept for ports. */
FCCL_API fcclResult_t fcclBcast(void* buff, size_t count, fcclDataType_t datatype, int root, fcclComm_t comm,
                                fcclStream_t stream);
/* recvbuff[count] on root = op over ranks of sendbuff[count]; recvbuff is used on root only. In place: recvbuff == sendbuff. */
FCCL_API fcclResult_t fcclReduce(const void* sendbuff, void* recvbuff, size_t count, fcclDataType_t datatype, fcclRedOp_t op,
                                 int root, fcclComm_t comm, fcclStream_t stream);
/* recvbuff[n * sendcount]: block r = sendbuff[sendcount] of rank r. In place: sendbuff == recvbuff + rank * sendcount. */
FCCL_API fcclResult_t fcclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount, fcclDataType_t datatype,
                                    fcclComm_t comm, fcclStream_t stream);
/* recvbuff[recvcount] on rank r = op over ranks of block r of sendbuff[n * recvcount]. In place:
 * recvbuff == sendbuff + rank * recvcount. */
FCCL_API fcclResult_t fcclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount, fcclDataType_t datatype,
                                        fcclRedOp_t op, fcclComm_t comm, fcclStream_t stream);
/* recvbuff[n * count] on root: block r = sendbuff[count] of rank r; recvbuff is used on root only. In place on root:
 * sendbuff == recvbuff + root * count. */
FCCL_API fcclResult_t fcclGather(const void* sendbuff, void* recvbuff, size_t count, fcclDataType_t datatype, int root,
                                 fcclComm_t comm, fcclStream_t stream);
/* recvbuff[count] on rank r = block r of root's sendbuff[n * count]; sendbuff is read on root only. In place on root:
 * recvbuff == sendbuff + root * count. */
FCCL_API fcclResult_t fcclScatter(const void* sendbuff, void* recvbuff, size_t count, fcclDataType_t datatype, int root,
                                  fcclComm_t comm, fcclStream_t stream);
/* recvbuff[n * count] on rank r: block i = block r of rank i's sendbuff[n * count]. Not in place: recvbuff != sendbuff. */
FCCL_API fcclResult_t fcclAlltoAll(const void* sendbuff, void* recvbuff, size_t count, fcclDataType_t datatype, fcclComm_t comm,
                                   fcclStream_t stream);
/* Returns once every rank has called it; on a stream, lets the stream go on then. */
FCCL_API fcclResult_t fcclBarrier(fcclComm_t comm, fcclStream_t stream);

/* ---- Reductions into another type ---------------------------------------------------------------------------------------- */
/* Like fcclAllReduce, fcclReduce and fcclReduceScatter, with elements of `sendtype` in sendbuff and of `recvtype` in recvbuff:
 * float32 for float16, bfloat16, float8e4m3 or float8e5m2. The result is the value that the plain call has before it rounds to
 * `sendtype` at its end: nothing is rounded on the way, and FCCL_WIRE_DTYPE has no effect between hosts. With recvtype ==
 * sendtype each is the plain call; other pairs are refused with fcclInvalidArgument. Both types must be equal on all ranks. An
 * operator of fcclRedOpCreatePreMulSum must have been made for `sendtype`. Not in place: where recvbuff is used, it may not
 * overlap sendbuff. */
FCCL_API fcclResult_t fcclAllReduceTyped(const void* sendbuff, void* recvbuff, size_t count, fcclDataType_t sendtype,
                                         fcclDataType_t recvtype, fcclRedOp_t op, fcclComm_t comm, fcclStream_t stream);
FCCL_API fcclResult_t fcclReduceTyped(const void* sendbuff, void* recvbuff, size_t count, fcclDataType_t sendtype,
                                      fcclDataType_t recvtype, fcclRedOp_t op, int root, fcclComm_t comm, fcclStream_t stream);
FCCL_API fcclResult_t fcclReduceScatterTyped(const void* sendbuff, void* recvbuff, size_t recvcount, fcclDataType_t sendtype,
                                             fcclDataType_t recvtype, fcclRedOp_t op, fcclComm_t comm, fcclStream_t stream);

/* ---- Collectives of uneven counts ---------------------------------------------------------------------------------------- */
/* Each block has a count of its own, which may be zero. Arrays have n entries, in elements, and are read before the call
 * returns. displs, sdispls and rdispls say where each block begins; NULL means one after the other, in the order of ranks.
 * Blocks of a recvbuff may not overlap; bytes between them are left alone. A buffer may be NULL if all its counts are zero. */

/* Block r of recvbuff, recvcounts[r] at displs[r], = sendbuff[sendcount] of rank r. recvcounts must be equal on all ranks, and
 * sendcount == recvcounts[rank]; displs may differ. In place: sendbuff == recvbuff + displs[rank]. */
FCCL_API fcclResult_t fcclAllGatherV(const void* sendbuff, size_t sendcount, void* recvbuff, const size_t* recvcounts,
                                     const size_t* displs, fcclDataType_t datatype, fcclComm_t comm, fcclStream_t stream);
/* recvbuff[recvcounts[r]] on rank r = op over ranks of block r of sendbuff, whose blocks follow one another. recvcounts must be
 * equal on all ranks. In place: recvbuff == sendbuff + the sum of recvcounts of all ranks below. */
FCCL_API fcclResult_t fcclReduceScatterV(const void* sendbuff, void* recvbuff, const size_t* recvcounts,
                                         fcclDataType_t datatype, fcclRedOp_t op, fcclComm_t comm, fcclStream_t stream);
/* Block i of recvbuff on rank r, recvcounts[i] at rdispls[i], = block r of rank i's sendbuff, sendcounts[r] at sdispls[r]. So
 * sendcounts[r] on rank i must be equal to recvcounts[i] on rank r; where they differ, both ranks fail with fcclInvalidUsage
 * before anything is written. Blocks of a sendbuff may overlap. Not in place: recvbuff != sendbuff. */
FCCL_API fcclResult_t fcclAlltoAllV(const void* sendbuff, const size_t* sendcounts, const size_t* sdispls, void* recvbuff,
                                    const size_t* recvcounts, const size_t* rdispls, fcclDataType_t datatype, fcclComm_t comm,
                                    fcclStream_t stream);

/* ---- Sends and receives -------------------------------------------------------------------------------------------------- */
/* One rank sends, another one (or the same) receives; the rest take no part. Sends and receives are ordered apart from
 * collectives: they never wait for a collective, nor a collective for them, whatever streams they are on. Messages from rank a
 * to rank b with one tag arrive in the order in which a issued them, and receives take them in the order in which b issued
 * them; messages of other peers or tags may overtake them. A send and its receive must agree in count and type, else both ranks
 * fail with fcclInvalidUsage and a text that shows both.
 *
 * A send of up to FCCL_MAILBOX_BYTES (4096; less with more than 32 ranks on a host) is done when its bytes are on their way, as
 * long as fewer than 8 such sends to the peer have not been received. Any other send is done when its receive has taken it. So
 * two ranks that both send a long message and then receive wait for each other, until the deadline names both: put the four
 * calls between fcclGroupStart and fcclGroupEnd, or on two streams. A rank may also send to itself.
 *
 * On CUDA memory sends, receives, fcclGroupEnd and collectives of uneven counts block the calling thread, where NCCL returns at
 * once: they wait until the stream has reached the call and then until the call is done as above; in a group until all its
 * calls are. So two streams do not replace a group there, and the thread must not issue after such a call anything that the
 * stream or the peer needs before it. An order of sends and receives is safe, as in NCCL, if each one meets its counterpart
 * once each rank has done its earlier ones. */

/* Sends sendbuff[count] to rank `peer`. */
FCCL_API fcclResult_t fcclSend(const void* sendbuff, size_t count, fcclDataType_t datatype, int peer, fcclComm_t comm,
                               fcclStream_t stream);
/* Receives recvbuff[count] from rank `peer`. */
FCCL_API fcclResult_t fcclRecv(void* recvbuff, size_t count, fcclDataType_t datatype, int peer, fcclComm_t comm,
                               fcclStream_t stream);

#define FCCL_ANY_SOURCE (-1)
/* Sends with a tag >= 0, for users of MPI and torch: a receive takes the oldest send with its tag. fcclRecv receives only
 * messages of fcclSend, and fcclRecvTagged only messages with a tag. */
FCCL_API fcclResult_t fcclSendTagged(const void* sendbuff, size_t count, fcclDataType_t datatype, int peer, int tag,
                                     fcclComm_t comm, fcclStream_t stream);
/* `peer` may be FCCL_ANY_SOURCE: the receive then takes the first message that comes from any rank. *source becomes the
 * sender's rank when the receive is done, and must live until then; it may be NULL. */
FCCL_API fcclResult_t fcclRecvTagged(void* recvbuff, size_t count, fcclDataType_t datatype, int peer, int tag, int* source,
                                     fcclComm_t comm, fcclStream_t stream);

/* ---- Groups -------------------------------------------------------------------------------------------------------------- */
/* Between fcclGroupStart and fcclGroupEnd of one thread, collectives, sends and receives are checked, but not issued; the end
 * issues all of them, in order, before it waits for any. So any order of sends and receives is safe within a group, whatever
 * their length, and one thread may hold several ranks: the calls of their communicators progress together. Calls on NULL
 * streams have ended when fcclGroupEnd returns; calls on one host stream form one item of it, after the items that the stream
 * had before. On CUDA memory fcclGroupEnd returns once the peers have met and the results are on their way to their streams.
 * fcclCommInitRank, fcclCommInitRankConfig, fcclCommSplit, fcclCommShrink and fcclCommGrow in a group run at its end, all at
 * the same time and before the other calls, and set their handles then; the last three refuse blocking = 0 there. On CUDA
 * memory either all ranks issue a collective within a group, or none does. Every other call runs at once. Groups nest: only the
 * outermost end issues.
 *
 * A call that fails in a group returns its error at once, and fcclGroupEnd then issues nothing and also returns that error.
 * After any error of fcclGroupEnd no group is open, and no call of it is half issued: a call that was issued has ended, or ends
 * on its stream. */
FCCL_API fcclResult_t fcclGroupStart(void);
FCCL_API fcclResult_t fcclGroupEnd(void);

#define FCCL_SIM_INFO_MAGIC 0xfcc1517du
#define FCCL_UNDEF_FLOAT (-1.0f)
/* Start from FCCL_SIM_INFO_INITIALIZER. */
typedef struct {
  size_t size;
  unsigned int magic;
  unsigned int version;
  float estimatedTime; /* microseconds */
} fcclSimInfo_t;

#define FCCL_SIM_INFO_INITIALIZER {sizeof(fcclSimInfo_t), FCCL_SIM_INFO_MAGIC, FCCL_VERSION_CODE, FCCL_UNDEF_FLOAT}

/* Ends the group like fcclGroupEnd, but runs none of its calls and makes none of its communicators, and says how long the calls
 * may take. The figure comes from assumed speeds of memory and network, not from measurements of this machine. */
FCCL_API fcclResult_t fcclGroupSimulateEnd(fcclSimInfo_t* simInfo);

/* ---- Host streams: queues that the process's one worker thread serves in order ------------------------------------------ */

typedef void (*fcclHostFunc_t)(void* userData);

FCCL_API fcclResult_t fcclStreamCreate(fcclStream_t* stream);
/* Waits until the stream is empty, then frees it. Returns what fcclStreamSynchronize would. */
FCCL_API fcclResult_t fcclStreamDestroy(fcclStream_t stream);
/* Returns the first failure of anything on `stream` so far; without a failure fcclSuccess if everything issued on it is done,
 * else fcclInProgress. A host function on the stream may ask how the operations before it ended. */
FCCL_API fcclResult_t fcclStreamQuery(fcclStream_t stream);
/* Waits until everything issued on `stream` so far is done. In the wait the calling thread itself serves the stream. */
FCCL_API fcclResult_t fcclStreamSynchronize(fcclStream_t stream);
/* Sets *position to the number of items issued on `stream` so far, 0 for NULL: a place in it for fcclStreamSynchronizeTo. */
FCCL_API fcclResult_t fcclStreamGetPosition(fcclStream_t stream, unsigned long long* position);
/* Waits like fcclStreamSynchronize, but only for calls issued up to `position`, and for at most timeoutMs milliseconds; a
 * negative timeoutMs means no limit. An item that this thread has begun by then is run to its end. Returns fcclInProgress if
 * they are not done by then, else the first failure of anything on the stream so far. Does not wait for later calls. */
FCCL_API fcclResult_t fcclStreamSynchronizeTo(fcclStream_t stream, unsigned long long position, int timeoutMs);
/* Runs fn(userData) once everything issued on `stream` before it is done, whether that succeeded or failed (ask fcclStreamQuery
 * inside): on the worker, or on a thread that waits for the stream. fn must not wait for a stream, issue a collective, end a
 * communicator (it may revoke one) or call CUDA: the GPU may wait for its thread. Its exception fails the stream. */
FCCL_API fcclResult_t fcclLaunchHostFunc(fcclStream_t stream, fcclHostFunc_t fn, void* userData);

/* ---- Counters ----------------------------------------------------------------------------------------------------------- */

typedef enum {
  fcclCollAllReduce = 0,
  fcclCollBroadcast = 1,
  fcclCollReduce = 2,
  fcclCollAllGather = 3,
  fcclCollReduceScatter = 4,
  fcclCollGather = 5,
  fcclCollScatter = 6,
  fcclCollBarrier = 7,
  fcclCollAlltoAll = 8,
  fcclCollAllGatherV = 9,
  fcclCollReduceScatterV = 10,
  fcclCollAlltoAllV = 11,
  fcclCollSend = 12,
  fcclCollRecv = 13,
  fcclNumColls = 14
} fcclColl_t;

/* Counts the calls that this rank has completed. bytes: the larger of sendbuff and recvbuff of each call, as in nccl-tests'
 * size column. seconds: time between start and end of the calls between hosts, and of those on one host that are too large for
 * the mailbox; calls that fit it, and calls of a communicator of one rank, are counted but not timed. */
typedef struct {
  unsigned long long calls;
  unsigned long long bytes;
  double seconds;
} fcclCounter_t;

FCCL_API fcclResult_t fcclCommGetCounter(fcclComm_t comm, fcclColl_t coll, fcclCounter_t* counter);
/* Sums over every communicator that this process has had, including destroyed ones. */
FCCL_API fcclResult_t fcclGetProcessCounter(fcclColl_t coll, fcclCounter_t* counter);
/* Says how long this rank took to make the communicator, step by step, and what the bootstrap of this process sent and opened
 * in that time: ranks that are threads of one process share those numbers. Before the call set `size` to
 * sizeof(fcclInitCost_t); the library writes that many bytes, and a later version may append fields. */
typedef struct {
  size_t size;
  double seconds;        /* from begin to end */
  double rosterSeconds;  /* until the rank knew all ranks */
  double segmentSeconds; /* until it had the shared memory of its host */
  double barrierSeconds; /* until all ranks of its host had it */
  double networkSeconds; /* between hosts: until its NICs were open */
  double hostsSeconds;   /* between hosts: until all hosts reached each other */
  unsigned long long sockets;
  unsigned long long messages;    /* sent */
  unsigned long long bytes;       /* sent */
  unsigned long long sharedBytes; /* memory that the ranks of its host share */
  int localRanks;                 /* ranks of this host, to divide the shared bytes by */
} fcclInitCost_t;

FCCL_API fcclResult_t fcclCommGetInitCost(fcclComm_t comm, fcclInitCost_t* cost);

/* ---- Metrics: docs/reference/metrics.md -----------------------------------------------------------------------------------
 * The program sets `size` of each structure to its sizeof before the call; the library writes that many bytes, and a later
 * version may append fields. Counts never fall and are never reset. */

#define FCCL_METRICS_BUCKETS 25
#define FCCL_METRICS_RAILS 16

/* Counts the calls of fcclCounter_t that took one path and are of one class of sizes. */
typedef struct {
  size_t size;
  unsigned long long calls;
  unsigned long long bytes; /* the larger buffer of each call */
  unsigned long long timed; /* calls that were timed: all, or one in 64 where reading a clock would cost more than the call */
  double seconds;           /* duration of the timed calls, from turn to end */
  unsigned long long buckets[FCCL_METRICS_BUCKETS]; /* i: calls of at most 2^i * 1.024 us; the last one: longer */
  unsigned long long copied; /* calls on CUDA memory: bytes that a processor has read, to copy or add them; others: 0 */
} fcclCallMetrics_t;

/* Names path i of calls, from 0 on: "mailbox", "ring", ..., "transfer" (sends and receives); NULL after the last. */
FCCL_API const char* fcclMetricsPathName(int path);
/* Returns the largest number of bytes in size class i, from 0 on; ~0 for the last class, 0 after it. */
FCCL_API unsigned long long fcclMetricsLargestSize(int sizeClass);
FCCL_API fcclResult_t fcclCommGetCallMetrics(fcclComm_t comm, fcclColl_t coll, int path, int sizeClass,
                                             fcclCallMetrics_t* metrics);
/* Sums over every communicator that this process has had, including destroyed ones. */
FCCL_API fcclResult_t fcclGetProcessCallMetrics(fcclColl_t coll, int path, int sizeClass, fcclCallMetrics_t* metrics);

/* Sets *seconds to the time that this rank's calls have waited for `peer` (below 1,024), in waits of a millisecond or more. */
FCCL_API fcclResult_t fcclCommGetWaited(fcclComm_t comm, int peer, double* seconds);

/* Describes the oldest call of this rank that has waited for a millisecond and has not ended. */
typedef struct {
  size_t size;
  fcclColl_t coll; /* fcclNumColls: no call waits */
  unsigned long long bytes;
  double seconds; /* since it was first seen to wait */
  int peer;       /* rank that it waits for now; -1: any rank */
} fcclCallInFlight_t;

FCCL_API fcclResult_t fcclCommGetCallInFlight(fcclComm_t comm, fcclCallInFlight_t* call);

/* Counts the traffic to other hosts that this process has given to one of its NICs, in the order of FCCL_NICS. */
typedef struct {
  size_t size;
  unsigned long long bytes;
  unsigned long long messages;
  unsigned long long retries; /* times that the NIC had no room and was asked again */
} fcclRailMetrics_t;

FCCL_API fcclResult_t fcclGetRailMetrics(int rail, fcclRailMetrics_t* metrics);

/* Writes all metrics of this process as Prometheus text; with `host` != 0 also those of the processes that share its host in a
 * communicator. *length: the length of the text, without its final zero; a text longer than capacity - 1 is cut. buffer may be
 * NULL for capacity 0. */
FCCL_API fcclResult_t fcclGetMetricsText(int host, char* buffer, size_t capacity, size_t* length);

/* Returns "AllReduce", "AllGather", ...; "?" for a bad value. */
FCCL_API const char* fcclCollName(fcclColl_t coll);

#ifdef __cplusplus
}
#endif

#endif
