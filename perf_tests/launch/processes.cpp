// Chooses and loads a launcher library, and checks that its world is the one that was started.
#include "launch/processes.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

namespace fccl::perf {
namespace {

constexpr char kChooseBy[] =
    "set FCCL_TESTS_LAUNCHER to openmpi, mpich or intelmpi, whichever the launching program belongs to";

Error refuse(std::string text) { return {fcclInvalidUsage, std::move(text)}; }

std::optional<int> number_in(const std::optional<std::string>& text) {
  int value = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), value).ec != std::errc{}) return std::nullopt;
  return value;
}

std::string install_hint(const std::string& mpi) {
  if (mpi == "intelmpi") return "Intel MPI with its headers, set I_MPI_ROOT to its folder, configure and build again";
  return mpi == "openmpi" ? "libopenmpi-dev (Debian) and build again" : "libmpich-dev (Debian) and build again";
}

Result<const FcclLauncher*> load(const std::string& mpi, const std::string& instead) {
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const auto file = folder / ("libfccl_launch_" + mpi + ".so");
  if (!instead.empty() && !std::filesystem::exists(file) &&
      std::filesystem::exists(folder / ("libfccl_launch_" + instead + ".so")))
    return load(instead, "");
  if (!std::filesystem::exists(file))
    return refuse("this process was started by an mpirun of " + mpi + ", but " + file.string() +
                  " was not built, and without it the processes cannot meet; install " + install_hint(mpi));
  // The library is loaded globally, because MPI's own plug-ins expect to find MPI's symbols.
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!library) return refuse("loading the launcher library of " + mpi + " failed: " + std::string(dlerror()));
  const auto launcher = reinterpret_cast<decltype(&fccl_launcher)>(dlsym(library, kLauncherSymbol));
  if (!launcher) return refuse(file.string() + " is not a launcher library: " + dlerror());
  return launcher();
}

// The processes of a step on one host meet in a file that is named after the step and the srun, so each run has a new one.
Result<LaunchChoice> choose_step(const Environment& environment, int processes) {
  const auto process = number_in(environment.slurm_process);
  if (!process || !environment.slurm_job || !environment.slurm_step || number_in(environment.slurm_nodes) != 1)
    return refuse(
        "srun started this process with others (SLURM_STEP_NUM_TASKS=" + std::to_string(processes) + "), on " +
        environment.slurm_nodes.value_or("?") +
        " nodes and for no MPI, so they cannot meet; start them by srun --mpi=pmix, whose processes meet through Open "
        "MPI, or " +
        kChooseBy);
  const std::string file = "/dev/shm/fccl_perf-" + std::to_string(geteuid()) + "-" + *environment.slurm_job + "-" +
                           *environment.slurm_step + "-" + environment.slurm_port.value_or("0");
  return LaunchChoice{"local", processes, std::to_string(*process) + "/" + std::to_string(processes) + ":" + file, file};
}

// Makes the file, or opens it if another process of this user has made it.
Result<void> make_meeting_file(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  struct stat found{};
  const bool own = descriptor >= 0 && fstat(descriptor, &found) == 0 && found.st_uid == geteuid();
  const std::string why = descriptor < 0 ? std::strerror(errno) : "it is another user's";
  if (descriptor >= 0) close(descriptor);
  if (own) return {};
  return refuse("srun started this process for no MPI, and making the file " + path +
                ", in which the processes of one node meet, " + "failed (" + why + "); start them by srun --mpi=pmix");
}

}  // namespace

Result<LaunchChoice> choose_launch(const Environment& environment) {
  const std::optional<int> open_mpi = number_in(environment.open_mpi_size);
  const std::optional<int> pmi = number_in(environment.pmi_size);
  const std::optional<int> slurm = number_in(environment.slurm_size);
  const std::string asked = environment.launcher.value_or("");
  if (environment.local) return LaunchChoice{"local", std::nullopt, *environment.local};
  if (environment.network)
    return LaunchChoice{"network", std::nullopt, *environment.network + " " + environment.secret.value_or("")};
  if (asked == "openmpi") return LaunchChoice{asked, open_mpi ? open_mpi : pmi ? pmi : slurm};
  if (asked == "mpich" || asked == "intelmpi") return LaunchChoice{asked, pmi ? pmi : open_mpi ? open_mpi : slurm};
  const int started = std::max({open_mpi.value_or(1), pmi.value_or(1), slurm.value_or(1)});
  if (asked == "none") {
    if (started == 1) return LaunchChoice{"", 1};
    return refuse("FCCL_TESTS_LAUNCHER=none, but this process was started together with others (" + std::to_string(started) +
                  "), and each would run alone; unset it, or start one process");
  }
  if (!asked.empty()) return refuse("FCCL_TESTS_LAUNCHER is '" + asked + "', but knows only none, openmpi, mpich and intelmpi");
  if (open_mpi && pmi)
    return refuse("both OMPI_COMM_WORLD_SIZE and PMI_SIZE are set, so who started this process is unclear; " +
                  std::string(kChooseBy));
  if (open_mpi) return LaunchChoice{"openmpi", open_mpi};
  // MPICH's library works under both Hydras.
  if (pmi && environment.intel_mpi) return LaunchChoice{.mpi = "intelmpi", .processes = pmi, .instead = "mpich"};
  if (pmi) return LaunchChoice{"mpich", pmi};
  if (environment.pmix_rank && environment.pmix_space) return LaunchChoice{"openmpi", slurm};
  if (started > 1) return choose_step(environment, started);
  return LaunchChoice{"", 1};
}

Result<Processes> Processes::start(const LaunchChoice& choice, bool many_threads) {
  if (choice.mpi.empty()) return Processes(nullptr, 0, 1);
  if (!choice.new_file.empty()) {
    if (const auto made = make_meeting_file(choice.new_file); !made) return made.error();
  }
  const auto launcher = load(choice.mpi, choice.instead);
  if (!launcher) return launcher.error();
  int process = 0;
  int processes = 1;
  if (const int error = (*launcher)->start(many_threads, choice.place.c_str(), &process, &processes))
    return refuse("starting by " + choice.mpi + " failed with error " + std::to_string(error));
  if (!choice.new_file.empty()) {
    (*launcher)->barrier();  // every process has opened it
    if (process == 0) std::filesystem::remove(choice.new_file);
  }
  Processes started(*launcher, process, processes);
  if (choice.processes && *choice.processes != processes)
    return refuse("the environment says " + std::to_string(*choice.processes) + " processes, but the world of " +
                  std::string((*launcher)->version()) + " has " + std::to_string(processes) +
                  ": mpirun belongs to another MPI; " + kChooseBy);
  return started;
}

Processes::Processes(Processes&& other) noexcept
    : launcher_(std::exchange(other.launcher_, nullptr)), process_(other.process_), processes_(other.processes_) {}

Processes::~Processes() {
  if (launcher_) launcher_->finish();
}

void Processes::barrier() const {
  if (launcher_) launcher_->barrier();
}

void Processes::abort(ExitCode code) const {
  std::fflush(nullptr);
  if (launcher_) launcher_->abort(static_cast<int>(code));
  std::_Exit(static_cast<int>(code));
}

}  // namespace fccl::perf
