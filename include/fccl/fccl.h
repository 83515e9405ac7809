/* The C interface of FCCL in NCCL's shape: a port from NCCL is `s/nccl/fccl/`, and CPU and CUDA memory share one set of calls.
 *
 * Conventions that hold for every call below:
 *   counts    are in elements of `datatype`, never in bytes;
 *   buffers   may have any alignment; NULL is refused unless the buffer's size is zero;
 *   stream    on a communicator of CPU memory is NULL (the call returns when the operation is done) or a host stream made by
 *             fcclStreamCreate (the call returns at once); on one of CUDA memory it is a cudaStream_t of its GPU, NULL and
 *             cudaStreamLegacy for the default stream, cudaStreamPerThread for the calling thread's. A stream of the other kind
 *             is refused, and so is one that records a CUDA graph;
 *   order     every rank issues the collectives of one communicator in the same order;
 *   threads   one thread at a time uses a communicator, except fcclCommRevoke, fcclCommGetAsyncError, fcclCommGetDeadRanks and
 *             fcclGetLastError, for any thread at any time, and fcclCommFinalize, fcclCommDestroy and fcclCommAbort, for any
 *             thread while another is inside a collective, a split or a finalize: they return when that call has. The last two
 *             free the handle, for all threads: whoever calls them sees to it that none is inside or about to enter another
 *             call, and that no other one frees it;
 *   errors    a call that is wrong on its face (NULL, bad type, bad root, not implemented, after finalize) starts nothing and
 *             leaves the communicator as it was. Every other error is the communicator's first failure: it is sticky, has a
 *             cause (fcclGetLastError), reaches every rank, in this call or, where the rank's part of this call was done, in
 *             the next, and leaves destroy, abort and fcclCommShrink as the only useful calls;
 *   deadline  no call blocks for ever: each wait ends by fcclTimeout after the communicator's timeout (fcclCommSetTimeout). */
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
/* Names one communicator to be: the address of its bootstrap, a generation and a 32-byte key. Whoever has it may join. */
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

/* Operators, for every type. The value of a result is fixed by docs/decisions/0002: sources are merged as a binary tree over
 * ranks, in float32 for 16-bit and 8-bit floats, and rounded to nearest: once within a host, between hosts once on each
 * host and once in the end (FCCL_WIRE_DTYPE); the same bits for every message size, alignment, path, processor and run,
 * whatever rounding or flushing of subnormals the caller has asked the processor for.
 *
 * Integers: sums and products wrap; an average is the wrapped sum divided by the number of ranks, truncated towards zero.
 *
 * Floats: results overflow to infinity, of fcclFloat8e4m3, which has none, to 448; minimum and maximum are NaN if a source is,
 * and of -0 and +0 the one of the lower rank; a result that is NaN has one bit pattern: positive, quiet, no payload (0x7f in
 * 8-bit floats).
 *
 * fcclBool: any byte but zero is true, results are 0 and 1; sum, max and bor are or, prod, min and band are and, bxor is
 * whether an odd number of ranks has true; average and pre-multiplied sum are refused with fcclInvalidArgument.
 *
 * fcclBand, fcclBor and fcclBxor, which nccl.h does not have, are and, or and exclusive or of the bits; for floats they are
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

/* Where the buffers of a communicator lie. Cuda: on the GPU that is current in the thread that makes the communicator, the
 * first if none is; device, managed and pinned memory are served, pageable memory and that of another GPU are refused. Auto,
 * the default: that of the parent in a split, else Cuda if the thread has a current GPU, which is asked without loading or
 * initialising CUDA, else Cpu. Ranks that differ in the kind get an error on all of them. */
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
/* A constant text for a result code; never NULL. */
FCCL_API const char* fcclGetErrorString(fcclResult_t result);
/* With a communicator: the cause of its first failure, or "". With NULL: the last error of a call on this thread. The text
 * stays valid until the communicator is destroyed or, for NULL, until this thread's next failing call. */
FCCL_API const char* fcclGetLastError(fcclComm_t comm);

