// Tests of fccl-info: what it prints, and how it ends.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "tools/ended.h"

namespace fccl::core::testing {

Ended run_line(const std::string& line) {
  FILE* output = popen((line + " 2>&1").c_str(), "r");
  Ended ended;
  for (int c; output != nullptr && (c = std::fgetc(output)) != EOF;) ended.text += static_cast<char>(c);
  const int status = output == nullptr ? -1 : pclose(output);
  if (WIFEXITED(status)) ended.status = WEXITSTATUS(status);
  return ended;
}

Ended run_info(const std::string& arguments, const std::string& variables) {
  return run_line(variables + " " FCCL_TEST_INFO " " + arguments);
}

namespace {

const std::string kP4d = FCCL_TEST_TOPOLOGIES "/p4d.24xlarge.txt";

TEST(FcclInfo, describes_this_host_in_a_form_that_it_reads) {
  const Ended here = run_info("topology");
  ASSERT_EQ(here.status, 0) << here.text;
  const std::string path = ::testing::TempDir() + "fccl_info_here.txt";
  std::ofstream(path) << here.text;
  const Ended again = run_info("topology " + path);
  EXPECT_EQ(again.status, 0);
  EXPECT_EQ(again.text, here.text);
  std::remove(path.c_str());
}

TEST(FcclInfo, says_that_a_plug_in_may_offer_other_nics_than_the_host_shows) {
  const Ended plain = run_info("topology");
  const Ended ended = run_info("topology", "FCCL_TRANSPORT_PLUGIN=" FCCL_ODD_PLUGIN);
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(ended.text, "# The NICs are those of this host's /sys; FCCL_TRANSPORT_PLUGIN=" FCCL_ODD_PLUGIN
                        " may offer others.\n" +
                            plain.text);
}

TEST(FcclInfo, explains_by_the_costs_that_a_plug_in_tells_and_says_so) {
  const std::string plugin = "FCCL_TRANSPORT=my-net FCCL_TRANSPORT_PLUGIN=" FCCL_ODD_PLUGIN;
  const Ended ended = run_info("explain AllGather 6K --hosts 3x2", plugin);
  EXPECT_EQ(ended.status, 0) << ended.text;
  EXPECT_NE(ended.text.find("costs as FCCL_TRANSPORT_PLUGIN=" FCCL_ODD_PLUGIN
                            " tells them of its provider my-net over the NICs of this host: "
                            "latency=10us,message=1us,wire=8Gbit/s,add=10GB/s,host=10GB/s\n"),
            std::string::npos)
      << ended.text;
  const Ended named = run_info("explain AllGather 6K --hosts 3x2 --provider tcp", plugin);
  EXPECT_NE(named.text.find("costs assumed of tcp, not measured: "), std::string::npos) << named.text;
}

TEST(FcclInfo, explains_nothing_by_a_plug_in_that_cannot_be_used) {
  for (const auto& [variables, said] :
       {std::pair("FCCL_TRANSPORT=nan FCCL_TRANSPORT_PLUGIN=" FCCL_ODD_PLUGIN, "wire_byte is nan s"),
        std::pair("FCCL_TRANSPORT_PLUGIN=/nowhere/libnet.so", "FCCL_TRANSPORT_PLUGIN=/nowhere/libnet.so cannot be found")}) {
    const Ended ended = run_info("explain AllGather 6K --hosts 3x2", variables);
    EXPECT_EQ(ended.status, 1);
    EXPECT_NE(ended.text.find(said), std::string::npos) << ended.text;
  }
}

TEST(FcclInfo, says_why_there_is_no_gpu_and_ends_well) {
  const Ended ended = run_info("gpus", "CUDA_VISIBLE_DEVICES=");
  EXPECT_EQ(ended.status, 0) << ended.text;
  EXPECT_TRUE(ended.text.starts_with("cannot use a GPU: ")) << ended.text;
}

#ifdef FCCL_FAKE_DRIVER
TEST(FcclInfo, lists_every_gpu_with_what_the_driver_offers) {
  const std::string variables = "LD_LIBRARY_PATH=" FCCL_FAKE_DRIVER " FAKE_CUDA_GPUS=2 ";
  const Ended ended = run_info("gpus", variables);
  EXPECT_EQ(ended.status, 0) << ended.text;
  EXPECT_NE(ended.text.find("gpu 0 at 0000:10:00.0: Simulated GPU, compute capability 9.0, driver "), std::string::npos)
      << ended.text;
  EXPECT_NE(ended.text.find("gpu 1 at 0000:11:00.0: "), std::string::npos) << ended.text;
  EXPECT_NE(ended.text.find("  waits for 64-bit words: yes, so FCCL_CUDA_PATH=auto takes peer, host and bounce\n"),
            std::string::npos)
      << ended.text;
  EXPECT_NE(ended.text.find("  lends memory to other processes: yes\n"), std::string::npos) << ended.text;
  // The answer depends on what FCCL was built with.
  const bool sums = ended.text.find("  sums by kernels: yes\n  reaches GPUs: 1\n") != std::string::npos;
  const bool no_sums =
      ended.text.find("  sums by kernels: no, since FCCL was built without nvcc\n  reaches") != std::string::npos;
  EXPECT_NE(sums, no_sums) << ended.text;
  EXPECT_NE(run_info("gpus", variables + "FAKE_CUDA_WORDS=0").text.find("=auto takes blocking\n"), std::string::npos);
  const std::string apart = run_info("gpus", variables + "FAKE_CUDA_APART=1 FAKE_CUDA_LENDS=0").text;
  EXPECT_NE(apart.find("  lends memory to other processes: no, so no call takes the path peer\n"), std::string::npos) << apart;
  EXPECT_NE(apart.find("\n  reaches GPUs: none\n"), std::string::npos) << apart;
}

TEST(FcclInfo, keeps_gpus_open_until_its_input_ends) {
  const std::string variables = "LD_LIBRARY_PATH=" FCCL_FAKE_DRIVER " FAKE_CUDA_GPUS=1 ";
  const Ended ended = run_info("gpus --hold < /dev/null", variables);
  EXPECT_EQ(ended.status, 0) << ended.text;
  EXPECT_TRUE(ended.text.starts_with("gpu 0 at ")) << ended.text;
  // An input that does not end while it is asked.
  const Ended held = run_info("gpus --hold", "sleep 2 | timeout 0.5 env " + variables);
  EXPECT_EQ(held.status, 124) << held.text;
  const Ended wrong = run_info("gpus --hole", variables);
  EXPECT_EQ(wrong.status, 2) << wrong.text;
  EXPECT_NE(wrong.text.find("gpus takes --hold or nothing, but got '--hole'"), std::string::npos) << wrong.text;
}
#endif

TEST(FcclInfo, says_which_nics_serve_which_rank_and_how_far_they_are) {
  const Ended ended = run_info("rails " + kP4d);
  EXPECT_EQ(ended.status, 0);
  EXPECT_NE(ended.text.find("rank 0 on p4d.24xlarge: efa_0 (same switch)\n"), std::string::npos) << ended.text;
  EXPECT_NE(ended.text.find("rank 7 on p4d.24xlarge: efa_3 (same switch)\n"), std::string::npos) << ended.text;
}

TEST(FcclInfo, reads_the_files_of_nccl) {
  const std::string path = ::testing::TempDir() + "fccl_info_nccl.xml";
  std::ofstream(path) << R"(<system version="1"><cpu numaid="0"><pci busid="0000:10:1b.0" class="0x020000"><nic>
    <net name="efa_0" dev="0" speed="100000"/></nic></pci></cpu></system>)";
  const Ended ended = run_info("topology " + path);
  EXPECT_EQ(ended.status, 0);
  EXPECT_NE(ended.text.find("nic efa_0 speed 100Gbit/s pci 0000:10:1b.0 numa 0"), std::string::npos) << ended.text;
  std::remove(path.c_str());
}

TEST(FcclInfo, names_the_file_and_the_line_that_it_cannot_read) {
  const std::string path = ::testing::TempDir() + "fccl_info_wrong.txt";
  std::ofstream(path) << "fccl topology 1\nhost a\n  nic eth0 sped 3\n";
  const Ended ended = run_info("topology " + path);
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.text.find(path), std::string::npos) << ended.text;
  EXPECT_NE(ended.text.find("line 3"), std::string::npos) << ended.text;
  std::remove(path.c_str());
  for (const std::string unreadable : {"/no/such/file", "/"}) {
    const Ended ended_too = run_info("rails " + unreadable);
    EXPECT_EQ(ended_too.status, 1);
    EXPECT_NE(ended_too.text.find("the topology in " + unreadable + ": "), std::string::npos) << ended_too.text;
  }
}

