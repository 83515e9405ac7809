// The C++ interface of FCCL: ownership, spans and results, header-only on top of fccl.h.
//
//   auto communicator = fccl::Communicator::join(id, rank, ranks);
//   if (!communicator) return report(communicator.error().message);
//   std::vector<float> gradients(n), mean(n);
//   if (auto done = communicator->all_reduce(gradients, mean, fccl::avg); !done) return report(done.error().message);
//
// Nothing here throws on its own account: calls that can fail return a Result. fccl.h says what each collective does, which
// buffers may overlap and what an error leaves behind; this header adds that sizes and datatypes of buffers are checked first.
#pragma once

#if __cplusplus < 202002L
#error "fccl.hpp needs C++20; fccl.h serves C and older C++"
#endif

#include <fccl/fccl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fccl/operators.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace fccl {

// ---- Results ------------------------------------------------------------------------------------

// Says why a call failed: the code of the C interface and a sentence for people.
struct Error {
  fcclResult_t code = fcclInternalError;
  std::string message;
};

// Refuses a call before it reaches the C interface. docs/reference/errors.md explains the code.
inline Error invalid_argument(const std::string& message) { return {fcclInvalidArgument, message + " [FCCL-4000]"}; }

// A value, or the error that came in its place. A plain value: it owns no handle and has no thread rules. Reading a value or an
// error that is absent is a defect of the program and ends it with the message.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return state_.index() == 0; }
  T& operator*() & { return held<0>(*this); }
  const T& operator*() const& { return held<0>(*this); }
  T&& operator*() && { return std::move(held<0>(*this)); }
  T* operator->() { return &held<0>(*this); }
  const T* operator->() const { return &held<0>(*this); }
  const Error& error() const { return held<1>(*this); }

 private:
  template <std::size_t alternative, class Self>
  static auto& held(Self& self) {
    if (auto* found = std::get_if<alternative>(&self.state_)) return *found;
    const Error* error = std::get_if<1>(&self.state_);
    std::fprintf(stderr, "fccl: %s\n", error ? error->message.c_str() : "the error of a successful result was read");
    std::abort();
  }

  std::variant<T, Error> state_;
};

// Success or an error.
template <>
class [[nodiscard]] Result<void> : public Result<std::monostate> {
 public:
  Result() : Result<std::monostate>(std::monostate{}) {}
  Result(Error error) : Result<std::monostate>(std::move(error)) {}
};

// Makes the Result of a call of the C interface that this thread has just made.
inline Result<void> result_of(fcclResult_t code) {
  if (code == fcclSuccess) return {};
  const char* cause = fcclGetLastError(nullptr);
  return Error{code, cause && *cause ? cause : fcclGetErrorString(code)};
}

// ---- Buffers ------------------------------------------------------------------------------------

// 16-bit and 8-bit floats as bits, for programs that have no class of their own for them.
template <class Bits, fcclDataType_t datatype>
struct FloatBits {
  Bits bits;
};
using Float16 = FloatBits<std::uint16_t, fcclFloat16>;
using Bfloat16 = FloatBits<std::uint16_t, fcclBfloat16>;
using Float8e4m3 = FloatBits<std::uint8_t, fcclFloat8e4m3>;
using Float8e5m2 = FloatBits<std::uint8_t, fcclFloat8e5m2>;

// The fcclDataType_t of an element type. Specialise it for your own element classes of the same representation.
template <class T>
struct Datatype {};
template <std::integral T>
  requires(sizeof(T) <= 8)
struct Datatype<T> : std::integral_constant<fcclDataType_t, sizeof(T) == 1   ? (std::is_signed_v<T> ? fcclInt8 : fcclUint8)
                                                            : sizeof(T) == 2 ? (std::is_signed_v<T> ? fcclInt16 : fcclUint16)
                                                            : sizeof(T) == 4 ? (std::is_signed_v<T> ? fcclInt32 : fcclUint32)
                                                                             : (std::is_signed_v<T> ? fcclInt64 : fcclUint64)> {
};
template <>
struct Datatype<bool> : std::integral_constant<fcclDataType_t, fcclBool> {};
template <>
struct Datatype<std::byte> : std::integral_constant<fcclDataType_t, fcclUint8> {};
template <class Bits, fcclDataType_t datatype>
struct Datatype<FloatBits<Bits, datatype>> : std::integral_constant<fcclDataType_t, datatype> {};
template <>
struct Datatype<float> : std::integral_constant<fcclDataType_t, fcclFloat32> {};
template <>
struct Datatype<double> : std::integral_constant<fcclDataType_t, fcclFloat64> {};

