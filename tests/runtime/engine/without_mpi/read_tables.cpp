// Reads tables from the standard input (a number of words, then the words, again and again), makes
// the steps of each, and prints how many were read and how many refused. It must not crash.
#include <cstdio>
#include <distspmd/plan/step.hpp>
#include <exception>
#include <vector>

static void make_steps(const distspmd::Table &table) {
  distspmd::Resources resources;
  for (const distspmd::PlanTable &plan : table.plans) {
    for (const distspmd::StepTable &step : plan.steps) {
      distspmd::Group group;
      if (step.family >= 0) {
        const distspmd::Family &family = table.families[static_cast<std::size_t>(step.family)];
        group.position = static_cast<int>(family.position);
        group.size = static_cast<int>(family.size);
        if (family.size >= 1000) continue;
      }
      distspmd::Step ready(step, plan, group.size > 0 ? &group : nullptr, resources);
    }
  }
}

int main() {
  std::int64_t count;
  int read = 0, refused = 0;
  while (std::fread(&count, sizeof count, 1, stdin) == 1) {
    std::vector<std::int64_t> words(static_cast<std::size_t>(count));
    if (std::fread(words.data(), sizeof count, words.size(), stdin) != words.size()) return 2;
    try {
      make_steps(distspmd::Reader(0, words.data(), count).table());
      ++read;
    } catch (const std::runtime_error &) {
      ++refused;
    }
  }
  std::printf("%d read, %d refused\n", read, refused);
}