TEST(FcclInfo, marks_the_settings_that_are_not_the_defaults) {
  const Ended ended = run_info("settings", "FCCL_SLOT_BYTES=1024 FCCL_TIMEOUT=");
  EXPECT_EQ(ended.status, 0);
  EXPECT_NE(ended.text.find("* FCCL_SLOT_BYTES=1024\n"), std::string::npos) << ended.text;
  EXPECT_NE(ended.text.find("  FCCL_TIMEOUT=600\n"), std::string::npos) << ended.text;
  const Ended wrong = run_info("settings", "FCCL_SLOT_BYTES=many");
  EXPECT_EQ(wrong.status, 1);
  EXPECT_NE(wrong.text.find("FCCL_SLOT_BYTES=many"), std::string::npos) << wrong.text;
}

TEST(Explain, says_the_plan_the_time_the_bound_the_rails_and_the_costs) {
  const Ended ended =
      run_info("explain AllGather 48K --hosts 3x2 --costs latency=10us,message=1us,wire=8Gbit/s,add=1000GB/s,host=1GB/s");
  EXPECT_EQ(ended.status, 0) << ended.text;
  EXPECT_EQ(ended.text, R"(49152 bytes in the larger buffer: a block of 8192 for each of 6 ranks
AllGather of 8 KiB on 3 hosts x 2 ranks, 1 rail per host
at least 32 KiB through a host's interfaces in one direction, which take 32.8 us

    algorithm  rounds slices  predicted us      latency     messages         wire         host
 -> pairwise        1      4          73.7         10.0          4.0         21.6         38.0
    bruck           2      8          87.8         20.0          7.7         19.4         40.7

pairwise in 4 slices: 73.7 us, 52 percent of it the host; 2.25 of the least time on the wire

rails between host0 and host1
    column 0, rank 0 to rank 2: nic0-nic0
    column 1, rank 1 to rank 3: nic0-nic0

costs as --costs says: latency=10us,message=1us,wire=8Gbit/s,add=1000GB/s,host=1GB/s
nobody has measured how far off these costs are; NAME_perf --calibrate measures those of your hosts
)");
}