inline const char* datatype_name(fcclDataType_t datatype) {
  static constexpr const char* kNames[] = {"int8",       "uint8",      "int32",   "uint32",  "int64",
                                           "uint64",     "float16",    "float32", "float64", "bfloat16",
                                           "float8e4m3", "float8e5m2", "int16",   "uint16",  "bool"};
  return datatype >= 0 && datatype < fcclNumTypes ? kNames[datatype] : "?";
}

// Elements that lie one after another and that FCCL can move: std::vector, std::array, std::span, a C array ...
template <class R>
concept ElementRange = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
                       requires { Datatype<std::ranges::range_value_t<R>>::value; };

// A view of `count` elements, not owned; the memory must live until the collective is done. It is made from any range of
// elements, or from a pointer where the datatype is known only at run time. {} means no memory.
template <class Pointer>
struct Buffer {
  static const char* name() { return std::is_same_v<Pointer, void*> ? "recv" : "send"; }

  Buffer() = default;
  Buffer(Pointer data, std::size_t count, fcclDataType_t datatype) : data(data), count(count), datatype(datatype) {}
  template <ElementRange R>
    requires std::convertible_to<decltype(std::ranges::data(std::declval<R&>())), Pointer>
  Buffer(R&& range)
      : Buffer(std::ranges::data(range), std::ranges::size(range), Datatype<std::ranges::range_value_t<R>>::value) {}

  Pointer data = nullptr;
  std::size_t count = 0;
  fcclDataType_t datatype = fcclUint8;
};
using Source = Buffer<const void*>;  // memory that a collective reads
using Target = Buffer<void*>;        // memory that it writes

// One number per rank, in elements; FCCL reads it before the call returns.
using Counts = std::span<const std::size_t>;

// A buffer with a block per rank, each with a count of its own; without displacements the blocks follow one another.
template <class B>
struct Blocks {
  B buffer;
  Counts counts;
  Counts displacements = {};
};

// Converts to the C interface's milliseconds: a time that its int cannot hold becomes the longest that it can.
inline int milliseconds_of(std::chrono::milliseconds time) {
  return static_cast<int>(std::clamp<std::chrono::milliseconds::rep>(time.count(), INT_MIN + 1, INT_MAX));
}

// ---- Streams ------------------------------------------------------------------------------------

// A queue of collectives that run in order while the caller goes on. Move only; the destructor waits until it is empty. Any
// thread may call it, one at a time. synchronize and done report the first failure of what ran on it.
class Stream {
 public:
  static Result<Stream> create() {
    fcclStream_t handle = nullptr;
    if (auto created = result_of(fcclStreamCreate(&handle)); !created) return created.error();
    return Stream(handle);
  }

  // Waits until everything issued so far is done; returns its first failure, if any.
  Result<void> synchronize() { return result_of(fcclStreamSynchronize(handle())); }
  // position counts what has been issued so far, and synchronize waits for that alone; false if it is not done within
  // `timeout`.
  unsigned long long position() const {
    unsigned long long issued = 0;
    static_cast<void>(fcclStreamGetPosition(handle(), &issued));
    return issued;
  }
  Result<bool> synchronize_to(unsigned long long position, std::chrono::milliseconds timeout) {
    const fcclResult_t code = fcclStreamSynchronizeTo(handle(), position, milliseconds_of(timeout));
    if (code != fcclSuccess && code != fcclInProgress) return result_of(code).error();
    return code == fcclSuccess;
  }
  // True if everything issued so far is done.
  Result<bool> done() {
    const fcclResult_t code = fcclStreamQuery(handle());
    if (code == fcclInProgress) return false;
    if (auto queried = result_of(code); !queried) return queried.error();
    return true;
  }
  // Runs `function` after everything issued so far, on the worker thread or on one that waits for the stream; it may not throw,
  // wait for a stream or issue a call.
  Result<void> launch(std::function<void()> function) {
    auto owned = std::make_unique<std::function<void()>>(std::move(function));
    const auto run = [](void* data) noexcept {
      (*std::unique_ptr<std::function<void()>>(static_cast<std::function<void()>*>(data)))();
    };
    auto launched = result_of(fcclLaunchHostFunc(handle(), run, owned.get()));
    if (launched) static_cast<void>(owned.release());
    return launched;
  }

