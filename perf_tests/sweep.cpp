// Goes through the rows of the table.
#include "sweep.h"

#include <algorithm>

#include "init_cost.h"

namespace fccl::perf {
namespace {

std::unique_ptr<Gpu> open_gpu(const Run& run, int thread) {
  if (!run.arguments.uses_gpus()) return nullptr;
  auto opened = Gpu::open(run.devices[static_cast<std::size_t>(thread)].ordinal, run.arguments.null_stream());
  require(run, thread, opened);
  return *std::move(opened);
}

std::unique_ptr<Memory> memory_of(const Gpu* gpu, bool in_arena) {
  if (gpu) return std::make_unique<GpuMemory>(*gpu);
  if (in_arena) return std::make_unique<ArenaMemory>();
  return std::make_unique<HostMemory>();
}

std::unique_ptr<Library> join(const Run& run, int thread, const Gpu* gpu) {
  if (run.arguments.measures_mpi) return use_mpi(run.team.processes().launcher());
  auto joined = join_fccl(run, thread, gpu);
  require(run, thread, joined);
  return *std::move(joined);
}

}  // namespace

Sweep::Sweep(const Run& run, int thread)
    : run_(run), thread_(thread), resident_(static_cast<double>(resident_bytes())), gpu_(open_gpu(run, thread)) {
  if (run.arguments.measures_limit) {
    auto limit = join_limit(run, thread);
    require(run, thread, limit);
    memory_ = std::move(limit->memory);
    library_ = std::move(limit->library);
  } else {
    memory_ = memory_of(gpu_.get(), run.arguments.in_arena);
    library_ = join(run, thread, gpu_.get());
  }
  memory_use_.joining = more_memory();
  if (run.arguments.init) init_lines_ = describe_init();
  meter_ = std::make_unique<Meter>(run, thread, *library_, *memory_);
  memory_use_.buffers = more_memory();
}

std::vector<std::string> Sweep::describe_init() {
  const auto cost = library_->init_cost();
  require(run_, thread_, cost);
  return lines_of_init(run_.team.combine(thread_, parts_of(*cost)), run_.team.ranks());
}

std::string Sweep::arena_text() const {
  const auto usage = arena_usage();
  require(run_, thread_, usage);
  return text_of(*usage);
}

double Sweep::more_memory() {
  run_.team.barrier(thread_);
  const double before = std::exchange(resident_, static_cast<double>(resident_bytes()));
  return resident_ - before;
}

std::uint64_t Sweep::operator()() {
  const int ranks = run_.team.ranks();
  const bool all_roots = run_.collective.rooted && run_.arguments.root == -1;
  const int first_root = all_roots ? 0 : std::max(run_.arguments.root, 0);
  const int last_root = all_roots ? ranks - 1 : first_root;
  for (int cycle = 0; run_.arguments.cycles == 0 || cycle < run_.arguments.cycles; ++cycle) {
    for (const Case& chosen : run_.cases) {
      require(run_, thread_, library_->choose(*chosen.type, *chosen.op));
      if (run_.collective.reduces) samples_.emplace(*chosen.type, *chosen.op, ranks);
      for (int root = first_root; root <= last_root; ++root) run_sizes(chosen, root);
    }
  }
  memory_use_.calls = more_memory();
  // While no rank has left yet.
  const auto usage = arena_usage();
  require(run_, thread_, usage);
  slots_text_ = text_of_slots(*usage);
  return static_cast<std::uint64_t>(run_.team.combine(thread_, {{static_cast<double>(meter_->bad_checks()), Combine::sum}})[0]);
}

void Sweep::run_sizes(const Case& chosen, int root) {
  const Arguments& arguments = run_.arguments;
  warm_up(chosen, root);
  for (std::size_t bytes = arguments.min_bytes; bytes <= arguments.max_bytes; bytes = next_size(arguments, bytes)) {
    const Subject row = subject(chosen, root, bytes);
    const Measurement out_of_place = meter_->measure(row, false);
    std::optional<Measurement> in_place;
    if (run_.collective.works_in_place) in_place = meter_->measure(row, true);
    report({.bytes = row.bytes,
            .count = row.layout.count,
            .type = chosen.type->name,
            .op = run_.collective.reduces ? chosen.op->name : "none",
            .root = run_.collective.rooted ? root : -1,
            .out_of_place = out_of_place,
            .in_place = in_place});
    if (arguments.min_bytes == arguments.max_bytes) break;
  }
}

void Sweep::warm_up(const Case& chosen, int root) {
  run_.team.barrier(thread_);
  for (std::size_t bytes = std::max<std::size_t>(run_.arguments.min_bytes, 1); bytes <= run_.arguments.max_bytes; bytes *= 2)
    meter_->warm_up(subject(chosen, root, bytes));
}

Subject Sweep::subject(const Case& chosen, int root, std::size_t bytes) {
  const ElementType& type = *chosen.type;
  const Place place{.rank = run_.team.rank(thread_), .ranks = run_.team.ranks(), .root = root};
  const std::size_t count = count_of(run_.collective, bytes / type.bytes, type.bytes, place.ranks, run_.arguments.odd);
  Subject row{type, *chosen.op, samples_ ? &*samples_ : nullptr, place, {}, 0};
  if (run_.collective.is_uneven()) {
    counts_ = run_.collective.counts(*run_.arguments.uneven, count, place);
    row.layout = run_.collective.uneven_layout(counts_, count, place);
    row.bytes = counts_.largest * type.bytes;
    row.bus_factor = static_cast<double>(counts_.busiest) / static_cast<double>(std::max<std::size_t>(counts_.largest, 1));
  } else {
    row.layout = run_.collective.layout(count, place);
    row.bytes = larger_count(run_.collective, count, place.ranks) * type.bytes;
    row.bus_factor = run_.collective.bus_factor(place.ranks);
  }
  return row;
}

void Sweep::report(const Row& row) {
  if (thread_ != 0) return;
  if (run_.table) run_.table->row(row);
  if (run_.json) run_.json->row(row, run_.program);
  if (run_.csv) run_.csv->row(row, run_.program, run_.team.ranks());
}

}  // namespace fccl::perf