/* ---- Communicators ------------------------------------------------------------------------------------------------------ */

/* Makes a unique id and opens the bootstrap socket behind it in this process, which must live until every rank has joined.
 * One id makes one communicator. FCCL_SOCKET_IFNAME chooses the interface, FCCL_SOCKET_PORTS the port. */
FCCL_API fcclResult_t fcclGetUniqueId(fcclUniqueId* id);
/* Joins as `rank` of `nranks`; returns when all ranks have joined, or an error on every one that has. Ranks are processes of
 * one host or of several, or threads of one process (each thread calls this). Errors: fcclInvalidUsage (a rank twice, versions
 * or settings differ), fcclRemoteError (a rank died while joining), fcclTimeout, fcclSystemError (no way to other hosts). */
FCCL_API fcclResult_t fcclCommInitRank(fcclComm_t* comm, int nranks, fcclUniqueId id, int rank);
/* With config->blocking = 0 returns fcclInProgress at once, or an error of its arguments, and a thread of the library joins.
 * fcclCommGetAsyncError then says fcclInProgress, and in the end fcclSuccess or the error, whose text fcclGetLastError(*comm)
 * has. Until then every other call on it is refused with fcclInvalidUsage, but fcclCommDestroy, fcclCommAbort and
 * fcclCommFinalize, which end the making within about a second; after an error these calls return the error, and the handle
 * must be destroyed. Such calls of one thread need no group.
 * The same of fcclCommSplit (with a color), fcclCommShrink and fcclCommGrow. Until theirs is made the parent takes no calls
 * that others must answer (fcclInvalidUsage), and to destroy or abort it waits for the making. Whoever ends a split, or a grow
 * for which a rank of the parent is still awaited, ends the parent, too, by fcclAborted. */
FCCL_API fcclResult_t fcclCommInitRankConfig(fcclComm_t* comm, int nranks, fcclUniqueId id, int rank, fcclConfig_t* config);
/* The same by `nId` (>= 1) ids, each of its own fcclGetUniqueId, which all ranks give in one order. All ranks meet by the first
 * one, so its process must live until they have; the threads that serve the others are released by rank 0. config may be NULL.
 * Errors: as of fcclCommInitRank; fcclInvalidArgument also for any id that is none. */
FCCL_API fcclResult_t fcclCommInitRankScalable(fcclComm_t* newcomm, int nranks, int myrank, int nId, fcclUniqueId* commIds,
                                               fcclConfig_t* config);
/* Makes a communicator of `ndev` ranks, all of this process: comms[r] is the handle of rank r. Its threads live as long as the
 * call. If the calling thread has a current GPU, rank r is of CUDA memory, on GPU devlist[r], or r where devlist is NULL: a GPU
 * twice is fcclInvalidUsage, one that there is not fcclInvalidArgument. Else the ranks are of CPU memory and devlist is not
 * read. One thread may use all the handles, with groups for its calls. */
FCCL_API fcclResult_t fcclCommInitAll(fcclComm_t* comms, int ndev, const int* devlist);

#define FCCL_SPLIT_NOCOLOR (-1)
/* Collective over `comm`: ranks of equal `color` (>= 0) make a new communicator, ordered by (key, rank); FCCL_SPLIT_NOCOLOR
 * gets *newcomm = NULL. `config` may be NULL: then the parent's timeouts and memory kind. */
FCCL_API fcclResult_t fcclCommSplit(fcclComm_t comm, int color, int key, fcclComm_t* newcomm, fcclConfig_t* config);