  fcclStream_t handle() const { return handle_.get(); }

 private:
  struct Destroy {
    void operator()(void* stream) const { static_cast<void>(fcclStreamDestroy(stream)); }
  };
  explicit Stream(fcclStream_t handle) : handle_(handle) {}

  std::unique_ptr<void, Destroy> handle_;
};

// Says where a collective runs: by default on the caller's thread, which returns when it is done; otherwise on a stream, which
// it does not own.
class StreamRef {
 public:
  StreamRef() = default;
  StreamRef(const Stream& stream) : handle_(stream.handle()) {}
  explicit StreamRef(fcclStream_t handle) : handle_(handle) {}
  fcclStream_t handle() const { return handle_; }

 private:
  fcclStream_t handle_ = nullptr;
};

// ---- Communicators ------------------------------------------------------------------------------

// Names one communicator that is to be made; plain bytes, so that MPI_Bcast, a file or a store can carry it to the other ranks.
using UniqueId = fcclUniqueId;

inline Result<UniqueId> unique_id() {
  UniqueId id{};
  if (auto made = result_of(fcclGetUniqueId(&id)); !made) return made.error();
  return id;
}

// Settings of a communicator at its creation; FCCL_TIMEOUT, FCCL_INIT_TIMEOUT and the memory of the process decide the ones
// left out.
struct Options {
  std::optional<std::chrono::milliseconds> timeout = {};
  std::optional<std::chrono::milliseconds> init_timeout = {};
  fcclMemoryKind_t memory = fcclMemoryAuto;
  std::string name = {};

  fcclConfig_t config() const {
    fcclConfig_t config = FCCL_CONFIG_INITIALIZER;
    config.memoryKind = memory;
    if (timeout) config.timeoutMs = milliseconds_of(*timeout);
    if (init_timeout) config.initTimeoutMs = milliseconds_of(*init_timeout);
    if (!name.empty()) config.commName = name.c_str();
    return config;
  }
};

// One rank of a group of ranks. Owns its C handle and destroys it; move only. One thread at a time may use it, except abort,
// finalize, dead_ranks and async_error, which any thread may call while another is inside a collective. After the first failure
// other than fcclInvalidArgument and fcclNotImplemented only shrink, abort and destruction work.
class Communicator {
 public:
  // Joins as `rank` of `ranks`; returns when all have joined.
  static Result<Communicator> join(const UniqueId& id, int rank, int ranks, const Options& options = {}) {
    fcclComm_t comm = nullptr;
    fcclConfig_t config = options.config();
    if (auto joined = result_of(fcclCommInitRankConfig(&comm, ranks, id, rank, &config)); !joined) return joined.error();
    return Communicator(comm, rank, ranks);
  }

  // Joins as a new rank of a communicator that grows to `ranks`, by the id of its invite.
  static Result<Communicator> join_grown(const UniqueId& id, int rank, int ranks, const Options& options = {}) {
    fcclComm_t comm = nullptr;
    fcclConfig_t config = options.config();
    if (auto grown = result_of(fcclCommGrow(nullptr, ranks, &id, rank, &comm, &config)); !grown) return grown.error();
    return Communicator(comm, rank, ranks);
  }

  // Makes all ranks of a communicator, for one thread: the vector is in the order of ranks, on GPUs 0 to ranks - 1 if the
  // thread has a current GPU. The thread must issue their calls in groups.
  static Result<std::vector<Communicator>> of_one_process(int ranks) {
    std::vector<fcclComm_t> comms(static_cast<std::size_t>(ranks < 0 ? 0 : ranks));
    if (auto made = result_of(fcclCommInitAll(comms.data(), ranks, nullptr)); !made) return made.error();
    std::vector<Communicator> communicators;
    communicators.reserve(comms.size());
    for (int rank = 0; rank < ranks; ++rank)
      communicators.push_back(Communicator(comms[static_cast<std::size_t>(rank)], rank, ranks));
    return communicators;
  }

