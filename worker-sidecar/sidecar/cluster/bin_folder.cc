#include "worker-sidecar/sidecar/cluster/bin_folder.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <vector>

#include "common/base/format.h"

namespace rekindle::sidecar {
namespace {

namespace fs = std::filesystem;

std::optional<fs::path> find_source(const fs::path& from, const std::string& name) {
  std::error_code ignored;
  for (const fs::path& candidate : {from / name, from / ".." / "lib" / name}) {
    if (fs::is_regular_file(candidate, ignored)) return candidate;
  }
  return std::nullopt;
}

}  // namespace

Status fill_bin_folder(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::create_directories(to, error);
  for (const std::string name : {"rekindle-hook", "rekindle", "librekindle.so"}) {
    const std::optional<fs::path> source = find_source(from, name);
    if (!source) {
      return fail(ErrorCode::not_found, format("{} is not in {}; the sidecar's image is incomplete", name, from));
    }
    const fs::path target = fs::path(to) / name;
    const fs::path temporary = fs::path(to) / format(".{}.new", name);
    fs::copy_file(*source, temporary, fs::copy_options::overwrite_existing, error);
    if (!error) fs::permissions(temporary, fs::perms(0755), error);
    if (!error) fs::rename(temporary, target, error);
    if (error) return fail_errno(error.value(), format("copying {} to {}", name, to));
  }
  return {};
}

std::string installed_programs() {
  std::error_code error;
  if (fs::is_regular_file("/usr/lib/rekindle/rekindle-hook", error)) return "/usr/lib/rekindle";
  const fs::path own = fs::read_symlink("/proc/self/exe", error);
  return error ? "/usr/lib/rekindle" : own.parent_path().string();
}

}  // namespace rekindle::sidecar