#define FCCL_SHRINK_DEFAULT 0
#define FCCL_SHRINK_ABORT 1
/* Collective over the ranks that go on, and called by these only: all but the `excludeRanksCount` (>= 0) ranks of
 * `excludeRanksList` make a new communicator, in their order. All give the same list, each rank once, in any order, and not
 * themselves. FCCL_SHRINK_DEFAULT: `comm` is healthy; waits until this rank's outstanding operations are done, and `comm` goes
 * on to work. FCCL_SHRINK_ABORT: for a communicator in any state but finalized, such as after a failure; ends its outstanding
 * operations first, on all ranks, by fcclAborted unless it has failed already. `comm` must be destroyed as ever, before the new
 * one or after it. `config` may be NULL: then the parent's timeouts and memory kind. Each wait ends at initTimeoutMs.
 * Errors: fcclInvalidArgument (a rank out of range, twice, or the caller itself), fcclInvalidUsage (survivors that give other
 * lists: on all of them that have come; finalized), fcclRemoteError (a survivor died or left), fcclTimeout (one does not come;
 * on several hosts also lists that differ in the first rank that goes on, or between ranks of one host only), the first failure
 * of `comm` (FCCL_SHRINK_DEFAULT). An error leaves *newcomm = NULL, and fcclCommShrink may be called again.
 * Two shrinks with different lists may follow each other at once. On several hosts, where the first rank that goes on is the
 * same in both, a rank of the second alone must not call before that first rank has made the first. */
FCCL_API fcclResult_t fcclCommShrink(fcclComm_t comm, int* excludeRanksList, int excludeRanksCount, fcclComm_t* newcomm,
                                     fcclConfig_t* config, int shrinkFlags);
/* The ranks whose processes ended without finalizing or destroying `comm`, in ascending order; such as fcclCommShrink takes.
 * `*count` is the room in `ranks`, then how many are dead; as many are written as there is room for. With ranks = NULL only
 * counts. Does not wait; for any thread, also after a failure. Ranks of other hosts: as far as this host has heard, which is no
 * more of a host once its first rank has died, and of other hosts once rank 0 has: what else died there, or that a whole host
 * is gone, the caller must know. In a fork fcclInvalidUsage. */
FCCL_API fcclResult_t fcclCommGetDeadRanks(fcclComm_t comm, int* ranks, int* count);

/* Makes the unique id by which new ranks come to fcclCommGrow of `comm`, and opens the bootstrap socket behind it in this
 * process. One rank calls it, and hands the id to the new ranks by a way of its own. Another one is refused with
 * fcclInvalidUsage until a grow has been by this one; without one the id ends with `comm`. */
FCCL_API fcclResult_t fcclCommGetUniqueId(fcclComm_t comm, fcclUniqueId* uniqueId);
/* Collective over all ranks of `comm` and new ones: a communicator of `nRanks` ranks, more than `comm` has. Ranks of `comm`
 * give `comm` and rank = -1 and keep their numbers; uniqueId may be NULL, also of the rank that made it, since they learn it
 * from each other. New ranks give comm = NULL, uniqueId and their rank; together they take the numbers from the size of `comm`
 * to nRanks - 1. In any order: who comes early waits. The calls of `comm` must be the same on all its ranks before, as for
 * fcclCommSplit, and `comm` goes on to work until it is destroyed, before the new one or after it. `config` may be NULL: then
 * the parent's timeouts and memory kind, and those of the environment for a new rank. Ranks of `comm` wait for each other until
 * its timeout, then all until initTimeoutMs. Errors: as of fcclCommInitRank, on all ranks that have come (a number twice, other
 * nRanks, a new rank that does not come, is missing or has died); fcclInvalidArgument (nRanks is not larger; no comm and no
 * id); fcclInvalidUsage (no rank of `comm` has an id, or two have different ones). An error leaves *newcomm = NULL and `comm`
 * good, unless one of its own ranks has died or did not call. The id is spent when all ranks of `comm` have found it. */
FCCL_API fcclResult_t fcclCommGrow(fcclComm_t comm, int nRanks, const fcclUniqueId* uniqueId, int rank, fcclComm_t* newcomm,
                                   fcclConfig_t* config);

/* Ends this rank's part: refuses calls from now on, waits until every operation it has issued is done, also in calls that other
 * threads are in, and tells the peers that it has left. Only destroy may follow; to wait without leaving, use
 * fcclStreamSynchronize. Does not need the peers to call it. In a fork fcclInvalidUsage. */