  Communicator(Communicator&&) = default;
  Communicator& operator=(Communicator&&) = default;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  fcclComm_t handle() const { return handle_ ? handle_->comm.load() : nullptr; }

  // Ranks of equal color become a communicator, ordered by (key, rank); a rank without a color gets no communicator.
  Result<std::optional<Communicator>> split(std::optional<int> color, int key = 0) {
    fcclComm_t comm = nullptr;
    auto made = result_of(fcclCommSplit(handle(), color.value_or(FCCL_SPLIT_NOCOLOR), key, &comm, nullptr));
    if (!made) return made.error();
    if (!comm) return std::optional<Communicator>{};
    auto part = adopt(comm);
    if (!part) return part.error();
    return std::optional<Communicator>(std::move(*part));
  }

  // Makes a communicator of the ranks other than `excluded`, in their order; also after a failure, with FCCL_SHRINK_ABORT.
  Result<Communicator> shrink(std::vector<int> excluded, int flags = FCCL_SHRINK_DEFAULT) {
    fcclComm_t comm = nullptr;
    auto made = result_of(fcclCommShrink(handle(), excluded.data(), static_cast<int>(excluded.size()), &comm, nullptr, flags));
    if (!made) return made.error();
    return adopt(comm);
  }
  // Makes an id by which new ranks join grow; one rank calls it and hands the id to them.
  Result<UniqueId> invite() {
    UniqueId id{};
    if (auto made = result_of(fcclCommGetUniqueId(handle(), &id)); !made) return made.error();
    return id;
  }
  // Makes a communicator of `ranks` from this one's ranks, which keep their numbers, and new ranks, which call join_grown.
  Result<Communicator> grow(int ranks) {
    fcclComm_t comm = nullptr;
    if (auto made = result_of(fcclCommGrow(handle(), ranks, nullptr, -1, &comm, nullptr)); !made) return made.error();
    return adopt(comm);
  }
  // Lists the ranks that died without leaving, in ascending order.
  Result<std::vector<int>> dead_ranks() const {
    std::vector<int> dead(static_cast<size_t>(ranks_));
    int count = ranks_;
    if (auto asked = result_of(fcclCommGetDeadRanks(handle(), dead.data(), &count)); !asked) return asked.error();
    dead.resize(static_cast<size_t>(count));
    return dead;
  }