TEST(Explain, says_that_short_content_travels_with_the_entries) {
  const Ended ended =
      run_info("explain AllReduce 8 --hosts 5x1 --costs latency=10us,message=30us,wire=8Gbit/s,add=10GB/s,host=1GB/s");
  EXPECT_EQ(ended.status, 0) << ended.text;
  EXPECT_NE(ended.text.find("\nentries in 1 slice: 120.1 us, 75 percent of it messages"), std::string::npos) << ended.text;
  EXPECT_EQ(ended.text.find("-> pairwise"), std::string::npos) << ended.text;
}

TEST(Explain, says_how_far_off_measured_costs_were) {
  const std::string costs = "latency=10us,message=1us,wire=8Gbit/s,add=1000GB/s,host=1GB/s,error=6.5%";
  for (const Ended& ended : {run_info("explain AllGather 6K --hosts 3x2 --costs " + costs),
                             run_info("explain AllGather 6K --hosts 3x2", "FCCL_COSTS=" + costs)}) {
    EXPECT_EQ(ended.status, 0) << ended.text;
    EXPECT_NE(ended.text.find(costs + "\nmedian error of these costs when they were measured: 6.5 %\n"), std::string::npos)
        << ended.text;
  }
}

TEST(Explain, takes_the_size_of_the_larger_buffer) {
  const std::string hosts = " --hosts 2x2";
  EXPECT_NE(run_info("explain reduce_scatter 4M" + hosts).text.find("ReduceScatter of 1 MiB on"), std::string::npos);
  EXPECT_NE(run_info("explain AllReduce 4M" + hosts).text.find("AllReduce of 4 MiB on"), std::string::npos);
}