FCCL_API fcclResult_t fcclCommFinalize(fcclComm_t comm);
/* Finalizes, tells the peers that this rank has left and frees the handle. Never waits for a peer beyond the outstanding
 * operations, those of calls that other threads are in too, each wait of which has its deadline; a peer that still expects a
 * call of this rank gets an error that says so. On CUDA memory it does not wait for calls that the GPU has not come to, nor
 * longer than 2 s for others: what is left fails on every rank with fcclAborted, so synchronize the streams, or finalize,
 * before. In a fork it frees the copy and tells nobody. */
FCCL_API fcclResult_t fcclCommDestroy(fcclComm_t comm);
/* Fails every outstanding and every later operation of every rank with fcclAborted as cause, and returns at once. The handle
 * stays good for fcclCommDestroy. Any thread may call it while another is inside a collective of `comm`. `flags` must be 0. */
FCCL_API fcclResult_t fcclCommRevoke(fcclComm_t comm, int flags);
/* Revokes, and frees the handle once the calls of this rank that were inside are out: no other thread may be about to enter
 * one. In a fork it frees the copy and revokes nothing. */
FCCL_API fcclResult_t fcclCommAbort(fcclComm_t comm);
/* The first failure of `comm` so far, fcclSuccess if none. Looks for dead peers, so it also serves to ask while idle. */
FCCL_API fcclResult_t fcclCommGetAsyncError(fcclComm_t comm, fcclResult_t* asyncError);
/* Sets the deadline of the waits of operations issued from now on, milliseconds > 0. */
FCCL_API fcclResult_t fcclCommSetTimeout(fcclComm_t comm, int timeoutMs);

FCCL_API fcclResult_t fcclCommCount(const fcclComm_t comm, int* count);
FCCL_API fcclResult_t fcclCommUserRank(const fcclComm_t comm, int* rank);
/* How the ranks are spread over hosts; the same on all of them. */
typedef struct {
  int hosts;
  int mostRanks;   /* of one host */
  int fewestRanks; /* of one host */
  int rails;       /* NICs of each host that what goes between hosts is spread over, the fewest where hosts differ; 0 on one */
} fcclHosts_t;

FCCL_API fcclResult_t fcclCommGetHosts(const fcclComm_t comm, fcclHosts_t* hosts);
/* The number of its GPU in this process; fcclInvalidUsage on CPU communicators. */
FCCL_API fcclResult_t fcclCommCuDevice(const fcclComm_t comm, int* device);

/* ---- Memory that peers map ---------------------------------------------------------------------------------------------- */

/* *ptr = `size` bytes of CPU memory that the other ranks of this host read in place: an allocation out of one file per process
 * (its arena), which each of them maps once. It is memory like any other, for every call and every communicator, made before it
 * or after. Calls on one host that move more than the mailbox (FCCL_MAILBOX_BYTES) copy once where they copy twice otherwise,
 * if what peers read of every rank is in such memory: sendbuff; of AllReduce recvbuff, too, if it is to copy least. Where it is
 * not, or a peer's cannot be mapped, calls work as with other memory; results are the same bits. Sends and receives,
 * calls between hosts and on CUDA memory gain nothing.
 *   cost     addresses are reserved at the first allocation (FCCL_ARENA_BYTES); memory comes as it is first written, on the
 *            node of the thread that writes, and counts for the process and its control group. Up to 256 MiB of what is freed
 *            are kept for the next allocations. What does not fit is refused with fcclSystemError, before the kernel ends
 *            processes for it. At a multiple of 64 bytes, of a page if it is one or more; not cleared; left out of core dumps.
 *   forks    a forked child reads what is there, and what it writes stays its own: its parent's memory is never changed. What
 *            the parent writes later it may see or not. Its own allocations are its own. A child that a program makes by
 *            clone() or the like without fork()'s handlers shares the pages: it must not write to them.
 *   threads  any, at any time.
 * Size 0 gives NULL, and so does what is refused. */
FCCL_API fcclResult_t fcclMemAlloc(void** ptr, size_t size);
/* Frees it; nothing happens for NULL, and in a fork for what is its parent's. fcclInvalidArgument for what fcclMemAlloc did not
 * give. No communicator needs it any more when the calls that use it are done; it may be freed before them or after. */
