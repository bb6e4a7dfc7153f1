#include "cli/http_server.h"

#include <dlfcn.h>

#include <filesystem>

#include "cli/command.h"

namespace isomer::cli {

namespace {
namespace fs = std::filesystem;

/// Beside the program where it was built, or where both are installed.
void* loaded_module() {
  constexpr const char* kName = "libisomer_http.so";
  std::error_code none;
  const fs::path here = fs::read_symlink("/proc/self/exe", none).parent_path();
  for (const fs::path& path : {here / kName, here / ISOMER_MODULES / kName})
    if (fs::exists(path, none))
      if (void* module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return module;
  return nullptr;
}
}  // namespace

void serve_http(const HttpOptions& options, const HttpHandler& handler, const std::atomic<bool>& stop) {
  void* const module = loaded_module();
  auto* const serve = module == nullptr ? nullptr : reinterpret_cast<ServeHttp*>(::dlsym(module, "isomer_serve_http"));
  if (serve == nullptr) throw RunFailed("this program was built without HTTP: install libcpp-httplib-dev and build it again");
  serve(options, handler, stop);
}

}  // namespace isomer::cli