TEST(Explain, joins_the_columns_of_unequal_hosts_over_their_own_nics) {
  const std::string path = ::testing::TempDir() + "fccl_info_unequal.txt";
  std::ofstream(path) << "fccl topology 1\nhost a\n nic p speed 25Gbit/s\n nic q speed 25Gbit/s\n rank 0\n rank 1\n"
                         "host b\n nic r speed 100Gbit/s\n rank 2\n";
  const Ended ended = run_info("explain AllGather 3M --provider efa --topology " + path);
  EXPECT_EQ(ended.status, 0);
  EXPECT_NE(ended.text.find("on 2 hosts of at most 2 ranks, 3 in all, in 1 column, 1 rail per host\n"), std::string::npos)
      << ended.text;
  EXPECT_NE(ended.text.find("column 0, rank 0 to rank 2: p-r\n"), std::string::npos) << ended.text;
  EXPECT_NE(ended.text.find("assumed of efa, not measured: latency=20us,message=1.25us,wire=24.275Gbit/s"), std::string::npos)
      << ended.text;
  std::remove(path.c_str());
}

TEST(Explain, repeats_the_machine_of_a_file) {
  const Ended ended = run_info("explain AllGather 1G --provider efa --hosts 4 --topology " + kP4d);
  EXPECT_EQ(ended.status, 0);
  EXPECT_NE(ended.text.find("on 4 hosts x 8 ranks, 4 rails per host\n"), std::string::npos) << ended.text;
  EXPECT_NE(ended.text.find("column 7, rank 7 to rank 15: efa_3-efa_3\n"), std::string::npos) << ended.text;
  const Ended wrong = run_info("explain AllGather 1G --hosts 4x8 --topology " + kP4d);
  EXPECT_EQ(wrong.status, 2);
  EXPECT_NE(wrong.text.find("as in --hosts 4, with at most 1048576 ranks in all, but not '4x8'"), std::string::npos)
      << wrong.text;
}

TEST(Explain, says_the_route_within_a_host_and_what_decided_it) {
  const Ended ended = run_info("explain all_reduce 1M --ranks 2 --arena --in-place --dtype bfloat16");
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(
      ended.text,
      "AllReduce of 524288 bfloat16 on one host of 2 ranks, in arenas, in place\n"
      "    path     mapped\n"
      "    variant  shards: each rank reduces a shard, and takes the others' results\n"
      "    piece    262144 bytes of an input at a time\n"
      "    results  taken from the peers' outputs: 1048576 bytes, at least 262144\n"
      "    because  a rank that reduces the whole vector in place would overwrite what its peers read; a rank gives up to "
      "1048576 bytes, and a box has at most 32768\n");
}

TEST(Explain, tells_the_longer_boxes_of_a_host_with_more_ranks_than_processors) {
  const Ended ended = run_info("explain all_reduce 24K --ranks 2");
  EXPECT_EQ(ended.status, 0);
  for (const char* part :
       {"\nif ranks share processors:\n    path     mailbox\n", "bytes, and a box has 32768 (FCCL_MAILBOX_BYTES=4096)\n",
        "\nelse:\n    path     ring\n", "gives up to 24576 bytes, and a box has 8192\n"})
    EXPECT_NE(ended.text.find(part), std::string::npos) << ended.text;
}