FCCL_API fcclResult_t fcclMemFree(void* ptr);
/* What fcclMemAlloc has given this process, in bytes; all 0 before its first allocation, and in a fork before its own. Before
 * the call set `size` to sizeof(fcclMemUsage_t); as much is written, and a later version may have more to tell. */
typedef struct {
  size_t size;
  size_t allocated;     /* now */
  size_t mostAllocated; /* that ever were at once */
  size_t filled;        /* of memory that it takes, with what is kept of freed allocations */
  size_t reserved;      /* addresses */
} fcclMemUsage_t;

FCCL_API fcclResult_t fcclMemGetUsage(fcclMemUsage_t* usage);
/* For ports: checks its arguments, and gives a handle until fcclCommDeregister or the end of `comm`. It changes nothing: memory
 * of fcclMemAlloc needs no registration, and other memory is not mapped by it. */
FCCL_API fcclResult_t fcclCommRegister(const fcclComm_t comm, void* buff, size_t size, void** handle);
FCCL_API fcclResult_t fcclCommDeregister(const fcclComm_t comm, void* handle);

/* ---- Operators ---------------------------------------------------------------------------------------------------------- */

/* Makes an operator that multiplies this rank's input by *scalar (of `datatype`) and then sums. Ranks may use different scalars
 * and must create and destroy operators in the same order. Use it with `comm` and `datatype` only. fcclScalarDevice is for
 * communicators of CUDA memory: the scalar lies where their buffers may, and must stay there until the operations have run. */
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
/* Returns, or lets the stream go on, when every rank has called it. */
FCCL_API fcclResult_t fcclBarrier(fcclComm_t comm, fcclStream_t stream);

/* ---- Reductions into another type ---------------------------------------------------------------------------------------- */
/* Like fcclAllReduce, fcclReduce and fcclReduceScatter, whose elements are of `sendtype` in sendbuff and of `recvtype` in
 * recvbuff: float32 for float16, bfloat16, float8e4m3 or float8e5m2. The result is what the plain call rounds to `sendtype`
 * at its end: nothing is rounded on the way, between hosts neither, whatever FCCL_WIRE_DTYPE says. With recvtype == sendtype
 * each is the plain call; other pairs are refused with fcclInvalidArgument. Both types must be equal on all ranks. An operator
 * of fcclRedOpCreatePreMulSum is one of `sendtype`. Not in place: where recvbuff is used, it may not overlap
 * sendbuff. */
FCCL_API fcclResult_t fcclAllReduceTyped(const void* sendbuff, void* recvbuff, size_t count, fcclDataType_t sendtype,
                                         fcclDataType_t recvtype, fcclRedOp_t op, fcclComm_t comm, fcclStream_t stream);
FCCL_API fcclResult_t fcclReduceTyped(const void* sendbuff, void* recvbuff, size_t count, fcclDataType_t sendtype,
                                      fcclDataType_t recvtype, fcclRedOp_t op, int root, fcclComm_t comm, fcclStream_t stream);
FCCL_API fcclResult_t fcclReduceScatterTyped(const void* sendbuff, void* recvbuff, size_t recvcount, fcclDataType_t sendtype,
                                             fcclDataType_t recvtype, fcclRedOp_t op, fcclComm_t comm, fcclStream_t stream);

/* ---- Collectives of uneven counts ---------------------------------------------------------------------------------------- */
/* Each block has a count of its own, which may be zero. Arrays have n entries, in elements, and are read before the call
 * returns. displs, sdispls and rdispls say where each block begins; NULL is one behind the other, in the order of ranks. Blocks
 * of a recvbuff may not overlap, and what lies between them is left alone. A buffer may be NULL if all its counts are zero. */

/* Block r of recvbuff, recvcounts[r] at displs[r], = sendbuff[sendcount] of rank r. recvcounts must be equal on all ranks, and
 * sendcount == recvcounts[rank]; displs may differ. In place: sendbuff == recvbuff + displs[rank]. */
