// Tests who is taken to have started a process, and how processes are split into groups.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "launch/processes.h"
#include "launch/split.h"

namespace fccl::perf {
namespace {

using Variables = std::map<std::string, std::string>;

Environment environment_of(const Variables& variables) {
  return read_environment([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

// The launcher and the wanted number of processes, or "refused".
std::string choice_of(const Variables& variables) {
  const auto choice = choose_launch(environment_of(variables));
  if (!choice) return "refused";
  return choice->mpi + " " + (choice->processes ? std::to_string(*choice->processes) : "?");
}

TEST(Launch, TheFirstGpuIsReadUnderEitherName) {
  EXPECT_EQ(environment_of({{"NCCL_TESTS_DEVICE", "1"}}).device, "1");
  EXPECT_EQ(environment_of({{"NCCL_TESTS_DEVICE", "1"}, {"FCCL_TESTS_DEVICE", "2"}}).device, "2");
  EXPECT_FALSE(environment_of({}).device);
}

TEST(Launch, VariablesOfNcclTestsAreRead) {
  EXPECT_EQ(environment_of({{"NCCL_TESTS_SPLIT", "MOD 2"}}).split, "MOD 2");
  EXPECT_EQ(environment_of({{"NCCL_TESTS_SPLIT_MASK", "3"}}).split_mask, "3");
  EXPECT_EQ(environment_of({{"NCCL_TESTS_MIN_BW", "3"}, {"FCCL_TESTS_MIN_BW", "4"}}).min_bandwidth, "4");
}

TEST(Launch, TheEnvironmentOfAnMpirunChoosesItsLibrary) {
  EXPECT_EQ(choice_of({}), " 1");
  EXPECT_EQ(choice_of({{"OMPI_COMM_WORLD_SIZE", "3"}}), "openmpi 3");
  EXPECT_EQ(choice_of({{"PMI_SIZE", "4"}}), "mpich 4");
}

TEST(Launch, IntelMpiIsToldFromMpichByItsHydraOrItsLibraryOfPmi) {
  EXPECT_EQ(choice_of({{"PMI_SIZE", "4"}, {"I_MPI_HYDRA_UUID", "e24e"}}), "intelmpi 4");
  EXPECT_EQ(choice_of({{"PMI_SIZE", "4"}, {"I_MPI_PMI_LIBRARY", "/usr/lib/libpmi2.so"}}), "intelmpi 4");
  EXPECT_EQ(choice_of({{"FCCL_TESTS_LAUNCHER", "intelmpi"}, {"PMI_SIZE", "2"}}), "intelmpi 2");
  EXPECT_EQ(choose_launch(environment_of({{"PMI_SIZE", "4"}, {"I_MPI_HYDRA_UUID", "e24e"}}))->instead, "mpich");
}

TEST(Launch, SrunForPmixIsServedByOpenMpi) {
  const Variables step{{"PMIX_RANK", "1"}, {"PMIX_NAMESPACE", "slurm.pmix.2.0"}, {"SLURM_STEP_NUM_TASKS", "3"}};
  EXPECT_EQ(choice_of(step), "openmpi 3");
  EXPECT_EQ(choice_of({{"PMIX_RANK", "0"}, {"PMIX_NAMESPACE", "prterun"}}), "openmpi ?");
  EXPECT_EQ(choice_of({{"PMIX_RANK", "0"}}), " 1");
}

const Variables kStep{{"SLURM_STEP_NUM_TASKS", "3"}, {"SLURM_PROCID", "2"},  {"SLURM_STEP_NUM_NODES", "1"},
                      {"SLURM_JOB_ID", "17"},        {"SLURM_STEP_ID", "4"}, {"SLURM_SRUN_COMM_PORT", "41887"}};

TEST(Launch, PlainSrunOfOneNodeMeetsInAFileOfItsStep) {
  const auto choice = choose_launch(environment_of(kStep));
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->mpi, "local");
  EXPECT_EQ(choice->processes, 3);
  EXPECT_EQ(choice->place, "2/3:" + choice->new_file);
  EXPECT_TRUE(choice->new_file.ends_with("-17-4-41887")) << choice->new_file;
}

TEST(Launch, PlainSrunOfSeveralNodesIsToldToUsePmix) {
  Variables step = kStep;
  step["SLURM_STEP_NUM_NODES"] = "2";
  const auto choice = choose_launch(environment_of(step));
  ASSERT_FALSE(choice);
  EXPECT_NE(choice.error().message.find("srun --mpi=pmix"), std::string::npos) << choice.error().message;
}

// A batch script has the variables of its job, but is one process.
TEST(Launch, AProcessOfABatchScriptIsAlone) {
  EXPECT_EQ(choice_of({{"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "0"}, {"SLURM_JOB_ID", "17"}}), " 1");
}

TEST(Launch, AFileToMeetInNeedsNoMpi) {
  const auto choice = choose_launch(environment_of({{"FCCL_TESTS_LOCAL", "1/3:/tmp/meeting"}}));
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->mpi, "local");
  EXPECT_EQ(choice->place, "1/3:/tmp/meeting");
}

TEST(Launch, ProcessesOfSeveralHostsMeetAtTheFirstByTheirSecret) {
  const Variables step{
      {"SLURM_STEP_NUM_TASKS", "1"}, {"FCCL_TESTS_NETWORK", "1/3:node0:4000"}, {"FCCL_TESTS_NETWORK_SECRET", "s"}};
  const auto choice = choose_launch(environment_of(step));
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->mpi, "network");
  EXPECT_EQ(choice->place, "1/3:node0:4000 s");
}

TEST(Launch, AnAskedLauncherWinsButTheNumberOfProcessesStays) {
  EXPECT_EQ(choice_of({{"FCCL_TESTS_LAUNCHER", "mpich"}, {"OMPI_COMM_WORLD_SIZE", "3"}}), "mpich 3");
  EXPECT_EQ(choice_of({{"FCCL_TESTS_LAUNCHER", "openmpi"}, {"SLURM_STEP_NUM_TASKS", "2"}}), "openmpi 2");
  EXPECT_EQ(choice_of({{"FCCL_TESTS_LAUNCHER", "openmpi"}}), "openmpi ?");
}

TEST(Launch, WhatWouldEndAsManyWorldsOfOneIsRefused) {
  EXPECT_EQ(choice_of({{"FCCL_TESTS_LAUNCHER", "none"}, {"PMI_SIZE", "2"}}), "refused");
  EXPECT_EQ(choice_of({{"FCCL_TESTS_LAUNCHER", "none"}, {"PMI_SIZE", "1"}}), " 1");
  EXPECT_EQ(choice_of({{"SLURM_STEP_NUM_TASKS", "2"}}), "refused");
  EXPECT_EQ(choice_of({{"PMI_SIZE", "2"}, {"OMPI_COMM_WORLD_SIZE", "2"}}), "refused");
  EXPECT_EQ(choice_of({{"FCCL_TESTS_LAUNCHER", "lam"}}), "refused");
}

// The colors of four processes, or "refused".
std::string colors_of(const Variables& variables) {
  std::string colors;
  for (int process = 0; process < 4; ++process) {
    const auto group = group_of(environment_of(variables), process, 4);
    if (!group) return "refused";
    colors += std::to_string(group->color);
  }
  return colors;
}

TEST(Launch, ASplitColorsProcessesAsNcclTestsDoes) {
  EXPECT_EQ(colors_of({}), "0000");
  EXPECT_EQ(colors_of({{"FCCL_TESTS_SPLIT", "MOD 2"}}), "0101");
  EXPECT_EQ(colors_of({{"FCCL_TESTS_SPLIT", "%3"}}), "0120");
  EXPECT_EQ(colors_of({{"FCCL_TESTS_SPLIT", "div 0x2"}}), "0011");
  EXPECT_EQ(colors_of({{"FCCL_TESTS_SPLIT", "OR 0b10"}}), "2323");
  EXPECT_EQ(colors_of({{"FCCL_TESTS_SPLIT", "&2"}}), "0022");
  EXPECT_EQ(colors_of({{"FCCL_TESTS_SPLIT_MASK", "1"}, {"FCCL_TESTS_SPLIT", "DIV 2"}}), "0101");
}

TEST(Launch, ASplitThatCannotBeReadIsRefused) {
  for (const char* text : {"MOD", "MOD 0", "/0", "XOR 2", "MOD two", "2", "AND 1x"})
    EXPECT_EQ(colors_of({{"FCCL_TESTS_SPLIT", text}}), "refused") << text;
  EXPECT_EQ(colors_of({{"FCCL_TESTS_SPLIT_MASK", "xyz"}}), "refused");
}

TEST(Launch, AGroupKeepsTheOrderOfItsProcesses) {
  const Group group = *group_of(environment_of({{"FCCL_TESTS_SPLIT", "MOD 2"}}), 3, 5);
  EXPECT_EQ(group.color, 1);
  EXPECT_EQ(group.leader, 1);
  EXPECT_EQ(group.index, 1);
  EXPECT_EQ(group.processes, 2);
}

}  // namespace
}  // namespace fccl::perf