  // fccl.h says what each collective does. Arguments that it uses on the root only may be {} elsewhere.
  Result<void> all_gather(Source send, Target recv, StreamRef stream = {}) {
    if (auto fit = check("all_gather", recv, send, ranks_); !fit) return fit;
    return result_of(fcclAllGather(send.data, recv.data, send.count, send.datatype, handle(), stream.handle()));
  }
  Result<void> reduce_scatter(Source send, Target recv, Op op, StreamRef stream = {}) {
    if (auto fit = check("reduce_scatter", send, recv, ranks_); !fit) return fit;
    return result_of(
        fcclReduceScatter(send.data, recv.data, recv.count, recv.datatype, handle_of(op), handle(), stream.handle()));
  }
  Result<void> all_reduce(Source send, Target recv, Op op, StreamRef stream = {}) {
    if (auto fit = check("all_reduce", recv, send, 1); !fit) return fit;
    return result_of(fcclAllReduce(send.data, recv.data, send.count, send.datatype, handle_of(op), handle(), stream.handle()));
  }
  Result<void> broadcast(Source send, Target recv, int root, StreamRef stream = {}) {
    if (auto fit = rank_ == root ? check("broadcast", send, recv, 1) : Result<void>(); !fit) return fit;
    return result_of(fcclBroadcast(send.data, recv.data, recv.count, recv.datatype, root, handle(), stream.handle()));
  }
  Result<void> reduce(Source send, Target recv, Op op, int root, StreamRef stream = {}) {
    if (auto fit = rank_ == root ? check("reduce", recv, send, 1) : Result<void>(); !fit) return fit;
    return result_of(
        fcclReduce(send.data, recv.data, send.count, send.datatype, handle_of(op), root, handle(), stream.handle()));
  }
  // Reduces into another type: float32 for float16, bfloat16 and float8, which is the sum before it is rounded. The buffers may
  // not overlap.
  Result<void> reduce_scatter_typed(Source send, Target recv, Op op, StreamRef stream = {}) {
    if (auto fit = check("reduce_scatter_typed", send, recv, ranks_, true); !fit) return fit;
    return result_of(fcclReduceScatterTyped(send.data, recv.data, recv.count, send.datatype, recv.datatype, handle_of(op),
                                            handle(), stream.handle()));
  }
  Result<void> all_reduce_typed(Source send, Target recv, Op op, StreamRef stream = {}) {
    if (auto fit = check("all_reduce_typed", recv, send, 1, true); !fit) return fit;
    return result_of(fcclAllReduceTyped(send.data, recv.data, send.count, send.datatype, recv.datatype, handle_of(op), handle(),
                                        stream.handle()));
  }
  // recv carries its datatype on every rank, even where it has no memory: {nullptr, 0, fcclFloat32}.
  Result<void> reduce_typed(Source send, Target recv, Op op, int root, StreamRef stream = {}) {
    if (auto fit = rank_ == root ? check("reduce_typed", recv, send, 1, true) : Result<void>(); !fit) return fit;
    return result_of(fcclReduceTyped(send.data, recv.data, send.count, send.datatype, recv.datatype, handle_of(op), root,
                                     handle(), stream.handle()));
  }
  Result<void> gather(Source send, Target recv, int root, StreamRef stream = {}) {
    if (auto fit = rank_ == root ? check("gather", recv, send, ranks_) : Result<void>(); !fit) return fit;
    return result_of(fcclGather(send.data, recv.data, send.count, send.datatype, root, handle(), stream.handle()));
  }
  Result<void> scatter(Source send, Target recv, int root, StreamRef stream = {}) {
    if (auto fit = rank_ == root ? check("scatter", send, recv, ranks_) : Result<void>(); !fit) return fit;
    return result_of(fcclScatter(send.data, recv.data, recv.count, recv.datatype, root, handle(), stream.handle()));
  }
  Result<void> all_to_all(Source send, Target recv, StreamRef stream = {}) {
    if (auto fit = check("all_to_all", recv, send, 1); !fit) return fit;
    const auto blocks = static_cast<std::size_t>(ranks_);
    if (send.count % blocks != 0)
      return invalid_argument("all_to_all: send has " + std::to_string(send.count) + " x " + datatype_name(send.datatype) +
                              ", which are no " + std::to_string(ranks_) + " equal blocks, one per rank");
    return result_of(fcclAlltoAll(send.data, recv.data, send.count / blocks, send.datatype, handle(), stream.handle()));
  }
  // Blocks with counts of their own, one per rank; without displacements the blocks follow one another.
  Result<void> all_gather_v(Source send, Target recv, Counts counts, Counts displacements = {}, StreamRef stream = {}) {
    if (auto fit = check_blocks("all_gather_v", recv, counts, displacements); !fit) return fit;
    if (auto fit = check_datatypes("all_gather_v", send, recv); !fit) return fit;
    return result_of(fcclAllGatherV(send.data, send.count, recv.data, counts.data(), pointer(displacements), send.datatype,
                                    handle(), stream.handle()));
  }
  Result<void> reduce_scatter_v(Source send, Target recv, Counts counts, Op op, StreamRef stream = {}) {
    if (auto fit = check_blocks("reduce_scatter_v", send, counts, {}); !fit) return fit;
    if (auto fit = check_datatypes("reduce_scatter_v", send, recv); !fit) return fit;
    if (const std::size_t own = counts[static_cast<std::size_t>(rank_)]; recv.count != own)
      return invalid_argument("reduce_scatter_v: recv has " + std::to_string(recv.count) + " x " +
                              datatype_name(recv.datatype) + ", but the count of rank " + std::to_string(rank_) + " is " +
                              std::to_string(own));
    return result_of(
        fcclReduceScatterV(send.data, recv.data, counts.data(), recv.datatype, handle_of(op), handle(), stream.handle()));
  }
  Result<void> all_to_all_v(Blocks<Source> send, Blocks<Target> recv, StreamRef stream = {}) {
    if (auto fit = check_blocks("all_to_all_v", send.buffer, send.counts, send.displacements); !fit) return fit;
    if (auto fit = check_blocks("all_to_all_v", recv.buffer, recv.counts, recv.displacements); !fit) return fit;
    if (auto fit = check_datatypes("all_to_all_v", send.buffer, recv.buffer); !fit) return fit;
    return result_of(fcclAlltoAllV(send.buffer.data, send.counts.data(), pointer(send.displacements), recv.buffer.data,
                                   recv.counts.data(), pointer(recv.displacements), send.buffer.datatype, handle(),
                                   stream.handle()));
  }
  // One rank sends, another one (or the same) receives; these calls are ordered apart from collectives. Messages with a tag,
  // which is at least zero, are only for receives with that tag; a receive without `source` takes the first message of any
  // rank.
  Result<void> send(Source buffer, int to, StreamRef stream = {}) {
    return result_of(fcclSend(buffer.data, buffer.count, buffer.datatype, to, handle(), stream.handle()));
  }
  Result<void> receive(Target buffer, int from, StreamRef stream = {}) {
    return result_of(fcclRecv(buffer.data, buffer.count, buffer.datatype, from, handle(), stream.handle()));
  }
  Result<void> send_tagged(Source buffer, int to, int tag, StreamRef stream = {}) {
    return result_of(fcclSendTagged(buffer.data, buffer.count, buffer.datatype, to, tag, handle(), stream.handle()));
  }
  // Returns the sender's rank.
  Result<int> receive_tagged(Target buffer, std::optional<int> from, int tag) {
    int source = FCCL_ANY_SOURCE;
    const int peer = from.value_or(FCCL_ANY_SOURCE);
    auto received =
        result_of(fcclRecvTagged(buffer.data, buffer.count, buffer.datatype, peer, tag, &source, handle(), nullptr));
    if (!received) return received.error();
    return source;
  }
  // Receives on a stream; *source becomes the sender's rank, and must live until the receive is done.
  Result<void> receive_tagged(Target buffer, std::optional<int> from, int tag, int* source, StreamRef stream) {
    const int peer = from.value_or(FCCL_ANY_SOURCE);
    return result_of(fcclRecvTagged(buffer.data, buffer.count, buffer.datatype, peer, tag, source, handle(), stream.handle()));
  }
  Result<void> barrier(StreamRef stream = {}) { return result_of(fcclBarrier(handle(), stream.handle())); }