FCCL_API fcclResult_t fcclAllGatherV(const void* sendbuff, size_t sendcount, void* recvbuff, const size_t* recvcounts,
                                     const size_t* displs, fcclDataType_t datatype, fcclComm_t comm, fcclStream_t stream);
/* recvbuff[recvcounts[r]] on rank r = op over ranks of block r of sendbuff, whose blocks lie one behind the other. recvcounts
 * must be equal on all ranks. In place: recvbuff == sendbuff + the sum of recvcounts of all ranks below. */
FCCL_API fcclResult_t fcclReduceScatterV(const void* sendbuff, void* recvbuff, const size_t* recvcounts,
                                         fcclDataType_t datatype, fcclRedOp_t op, fcclComm_t comm, fcclStream_t stream);
/* Block i of recvbuff on rank r, recvcounts[i] at rdispls[i], = block r of rank i's sendbuff, sendcounts[r] at sdispls[r]. So
 * sendcounts[r] on rank i must be equal to recvcounts[i] on rank r; where they differ, both ranks fail with fcclInvalidUsage
 * before anything is written. Blocks of a sendbuff may overlap. Not in place: recvbuff != sendbuff. */
FCCL_API fcclResult_t fcclAlltoAllV(const void* sendbuff, const size_t* sendcounts, const size_t* sdispls, void* recvbuff,
                                    const size_t* recvcounts, const size_t* rdispls, fcclDataType_t datatype, fcclComm_t comm,
                                    fcclStream_t stream);

/* ---- Sends and receives -------------------------------------------------------------------------------------------------- */
/* One rank sends, another one (or the same) receives; the rest take no part. Sends and receives have an order of their own:
 * they never wait for a collective, nor a collective for them, whatever streams they are on. What rank a sends to rank b with
 * one tag arrives in the order in which a issued it, and receives take it in the order in which b issued them; other peers and
 * other tags may pass. Count and type of a send and its receive must be equal, else both ranks fail with fcclInvalidUsage and a
 * text that shows both.
 *
 * A send of up to FCCL_MAILBOX_BYTES (4096; less among more than 32 ranks of a host) is done when its bytes are on their way,
 * as long as fewer than 8 such sends to the peer have not been received. Any other one is done when its receive has taken it.
 * So two ranks that both send much and then receive wait for each other, until the deadline names both: put the four calls
 * between fcclGroupStart and fcclGroupEnd, or on two streams. A rank may send to itself, likewise.
 *
 * On CUDA memory sends, receives and fcclGroupEnd, as collectives of uneven counts, wait on the calling thread, where NCCL
 * returns at once: until the stream has come to the call and then until it is done as above, in a group until all its calls
 * are. So two streams are no way around a group there, and what the stream or the peer waits for must not be issued behind the
 * call by the same thread. An order of sends and receives in which each meets its counterpart, each rank having done its
 * earlier ones, is as safe as in NCCL. */

/* sendbuff[count] to rank `peer`. */
FCCL_API fcclResult_t fcclSend(const void* sendbuff, size_t count, fcclDataType_t datatype, int peer, fcclComm_t comm,
                               fcclStream_t stream);
/* recvbuff[count] from rank `peer`. */
FCCL_API fcclResult_t fcclRecv(void* recvbuff, size_t count, fcclDataType_t datatype, int peer, fcclComm_t comm,
                               fcclStream_t stream);

#define FCCL_ANY_SOURCE (-1)
/* The same with a tag >= 0, for MPI's and torch's users: a receive takes the oldest send with its tag. What fcclSend sends is
 * for fcclRecv alone, and what has a tag for fcclRecvTagged. */
FCCL_API fcclResult_t fcclSendTagged(const void* sendbuff, size_t count, fcclDataType_t datatype, int peer, int tag,
                                     fcclComm_t comm, fcclStream_t stream);
/* `peer` may be FCCL_ANY_SOURCE: whoever's comes first. *source becomes the sender's rank by the time that the receive is done,
 * and must live until then; it may be NULL. */