TEST(Explain, follows_the_settings_within_a_host) {
  const std::string words = "explain AllGather 64K --ranks 2 --arena";
  EXPECT_NE(run_info(words).text.find("path     mapped\n"), std::string::npos);
  EXPECT_NE(run_info(words, "FCCL_MAILBOX_BYTES=16384").text.find("and a box has 32768 (FCCL_MAILBOX_BYTES=16384)\n"),
            std::string::npos);
  const Ended off = run_info(words, "FCCL_MAPPED=off FCCL_CROSS_MEMORY_ATTACH=off");
  EXPECT_NE(off.text.find("path     ring\n"), std::string::npos) << off.text;
  EXPECT_NE(off.text.find("FCCL_MAPPED=off keeps"), std::string::npos) << off.text;
}

TEST(Explain, gives_an_answer_for_each_end_of_the_trial_of_init_that_matters) {
  const Ended ended = run_info("explain AllGather 16M --ranks 2");
  EXPECT_EQ(ended.status, 0);
  for (const char* part : {"reading peers' memory is no faster than slots:\n    path     ring\n",
                           "if init finds that it is faster:\n    path     ring\n",
                           "because  the result is not in place and has 16777216 bytes, at least 4194304; ",
                           "if init finds that it is 2 times as fast, or faster:\n    path     attach\n"})
    EXPECT_NE(ended.text.find(part), std::string::npos) << ended.text;
  const Ended forced = run_info("explain AllGather 64K --ranks 2", "FCCL_CROSS_MEMORY_ATTACH=on");
  EXPECT_EQ(forced.text.find("init finds"), std::string::npos) << forced.text;
  EXPECT_NE(forced.text.find("the longest block has 32768 bytes, at least 8192"), std::string::npos) << forced.text;
}

TEST(Explain, tells_both_ways_of_an_exchange_whose_counts_nobody_knows) {
  const Ended ended = run_info("explain alltoallv 1M --ranks 4 --arena");
  EXPECT_EQ(ended.status, 0);
  EXPECT_NE(ended.text.find("path     mailbox\n"), std::string::npos) << ended.text;
  EXPECT_NE(ended.text.find("else\n    path     mapped\n"), std::string::npos) << ended.text;
}

TEST(Explain, says_what_is_wrong_with_its_words) {
  const struct {
    const char *words, *said;
  } wrongs[] = {
      {"AllGathers 16M --hosts 2x2", "no collective between hosts is called 'AllGathers'; there are AllGather, ReduceScatter,"},
      {"AllGather 16X --hosts 2x2", "'16X' is not a size"},
      {"AllGather -1 --hosts 2x2", "'-1' is not a size"},
      {"AllGather 1e300G --hosts 2x2", "'1e300G' is not a size"},
      {"AllGather 16M", "explain needs the hosts"},
      {"AllGather 16M --hosts 2", "'2' are no hosts"},
      {"AllGather 16M --hosts 2x0", "'2x0' are no hosts"},
      {"AllGather 16M --hosts 2x2x2x2", "'2x2x2x2' are no hosts"},
      {"AllGather 16M --hosts 2000000x2", "at most 1048576 ranks"},
      {"AllGather 16M --hosts 2x2x257", "257 NICs of a host are too many"},
      {"AllGather 16M --hosts 1x2", "1x2 has 1 host"},
      {"AllGather 16M --hosts", "--hosts is followed by nothing"},
      {"AllGather 16M --hosts 2x2 --hosts 2x2", "--hosts is there twice"},
      {"AllGather 16M --host 2x2", "'--host' is not an option"},
      {"AllGather 16M --hosts 2x2 --costs latency=3", "--costs: the cost \"latency=3\" is not a number"},
      {"AllGather 16M --hosts 2x2 --provider udp", "nothing is assumed of a provider 'udp'"},
      {"AllGather 16M --hosts 2x2 --provider efa --costs a", "exclude each other"},
      {"AllGather 16M --hosts 2x2 --ranks 2", "--ranks is about one host and excludes --hosts and --topology"},
      {"AllGather 16M --topology f --ranks 2", "--ranks is about one host and excludes --hosts and --topology"},
      {"AllGather 16M --ranks 2 --provider efa", "--costs and --provider are about hosts"},
      {"AllGather 16M --hosts 2x2 --arena", "need --ranks"},
      {"AllGather 16M --ranks 0", "'0' is not a number of ranks"},
      {"AllGather 16M --ranks 2x2", "'2x2' is not a number of ranks"},
      {"Barrier 16M --ranks 2", "no collective within a host is called 'Barrier'; there are AllReduce, Broadcast,"},
      {"AllGather 16M --ranks 2 --dtype int", "no type is called 'int'; there are int8, uint8,"},
      {"AlltoAll 16M --ranks 2 --in-place", "AlltoAll is never in place"},
      {"AllGather", "'explain AllGather' has too few words"},
  };
  for (const auto& wrong : wrongs) {
    const Ended ended = run_info(std::string("explain ") + wrong.words);
    EXPECT_EQ(ended.status, 2) << wrong.words;
    EXPECT_NE(ended.text.find(wrong.said), std::string::npos) << ended.text;
  }
}