  template <class T>
  Result<PreMulSum> pre_multiplied_sum(T scalar) {
    fcclRedOp_t op = fcclSum;
    const auto datatype = Datatype<T>::value;
    auto made = result_of(fcclRedOpCreatePreMulSum(&op, &scalar, datatype, fcclScalarHostImmediate, handle()));
    if (!made) return made.error();
    return PreMulSum(handle_, static_cast<Op>(op));
  }

  Result<void> set_timeout(std::chrono::milliseconds timeout) {
    return result_of(fcclCommSetTimeout(handle(), milliseconds_of(timeout)));
  }
  // Refuses calls from now on, and waits until everything this rank has issued is done.
  Result<void> finalize() { return result_of(fcclCommFinalize(handle())); }
  // Fails outstanding operations on every rank; this object is empty afterwards.
  Result<void> abort() { return result_of(fcclCommAbort(handle_ ? handle_->comm.exchange(nullptr) : nullptr)); }
  // Returns the first failure so far; success if no call has failed.
  Result<void> async_error() const {
    fcclResult_t first = fcclSuccess;
    if (auto asked = result_of(fcclCommGetAsyncError(handle(), &first)); !asked) return asked;
    return first == fcclSuccess ? Result<void>() : Error{first, fcclGetLastError(handle())};
  }
  // Says how the ranks are spread over hosts.
  Result<fcclHosts_t> hosts() const {
    fcclHosts_t hosts{};
    if (auto asked = result_of(fcclCommGetHosts(handle(), &hosts)); !asked) return asked.error();
    return hosts;
  }
  Result<fcclCounter_t> counter(fcclColl_t collective) const {
    fcclCounter_t counter{};
    if (auto asked = result_of(fcclCommGetCounter(handle(), collective, &counter)); !asked) return asked.error();
    return counter;
  }

  Result<fcclInitCost_t> init_cost() const {
    fcclInitCost_t cost{};
    cost.size = sizeof cost;
    if (auto asked = result_of(fcclCommGetInitCost(handle(), &cost)); !asked) return asked.error();
    return cost;
  }