FCCL_API fcclResult_t fcclRecvTagged(void* recvbuff, size_t count, fcclDataType_t datatype, int peer, int tag, int* source,
                                     fcclComm_t comm, fcclStream_t stream);

/* ---- Groups -------------------------------------------------------------------------------------------------------------- */
/* Between fcclGroupStart and fcclGroupEnd of one thread, collectives, sends and receives are checked, but not issued; the end
 * issues all of them, in order, before it waits for any. So within a group any order of sends and receives is safe, however
 * long they are, and one thread may hold several ranks: their communicators' calls get on together. Those on NULL streams have
 * ended when fcclGroupEnd returns; those of one host stream are one item of it, behind what the stream had before. On CUDA
 * memory fcclGroupEnd returns when the peers have met, and the results are on their way to their streams.
 * fcclCommInitRank, fcclCommInitRankConfig, fcclCommSplit, fcclCommShrink and fcclCommGrow in a group run at its end, all at
 * the same time and before the other calls, and set their handles then; the last three refuse blocking = 0 there. On CUDA
 * memory a collective stands in a group on all ranks or on none. Every other call runs at once. Groups nest: the outermost end
 * counts.
 *
 * A call that fails in a group returns its error at once, and fcclGroupEnd then issues nothing and returns it, too. After any
 * error of fcclGroupEnd no group is open, and none of its calls is half issued: what was issued has ended, or ends on its
 * stream. */
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
/* The first failure of anything on `stream` so far; without one fcclSuccess if everything issued on it is done, else
 * fcclInProgress. A host function on the stream may ask how the operations before it ended. */
FCCL_API fcclResult_t fcclStreamQuery(fcclStream_t stream);
/* Waits until everything issued on `stream` so far is done. The calling thread serves the stream meanwhile. */
FCCL_API fcclResult_t fcclStreamSynchronize(fcclStream_t stream);
/* How many calls, groups and host functions have been issued on `stream` so far: a place in it for fcclStreamSynchronizeTo. 0
 * for NULL. */
FCCL_API fcclResult_t fcclStreamGetPosition(fcclStream_t stream, unsigned long long* position);
/* The same as fcclStreamSynchronize for what was issued up to `position`, for at most timeoutMs milliseconds; negative: for as
 * long as that takes, and to the end of what this thread has begun by then. fcclInProgress where it is not done then, else the
 * first failure of anything on the stream so far. What was issued later is not waited for. */
FCCL_API fcclResult_t fcclStreamSynchronizeTo(fcclStream_t stream, unsigned long long position, int timeoutMs);
/* Runs fn(userData) once everything issued on `stream` before it is done, whether that succeeded or failed (ask
 * fcclStreamQuery inside): on the worker, or on a thread that waits for the stream. It must not wait for a stream, issue a
 * collective or end a communicator; fcclCommRevoke it may. It must not call CUDA: its thread may be what the GPU waits for.
 * What it throws becomes the stream's failure, fcclInvalidUsage.
 */
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

/* What this rank has completed. bytes: the larger of sendbuff and recvbuff of each call, as nccl-tests' size column. seconds:
 * time between start and end of the calls between hosts, and of those on one host that are too large for the mailbox; those
 * small enough for it, and those of a communicator of one rank, are counted but not timed. */
typedef struct {
  unsigned long long calls;
  unsigned long long bytes;
  double seconds;
} fcclCounter_t;

FCCL_API fcclResult_t fcclCommGetCounter(fcclComm_t comm, fcclColl_t coll, fcclCounter_t* counter);
/* The sum over every communicator this process has had, destroyed ones too. */
FCCL_API fcclResult_t fcclGetProcessCounter(fcclColl_t coll, fcclCounter_t* counter);
/* What it took this rank to make the communicator, step by step, and the bootstrap of this process meanwhile: those of ranks
 * that are its threads cannot be told apart. Before the call set `size` to sizeof(fcclInitCost_t); as much is written, and a
 * later version may have more to tell. */
