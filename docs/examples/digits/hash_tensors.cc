// hash_tensors FILE: the SHA-256 of a safetensors file's tensors, in order of their names. Shares
// no code with what writes such files, so that a fault of the writer cannot hide in it. What goes
// into the hash for each tensor: its name, its type, its shape and its bytes.
#include <openssl/evp.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

namespace {

using Digest = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;

int fail(const char* path, const char* why) {
  std::fprintf(stderr, "hash_tensors: %s: %s\n", path, why);
  return 1;
}

bool add(EVP_MD_CTX* digest, const std::string& text) {
  return EVP_DigestUpdate(digest, text.data(), text.size()) == 1;
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count != 2) {
    std::fprintf(stderr, "usage: hash_tensors FILE.safetensors\n");
    return 2;
  }
  const char* const path = arguments[1];
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(path, "cannot be read");
  const std::string content((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());

  if (content.size() < 8) return fail(path, "is too short to be a safetensors file");
  std::uint64_t header_bytes = 0;
  for (int k = 7; k >= 0; --k) header_bytes = header_bytes << 8 | static_cast<unsigned char>(content[k]);
  if (header_bytes > content.size() - 8) return fail(path, "is cut short");
  const auto header = nlohmann::json::parse(content.data() + 8, content.data() + 8 + header_bytes, nullptr, false);
  if (!header.is_object()) return fail(path, "has a header that is not a JSON object");
  const std::size_t data_begin = 8 + header_bytes;
  const std::size_t data_bytes = content.size() - data_begin;

  const Digest digest(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  if (!digest || EVP_DigestInit_ex(digest.get(), EVP_sha256(), nullptr) != 1)
    return fail(path, "SHA-256 is not available");
  std::size_t tensors = 0;
  const std::map<std::string, nlohmann::json> by_name = header;
  for (const auto& [name, entry] : by_name) {
    if (name == "__metadata__") continue;
    const auto offsets = entry.value("data_offsets", nlohmann::json::array());
    const bool is_whole = offsets.size() == 2 && offsets[0].is_number_unsigned() && offsets[1].is_number_unsigned() &&
                          offsets[0] <= offsets[1] && offsets[1] <= data_bytes && entry["dtype"].is_string() &&
                          entry["shape"].is_array();
    if (!is_whole) return fail(path, ("tensor " + name + " has a wrong entry in the header").c_str());
    const std::string description =
        name + "\n" + entry["dtype"].get<std::string>() + "\n" + entry["shape"].dump() + "\n";
    const std::size_t begin = offsets[0];
    const std::size_t end = offsets[1];
    if (!add(digest.get(), description) ||
        EVP_DigestUpdate(digest.get(), content.data() + data_begin + begin, end - begin) != 1) {
      return fail(path, "SHA-256 failed");
    }
    ++tensors;
  }
  if (tensors == 0) return fail(path, "holds no tensors");

  unsigned char sum[EVP_MAX_MD_SIZE];
  unsigned int sum_bytes = 0;
  if (EVP_DigestFinal_ex(digest.get(), sum, &sum_bytes) != 1) return fail(path, "SHA-256 failed");
  for (unsigned int k = 0; k < sum_bytes; ++k) std::printf("%02x", sum[k]);
  std::printf("\n");
  return 0;
}
