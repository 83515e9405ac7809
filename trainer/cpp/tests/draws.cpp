// Prints what the trainer draws: draws SEED STEP END COUNT.
#include <cstdio>
#include <cstdlib>

#include "random.h"

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const auto number = [&](int i) { return std::strtoull(argv[i], nullptr, 10); };
  const auto drawn = trainer::draws(number(1), number(2), static_cast<uint32_t>(number(3)), static_cast<int64_t>(number(4)));
  for (const int64_t each : drawn) std::printf("%lld\n", static_cast<long long>(each));
}
