#include "isomer/base/machine.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "isomer/base/context.h"

namespace isomer {

namespace {
std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) return line.substr(std::min(line.find(':') + 2, line.size()));
  return "unknown";
}
}  // namespace

std::string_view version() { return ISOMER_VERSION; }

Machine machine_of(const Context& context) {
#ifdef __clang__
  const std::string compiler = "Clang " __clang_version__;
#else
  const std::string compiler = "GCC " __VERSION__;
#endif
  return {.cpu = cpu_name(),
          .isa = std::string(name_of(context.isa())),
          .cores = int(std::thread::hardware_concurrency()),
          .threads = context.threads(),
          .compiler = compiler,
          .version = std::string(version())};
}

long peak_memory_mib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

double machine_memory_bytes() {
  const double all = double(::sysconf(_SC_PHYS_PAGES)) * double(::sysconf(_SC_PAGESIZE));
  double most = 0;
  std::ifstream group("/sys/fs/cgroup/memory.max");
  return group >> most ? std::min(all, most) : all;
}

}  // namespace isomer
