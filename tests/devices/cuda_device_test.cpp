// CudaDevice over the fake driver: where there is no driver or no GPU, a fork, another thread's context, and errors as text.
//
// Each test that loads a driver does so in a process of its own, since a process has one driver for life.
#include <dlfcn.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <string>
#include <thread>

#include "device/cuda_driver.h"
#include "device/device.h"
#include "devices/pinned_pages.h"

namespace fccl::core {

namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const fs::path kFakeDriver = FCCL_FAKE_DRIVER;

// Runs `body` in a child process and returns its text, or says that the child gave up by a signal.
std::string in_a_process(const std::function<std::string()>& body) {
  int ends[2];
  if (::pipe(ends) != 0) return "no pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string said = body();
    const bool written = ::write(ends[1], said.data(), said.size()) == static_cast<ssize_t>(said.size());
    ::_exit(written ? 0 : 1);
  }
  ::close(ends[1]);
  std::string said;
  char some[256];
  for (ssize_t bytes = ::read(ends[0], some, sizeof(some)); bytes > 0; bytes = ::read(ends[0], some, sizeof(some)))
    said.append(some, static_cast<size_t>(bytes));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return status == 0 ? said : fmt::format("{} [its process ended with status {}]", said, status);
}

template <class Function>
Function function(const char* name) {
  return reinterpret_cast<Function>(function_of_loaded_driver(name));
}