TEST(Explain, tells_a_wrong_word_from_a_wrong_file) {
  const Ended ended = run_info("explain AllGather 16M --topology /no/such/file");
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.text.find("the topology in /no/such/file: "), std::string::npos) << ended.text;
  const Ended machine = run_info("explain AllGather 16M --topology " + kP4d);
  EXPECT_EQ(machine.status, 2);
  EXPECT_NE(machine.text.find("has 1 host; explain is about"), std::string::npos) << machine.text;
}

TEST(FcclInfo, tells_all_commands_and_its_version_to_those_who_ask) {
  const Ended help = run_info("--help");
  EXPECT_EQ(help.status, 0);
  EXPECT_NE(help.text.find("fccl-info topology"), std::string::npos) << help.text;
  const Ended version = run_info("--version");
  EXPECT_EQ(version.status, 0);
  EXPECT_EQ(version.text, "fccl-info " FCCL_VERSION_TEXT "\n");
}

TEST(FcclInfo, answers_a_mistake_by_one_line_with_the_nearest_word) {
  const struct {
    const char *words, *said;
  } wrongs[] = {
      {"", "name a command: topology, rails, explain, gpus, settings, top, report; fccl-info --help tells of them"},
      {"topologies", "there is no command 'topologies'; did you mean topology? fccl-info --help tells of all"},
      {"--versoin", "there is no command '--versoin'; did you mean --version? fccl-info --help tells of all"},
      {"rails", "'rails' has too few words; fccl-info --help has the form"},
      {"settings now", "'settings now' has too many words; fccl-info --help has the form"},
      {"report --json", "report has no --json"},
      {"top --onec", "'--onec' is not an option of top; did you mean --once?"},
      {"top 12x", "'12x' is not an id of a process"},
      {"top 1 2", "top takes one process, but got 1 and 2"},
      {"top --interval", "--interval is followed by nothing; give seconds, as in --interval 2"},
      {"top --interval 0", "'0' is no interval; give 0.1 to 3600 seconds"},
      {"explain AllGather 16M --host 2x2", "'--host' is not an option of explain; did you mean --hosts?"},
      {"explain AllGather 16M --ranks 2 --json", "explain --ranks has no --json: its reasons are sentences"},
  };
  for (const auto& wrong : wrongs) {
    const Ended ended = run_info(wrong.words);
    EXPECT_EQ(ended.status, 2) << wrong.words;
    EXPECT_EQ(ended.text, std::string("fccl-info: ") + wrong.said + "\n");
  }
}

}  // namespace
}  // namespace fccl::core::testing