 private:
  Communicator(fcclComm_t comm, int rank, int ranks)
      : handle_(std::make_shared<CommunicatorHandle>(comm)), rank_(rank), ranks_(ranks) {}

  // Asks a communicator that was made from another one for its rank and size.
  static Result<Communicator> adopt(fcclComm_t comm) {
    Communicator made(comm, 0, 0);
    if (auto known = result_of(fcclCommUserRank(comm, &made.rank_)); !known) return known.error();
    if (auto known = result_of(fcclCommCount(comm, &made.ranks_)); !known) return known.error();
    return Result<Communicator>(std::move(made));
  }

  // Refuses two buffers unless the first has `blocks` times the elements of the second, and, unless `typed`, the same datatype.
  template <class Whole, class Block>
  static Result<void> check(const char* collective, const Whole& whole, const Block& block, int blocks, bool typed = false) {
    const auto times = static_cast<std::size_t>(blocks);
    const bool fits = whole.count / times == block.count && whole.count % times == 0;
    if (fits && (typed || whole.datatype == block.datatype)) return {};
    const auto text = [](const auto& buffer) {
      return std::string(buffer.name()) + " has " + std::to_string(buffer.count) + " x " + datatype_name(buffer.datatype);
    };
    const std::string wanted = fits
                                   ? "both must have one datatype"
                                   : std::string(whole.name()) + " must have " + std::to_string(blocks) +
                                         " times the elements of " + block.name() + (blocks == 1 ? "" : ", one block per rank");
    return invalid_argument(std::string(collective) + ": " + text(whole) + ", " + text(block) + "; " + wanted);
  }

  // Refuses a buffer that does not hold blocks of these counts.
  template <class Pointer>
  Result<void> check_blocks(const char* collective, const Buffer<Pointer>& buffer, Counts counts, Counts displacements) const {
    const auto refuse = [&](const std::string& why) { return invalid_argument(std::string(collective) + ": " + why); };
    const std::string name = buffer.name(), ranks = std::to_string(ranks_);
    if (counts.size() != static_cast<std::size_t>(ranks_))
      return refuse(name + " has " + std::to_string(counts.size()) + " counts for " + ranks + " ranks");
    if (!displacements.empty() && displacements.size() != counts.size())
      return refuse(name + " has " + std::to_string(displacements.size()) + " displacements for " + ranks + " ranks");
    std::size_t behind = 0;
    for (std::size_t rank = 0; rank < counts.size(); ++rank) {
      const std::size_t begin = displacements.empty() ? behind : displacements[rank];
      if (counts[rank] > 0 && (begin > buffer.count || counts[rank] > buffer.count - begin))
        return refuse(name + " has " + std::to_string(buffer.count) + " x " + datatype_name(buffer.datatype) + ", but block " +
                      std::to_string(rank) + " is " + std::to_string(counts[rank]) + " at " + std::to_string(begin));
      behind = begin + counts[rank];
    }
    return {};
  }
  static Result<void> check_datatypes(const char* collective, const Source& send, const Target& recv) {
    if (send.datatype == recv.datatype) return {};
    return invalid_argument(std::string(collective) + ": send has " + datatype_name(send.datatype) + ", recv has " +
                            datatype_name(recv.datatype) + "; both must have one datatype");
  }
  static const std::size_t* pointer(Counts displacements) { return displacements.empty() ? nullptr : displacements.data(); }

  std::shared_ptr<CommunicatorHandle> handle_;
  int rank_;
  int ranks_;
};

// ---- Groups --------------------------------------------------------------------------------------

// Issues the calls that `calls` makes together, when it returns: any order of sends and receives is safe, and the calls of
// several communicators progress together. Returns the first failure, once the calls without a stream are done; if one was
// refused, whether or not `calls` looked at its result, none was issued.
template <std::invocable Calls>
Result<void> group(Calls&& calls) {
  struct Open {
    bool open = fcclGroupStart() == fcclSuccess;
    // If `calls` throws, this closes the group and issues nothing.
    ~Open() {
      fcclSimInfo_t nothing = FCCL_SIM_INFO_INITIALIZER;
      if (open) static_cast<void>(fcclGroupSimulateEnd(&nothing));
    }
  } started;
  std::forward<Calls>(calls)();
  started.open = false;
  return result_of(fcclGroupEnd());
}

}  // namespace fccl