// Makes the first GPU's context current as a program does that knows nothing of this library.
class Current {
 public:
  Current() {
    CUcontext context = nullptr;
    function<decltype(&::cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain")(&context, 0);
    function<decltype(&::cuCtxPushCurrent_v2)>("cuCtxPushCurrent_v2")(context);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
  ~Current() {
    CUcontext context = nullptr;
    function<decltype(&::cuCtxPopCurrent_v2)>("cuCtxPopCurrent_v2")(&context);
  }
};

std::string open_gpu(int ordinal) {
  const auto opened = open_device(ordinal);
  return opened ? "opened " + (*opened)->limits().name : opened.error().message;
}

// The fake driver, as one that the program has loaded itself.
bool load_fake() { return ::dlopen(kFakeDriver.c_str(), RTLD_NOW) != nullptr; }

TEST(CudaDevice, without_a_driver_the_error_says_so) {
  const std::string said = in_a_process([] { return open_gpu(0); });
  if (said.starts_with("opened") && !said.starts_with("opened Simulated")) GTEST_SKIP() << "this machine has a driver";
  EXPECT_THAT(said, HasSubstr("cannot use a GPU: no driver"));
}

TEST(CudaDevice, without_a_gpu_the_error_says_so) {
  EXPECT_THAT(in_a_process([] {
                ::setenv("FAKE_CUDA_GPUS", "0", 1);
                load_fake();
                return open_gpu(0);
              }),
              HasSubstr("cannot use a GPU: no GPU (cuInit said CUDA_ERROR_NO_DEVICE"));
}

TEST(CudaDevice, a_driver_that_is_loaded_already_is_taken) {
  EXPECT_THAT(in_a_process([] {
                load_fake();
                return open_gpu(0);
              }),
              HasSubstr("opened Simulated GPU, compute capability 9.0, driver "));
}

TEST(CudaDevice, one_that_there_is_not_is_refused_with_those_that_there_are) {
  EXPECT_THAT(in_a_process([] {
                ::setenv("FAKE_CUDA_GPUS", "3", 1);
                load_fake();
                return open_gpu(3);
              }),
              HasSubstr("cannot use GPU 3: this process has GPUs 0 to 2"));
}

TEST(CudaDevice, all_communicators_of_a_process_share_one) {
  EXPECT_EQ(in_a_process([]() -> std::string {
              load_fake();
              return open_device(0).value() == open_device(0).value() ? "one" : "two";
            }),
            "one");
}

TEST(CudaDevice, no_driver_is_taken_from_the_current_directory) {
  const fs::path folder = fs::temp_directory_path() / fmt::format("fccl-no-driver-{}", ::getpid());
  fs::create_directories(folder);
  fs::create_symlink(kFakeDriver, folder / "libcuda.so.1");
  for (const char* const path : {"", ".", ":/usr/lib", "relative"}) {
    const std::string command = "cd " + folder.string() + " && ln -sfn . relative && LD_LIBRARY_PATH=" + path + " " +
                                fs::read_symlink("/proc/self/exe").string() +
                                " --gtest_filter=CudaDevice.without_a_driver_the_error_says_so > /dev/null";
    EXPECT_EQ(std::system(command.c_str()), 0) << "LD_LIBRARY_PATH=" << path;
  }
  fs::remove_all(folder);
}

TEST(CudaDevice, the_current_device_is_known_without_loading_or_initialising_a_driver) {
  EXPECT_EQ(in_a_process([]() -> std::string {
              if (current_device() != -1) return "a device without a driver";
              if (::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD) != nullptr) return "it has loaded a driver";
              load_fake();
              if (current_device() != -1) return "a device before cuInit";
              const auto count = reinterpret_cast<decltype(&::cuDeviceGetCount)>(function_of_loaded_driver("cuDeviceGetCount"));
              int gpus = 0;
              if (count(&gpus) != CUDA_ERROR_NOT_INITIALIZED) return "it has initialised the driver";
              const auto device = open_device(0).value();
              if (current_device() != -1) return "a device without a Use";
              const Device::Use use(*device);
              int other_thread = 0;
              std::thread([&] { other_thread = current_device(); }).join();
              return fmt::format("{} here, {} elsewhere", current_device(), other_thread);
            }),
            "0 here, -1 elsewhere");
}

TEST(CudaDevice, a_use_gives_back_what_was_current) {
  EXPECT_EQ(in_a_process([]() -> std::string {
              ::setenv("FAKE_CUDA_GPUS", "2", 1);
              load_fake();
              const auto first = open_device(0).value(), second = open_device(1).value();
              std::string said;
              {
                const Device::Use outer(*second);
                {
                  const Device::Use inner(*first);
                  said += fmt::format("{}", current_device());
                }
                said += fmt::format(" {}", current_device());
              }
              said += fmt::format(" {}", current_device());
              return said;
            }),
            "0 1 -1");
}

// Begins a graph in the mode that is everybody's default, does this in another thread, and says how the graph ended.
std::string capture_beside(const std::function<void(Device&, Queue)>& body) {
  return in_a_process([&]() -> std::string {
    load_fake();
    const auto device = open_device(0).value();
    const auto begin = function<decltype(&::cuStreamBeginCapture_v2)>("cuStreamBeginCapture_v2");
    const auto end = function<decltype(&::cuStreamEndCapture)>("cuStreamEndCapture");
    const auto name_of = function<decltype(&::cuGetErrorName)>("cuGetErrorName");
    Queue recorded, other;
    {
      const Device::Use use(*device);
      recorded = device->make_queue().value();
      other = device->make_queue().value();
    }
    const Current current;
    begin(static_cast<CUstream>(recorded.native), CU_STREAM_CAPTURE_MODE_GLOBAL);
    std::thread([&] { body(*device, other); }).join();
    CUgraph graph = nullptr;
    const char* name = nullptr;
    name_of(end(static_cast<CUstream>(recorded.native), &graph), &name);
    return testing::Test::HasFailure() ? "a failure beside it" : name;
  });
}

TEST(CudaDevice, what_is_asked_under_a_use_leaves_others_captures_good) {
  EXPECT_EQ(capture_beside([](Device& device, Queue other) {
              const Device::Use use(device);
              const Device::Use nested(device);
              EXPECT_TRUE(device.is_idle(other).value());
              EXPECT_TRUE(device.make_queue());
              EXPECT_TRUE(device.make_mark());
              const PinnedPages pages(device, 1);
            }),
            "CUDA_SUCCESS");
}

TEST(CudaDevice, a_query_without_one_ends_others_captures) {
  EXPECT_EQ(capture_beside([](Device& device, Queue other) {
              {
                const Device::Use use(device);
              }
              const Current current;
              const auto query = function<decltype(&::cuStreamQuery)>("cuStreamQuery");
              EXPECT_EQ(query(static_cast<CUstream>(other.native)), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
            }),
            "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED");
}

// Holds a queue, and says whether the first and second launch of a kernel returned before it was released. `loads` it before.
std::string launches_beside_a_wait(bool loads) {
  load_fake();
  const auto device = open_device(0).value();
  const Device::Use use(*device);
  const Queue held = device->make_queue().value(), other = device->make_queue().value();
  PinnedPages pages(*device, 1);
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  function<decltype(&::cuModuleLoadData)>("cuModuleLoadData")(&module, "");
  function<decltype(&::cuModuleGetFunction)>("cuModuleGetFunction")(&kernel, module, "any");
  if (loads) function<decltype(&::cuFuncLoad)>("cuFuncLoad")(kernel);
  const WordOperation wait{WordOperation::Kind::wait_for, pages.device(), 1};
  std::string said;
  for (int launch = 0; launch < 2; ++launch) {
    pages.word(0).store(0);
    if (!device->words(held, {&wait, 1})) return "no wait";
    auto done = std::async(std::launch::async, [&] {
      const Current current;
      return function<decltype(&::cuLaunchKernel)>("cuLaunchKernel")(kernel, 1, 1, 1, 1, 1, 1, 0,
                                                                     static_cast<CUstream>(other.native), nullptr, nullptr);
    });
    said += done.wait_for(std::chrono::milliseconds(50)) == std::future_status::timeout ? "late " : "at once ";
    release_to_device(pages.word(0), 1);
    if (done.get() != CUDA_SUCCESS) return "no launch";
    while (!device->is_idle(held).value()) std::this_thread::yield();
  }
  return said;
}

TEST(CudaDevice, the_first_launch_of_a_kernel_waits_for_all_unless_it_was_loaded) {
  EXPECT_EQ(in_a_process([] { return launches_beside_a_wait(false); }), "late at once ");
  EXPECT_EQ(in_a_process([] { return launches_beside_a_wait(true); }), "at once at once ");
  EXPECT_EQ(in_a_process([] {
              ::setenv("CUDA_MODULE_LOADING", "EAGER", 1);
              return launches_beside_a_wait(false);
            }),
            "at once at once ");
}

TEST(CudaDevice, a_fork_is_refused_and_reaches_no_driver) {
  EXPECT_THAT(in_a_process([]() -> std::string {
                load_fake();
                const auto device = open_device(0).value();
                auto use = std::make_unique<Device::Use>(*device);
                auto pages = std::make_unique<PinnedPages>(*device, 1);
                const Queue queue = device->make_queue().value();
                return in_a_process([&]() -> std::string {
                  std::string said = device->is_idle(queue).error().message + "; " + open_gpu(0);
                  device->drop(queue);
                  pages.reset();
                  use.reset();
                  return said;
                });
              }),
              testing::AllOf(HasSubstr("this process was forked from the one that opened it"),
                             HasSubstr("forked from one which had used CUDA"), testing::Not(HasSubstr("ended with status"))));
}

TEST(CudaDevice, an_error_names_the_attempt_the_gpu_and_what_the_driver_said) {
  EXPECT_THAT(in_a_process([]() -> std::string {
                load_fake();
                const auto device = open_device(0).value();
                const Device::Use use(*device);
                alignas(4096) static std::byte pages[4096];
                const auto pinned = device->pin(pages);
                return device->pin(pages).error().message;
              }),
              testing::AllOf(HasSubstr("cannot pin 4096 bytes at 0x"), HasSubstr("on GPU 0 (Simulated GPU"),
                             HasSubstr("0000:10:00.0): cuMemHostRegister said CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED")));
}

TEST(CudaDevice, a_gpu_that_breaks_is_an_error_of_every_call_after) {
  EXPECT_THAT(in_a_process([]() -> std::string {
                ::setenv("FAKE_CUDA_BREAKS_AT", "1", 1);
                load_fake();
                const auto device = open_device(0).value();
                const Device::Use use(*device);
                PinnedPages* const pages = new PinnedPages(*device, 1);  // the broken GPU would not unpin it
                const Queue queue = device->make_queue().value();
                const WordOperation write{WordOperation::Kind::write, pages->device(), 1};
                if (!device->words(queue, {&write, 1})) return "it broke too early";
                while (device->is_idle(queue).has_value()) std::this_thread::yield();
                return device->make_mark().error().message;
              }),
              HasSubstr("cuEventCreate said CUDA_ERROR_ILLEGAL_ADDRESS"));
}

TEST(CudaDevice, without_stream_memory_operations_words_are_refused) {
  EXPECT_THAT(in_a_process([]() -> std::string {
                ::setenv("FAKE_CUDA_WORDS", "0", 1);
                load_fake();
                const auto device = open_device(0).value();
                const Device::Use use(*device);
                if (device->limits().waits_for_words) return "it says that it has them";
                const WordOperation write{};
                return device->words({}, {&write, 1}).error().message;
              }),
              HasSubstr("cannot enqueue 1 words on GPU 0: it takes at most 0 at a time"));
}

}  // namespace

}  // namespace fccl::core