typedef struct {
  size_t size;
  double seconds;        /* in all */
  double rosterSeconds;  /* until it knew all ranks */
  double segmentSeconds; /* until it had the memory of its host */
  double barrierSeconds; /* until all ranks of its host had */
  double networkSeconds; /* between hosts: until its NICs were open */
  double hostsSeconds;   /* between hosts: until all hosts reached each other */
  unsigned long long sockets;
  unsigned long long messages;    /* sent */
  unsigned long long bytes;       /* sent */
  unsigned long long sharedBytes; /* of memory that the ranks of its host share */
  int localRanks;                 /* by which they are to be divided */
} fcclInitCost_t;

FCCL_API fcclResult_t fcclCommGetInitCost(fcclComm_t comm, fcclInitCost_t* cost);

/* ---- Metrics: docs/metrics.md ---------------------------------------------------------------------------------------------
 * Every structure says its `size`, which the program sets to sizeof before the call; as much is written, and a later version
 * may have more to tell. Counts never fall and are never reset. */

#define FCCL_METRICS_BUCKETS 25
#define FCCL_METRICS_RAILS 16

/* The calls of fcclCounter_t that went one path and are of one class of sizes. */
typedef struct {
  size_t size;
  unsigned long long calls;
  unsigned long long bytes; /* of the larger buffer of each */
  unsigned long long timed; /* of the calls: all, or one in 64 where a clock would cost more than the call */
  double seconds;           /* of the timed ones, from their turn to their end */
  unsigned long long buckets[FCCL_METRICS_BUCKETS]; /* i: of those, at most 2^i * 1.024 us and no less; the last one: longer */
} fcclCallMetrics_t;

/* Path i of calls, from 0 on: "mailbox", "ring", ..., "transfer" of sends and receives; NULL behind the last one. */
FCCL_API const char* fcclMetricsPathName(int path);
/* The most bytes of a call of class i of sizes, from 0 on; of the last one ~0, 0 behind it. */
FCCL_API unsigned long long fcclMetricsLargestSize(int sizeClass);
FCCL_API fcclResult_t fcclCommGetCallMetrics(fcclComm_t comm, fcclColl_t coll, int path, int sizeClass,
                                             fcclCallMetrics_t* metrics);
/* The sum over every communicator this process has had, destroyed ones too. */
FCCL_API fcclResult_t fcclGetProcessCallMetrics(fcclColl_t coll, int path, int sizeClass, fcclCallMetrics_t* metrics);

/* Seconds that calls of this rank have waited for another one, of the first 1,024, in waits of a millisecond or more. */
FCCL_API fcclResult_t fcclCommGetWaited(fcclComm_t comm, int peer, double* seconds);

/* The oldest call of this rank that has waited for a millisecond and has not ended. */
typedef struct {
  size_t size;
  fcclColl_t coll; /* fcclNumColls: there is none */
  unsigned long long bytes;
  double seconds; /* since it was first seen to wait */
  int peer;       /* for whom it waits now; -1: any rank */
} fcclCallInFlight_t;

FCCL_API fcclResult_t fcclCommGetCallInFlight(fcclComm_t comm, fcclCallInFlight_t* call);

/* What this process has given to one of its NICs, in the order of FCCL_NICS, for other hosts. */
typedef struct {
  size_t size;
  unsigned long long bytes;
  unsigned long long messages;
  unsigned long long retries; /* how often the NIC had no room and was asked again */
} fcclRailMetrics_t;

FCCL_API fcclResult_t fcclGetRailMetrics(int rail, fcclRailMetrics_t* metrics);

/* All of this process as Prometheus text, with `host` != 0 also of the processes that share its host in a communicator.
 * *length: that of the text, without its final zero; a text that is longer than capacity - 1 is cut. buffer may be NULL for
 * capacity 0. */
FCCL_API fcclResult_t fcclGetMetricsText(int host, char* buffer, size_t capacity, size_t* length);

/* "AllReduce", "AllGather", ...; "?" for a bad value. */
FCCL_API const char* fcclCollName(fcclColl_t coll);

#ifdef __cplusplus
}
#endif

#endif
