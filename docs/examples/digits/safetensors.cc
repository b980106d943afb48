#include "safetensors.h"

#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace digits {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

std::string header_of(const std::vector<NamedArray>& arrays) {
  std::string header = "{";
  std::size_t at = 0;
  for (const NamedArray& array : arrays) {
    if (at > 0) header += ",";
    header += "\"" + array.name + R"(":{"dtype":"F32","shape":[)";
    for (std::size_t k = 0; k < array.shape.size(); ++k) header += (k > 0 ? "," : "") + std::to_string(array.shape[k]);
    header += "],\"data_offsets\":[" + std::to_string(at) + ",";
    at += array.values.size_bytes();
    header += std::to_string(at) + "]}";
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  return header;
}

bool write_to(std::FILE* file, const std::vector<NamedArray>& arrays) {
  const std::string header = header_of(arrays);
  const std::uint64_t header_bytes = header.size();
  bool good = std::fwrite(&header_bytes, sizeof header_bytes, 1, file) == 1;
  good = good && std::fwrite(header.data(), header.size(), 1, file) == 1;
  for (const NamedArray& array : arrays) {
    good = good && std::fwrite(array.values.data(), array.values.size_bytes(), 1, file) == 1;
  }
  return good && std::fflush(file) == 0 && fsync(fileno(file)) == 0;
}

}  // namespace

Status check_writable(const std::string& path) {
  const std::string temporary = path + ".partial";
  std::FILE* const file = std::fopen(temporary.c_str(), "wbe");
  if (file == nullptr) return failure("cannot write " + temporary + ": " + std::strerror(errno));
  std::fclose(file);
  std::remove(temporary.c_str());
  return {};
}

Status write_safetensors(const std::string& path, const std::vector<NamedArray>& arrays) {
  const std::string temporary = path + ".partial";
  std::FILE* const file = std::fopen(temporary.c_str(), "wbe");
  if (file == nullptr) return failure("cannot write " + temporary + ": " + std::strerror(errno));
  bool good = write_to(file, arrays);
  int fault = errno;
  if (std::fclose(file) != 0 && good) {
    good = false;
    fault = errno;
  }
  if (good && std::rename(temporary.c_str(), path.c_str()) != 0) {
    good = false;
    fault = errno;
  }
  if (good) return {};
  std::remove(temporary.c_str());
  return failure("cannot write " + path + ": " + std::strerror(fault));
}

}  // namespace digits
