#include <limits>
#include <utility>

#include "common/base/format.h"
#include "common/base/json_fields.h"
#include "common/base/json_text.h"
#include "worker-sidecar/checkpoint/hash.h"
#include "worker-sidecar/checkpoint/manifest.h"

namespace rekindle {
namespace {

constexpr std::string_view kManifestFormat = "rekindle-checkpoint";

std::string seal(const std::string& manifest_text, const std::string& hash) {
  return format(R"({{"hash":"{}","manifest":{}}})", hash, manifest_text);
}

void append_piece(std::string& text, const ManifestPiece& piece) {
  text += format(R"({{"begin_byte":{},"end_byte":{},"file":)", piece.begin_byte, piece.end_byte);
  append_json_string(text, piece.file);
  text += R"(,"key":)";
  append_json_string(text, piece.key);
  text += R"(,"offset":)";
  append_json_numbers(text, piece.offset);
  text += R"(,"shape":)";
  append_json_numbers(text, piece.shape);
  text += '}';
}

void append_tensor(std::string& text, const ManifestTensor& tensor) {
  text += R"({"dtype":)";
  append_json_string(text, to_string(tensor.dtype));
  text += R"(,"global_shape":)";
  append_json_numbers(text, tensor.global_shape);
  text += R"(,"name":)";
  append_json_string(text, tensor.name);
  text += R"(,"pieces":[)";
  for (std::size_t i = 0; i < tensor.pieces.size(); ++i) {
    if (i > 0) text += ',';
    append_piece(text, tensor.pieces[i]);
  }
  text += "]}";
}

std::string encode_body(const Manifest& manifest) {
  Json states = Json::array();
  for (const ManifestState& state : manifest.states) {
    states.push_back({{"rank", state.rank},
                      {"name", state.name},
                      {"file", state.file},
                      {"key", state.key},
                      {"bytes", state.bytes},
                      {"begin_byte", state.begin_byte},
                      {"end_byte", state.end_byte}});
  }
  Json files = Json::array();
  for (const ManifestFile& file : manifest.files) {
    Json item = {{"name", file.name}, {"bytes", file.bytes}, {"hash", file.hash}};
    if (!file.chunks.empty()) item["chunks"] = file.chunks;
    files.push_back(std::move(item));
  }
  Json body = {
      {"format", kManifestFormat},
      {"version", kManifestVersion},
      {"kind", to_string(manifest.kind)},
      {"job", {{"namespace", manifest.job.namespace_name}, {"name", manifest.job.name}, {"uid", manifest.job.uid}}},
      {"attempt", manifest.attempt},
      {"step", manifest.step},
      {"term", manifest.term},
      {"world_size", manifest.world_size},
      {"live_ranks", manifest.live_ranks},
      {"trigger", {{"cause", manifest.trigger.cause}, {"detail", manifest.trigger.detail}}},
      {"parent", encode_parent(manifest.parent)},
      {"time", manifest.time},
      {"tensors", Json::array()},
      {"states", std::move(states)},
      {"inexact_ranks", manifest.inexact_ranks},
      {"files", std::move(files)}};
  if (manifest.agreed_milliseconds != 0) body["agreed_milliseconds"] = manifest.agreed_milliseconds;
  std::string tensors;
  for (const ManifestTensor& tensor : manifest.tensors) {
    if (!tensors.empty()) tensors += ',';
    append_tensor(tensors, tensor);
  }
  std::string text = dump_json(body);
  put_json_elements(text, "tensors", tensors);
  return text;
}

std::uint32_t narrow(JsonFields& in, std::string_view name, std::uint64_t value) {
  if (value > std::numeric_limits<std::uint32_t>::max()) in.refuse(name, "is too large");
  return static_cast<std::uint32_t>(value);
}

Result<ManifestPiece> decode_piece(const Json& item) {
  JsonFields in(item, "piece");
  ManifestPiece piece{.file = in.text("file"),
                      .key = in.text("key"),
                      .offset = in.numbers("offset"),
                      .shape = in.numbers("shape"),
                      .begin_byte = in.number("begin_byte"),
                      .end_byte = in.number("end_byte")};
  if (Status status = in.finish(); !status) return std::unexpected(status.error());
  return piece;
}

Result<ManifestTensor> decode_tensor(const Json& item) {
  JsonFields in(item, "tensor");
  ManifestTensor tensor{.name = in.text("name"), .global_shape = in.numbers("global_shape")};
  const std::optional<Dtype> dtype = parse_enum<Dtype>(in.text("dtype"));
  if (!dtype) in.refuse("dtype", "is none that this version knows");
  tensor.dtype = dtype.value_or(Dtype::f32);
  for (const Json& piece : in.array("pieces")) {
    Result<ManifestPiece> decoded = decode_piece(piece);
    if (!decoded) return std::unexpected(decoded.error());
    tensor.pieces.push_back(std::move(*decoded));
  }
  if (Status status = in.finish(); !status) return std::unexpected(status.error());
  return tensor;
}

Result<ManifestState> decode_state(const Json& item) {
  JsonFields in(item, "state");
  ManifestState state{.rank = narrow(in, "rank", in.number("rank")),
                      .name = in.text("name"),
                      .file = in.text("file"),
                      .key = in.text("key"),
                      .bytes = in.number("bytes"),
                      .begin_byte = in.number("begin_byte"),
                      .end_byte = in.number("end_byte")};
  if (Status status = in.finish(); !status) return std::unexpected(status.error());
  return state;
}

Result<ManifestFile> decode_file(const Json& item) {
  JsonFields in(item, "file");
  ManifestFile file{.name = in.text("name"),
                    .bytes = in.number("bytes"),
                    .hash = in.text("hash"),
                    .chunks = in.texts_or_empty("chunks")};
  if (Status status = in.finish(); !status) return std::unexpected(status.error());
  return file;
}

// Decodes each element of an array with the function given.
template <typename T, typename Decode>
Status decode_list(const Json& list, std::vector<T>& into, Decode decode) {
  into.reserve(list.size());
  for (const Json& item : list) {
    Result<T> value = decode(item);
    if (!value) return std::unexpected(value.error());
    into.push_back(std::move(*value));
  }
  return {};
}

// All but the tensors, which were read one by one.
Result<Manifest> decode_body(const Json& body) {
  JsonFields in(body, "the manifest");
  Manifest manifest;
  if (in.text("format") != kManifestFormat) in.refuse("format", "must be " + std::string(kManifestFormat));
  if (in.number("version") == 0) in.refuse("version", "must not be 0");
  if (const std::optional<CheckpointKind> kind = parse_enum<CheckpointKind>(in.text("kind"))) manifest.kind = *kind;
  else in.refuse("kind", "must be breakpoint or periodic");
  JsonFields job(in.object("job"), "the manifest's job");
  manifest.job = {job.text("namespace"), job.text("name"), job.text("uid")};
  JsonFields trigger(in.object("trigger"), "the manifest's trigger");
  manifest.trigger = {trigger.text("cause"), trigger.text("detail")};
  manifest.attempt = in.number("attempt");
  manifest.step = in.number("step");
  manifest.term = in.number("term");
  manifest.world_size = narrow(in, "world_size", in.number("world_size"));
  manifest.live_ranks = narrow(in, "live_ranks", in.number("live_ranks"));
  manifest.agreed_milliseconds = in.number_or("agreed_milliseconds", 0);
  manifest.time = in.text("time");
  for (const std::uint64_t rank : in.numbers("inexact_ranks"))
    manifest.inexact_ranks.push_back(narrow(in, "inexact_ranks", rank));
  if (!in.array("tensors").empty()) in.refuse("tensors", "must be objects");
  const Json& states = in.array("states");
  const Json& files = in.array("files");
  if (!body.is_object() || !body.contains("parent")) in.refuse("parent", "is missing");
  for (JsonFields* fields : {&in, &job, &trigger}) {
    if (Status status = fields->finish(); !status) return std::unexpected(status.error());
  }
  Result<std::optional<ParentPoint>> parent = decode_parent(body["parent"], manifest.attempt);
  if (!parent) return std::unexpected(parent.error());
  manifest.parent = std::move(*parent);
  if (Status status = decode_list(states, manifest.states, decode_state); !status)
    return std::unexpected(status.error());
  if (Status status = decode_list(files, manifest.files, decode_file); !status) return std::unexpected(status.error());
  return manifest;
}

// The version, if the text looks like a manifest that a newer program has written. It may be sealed
// in a way we do not know.
std::optional<std::uint64_t> newer_version(const Json& envelope) {
  if (!envelope.is_object() || !envelope.contains("manifest")) return std::nullopt;
  const Json& body = envelope["manifest"];
  if (!body.is_object() || !body.contains("format") || body["format"] != kManifestFormat) return std::nullopt;
  if (!body.contains("version") || !body["version"].is_number_unsigned()) return std::nullopt;
  const auto version = body["version"].get<std::uint64_t>();
  return version > kManifestVersion ? std::optional(version) : std::nullopt;
}

}  // namespace

EncodedManifest encode_manifest(const Manifest& manifest) {
  const std::string body = encode_body(manifest);
  std::string hash = hash_of(body);
  std::string text = seal(body, hash);
  return {std::move(text), std::move(hash)};
}

Result<SealedManifest> decode_manifest(std::string_view text) {
  std::vector<ManifestTensor> tensors;
  Status tensors_read;
  const Result<Json> envelope = parse_json_elements(text, "the manifest", kManifestBytesMax, {"manifest", "tensors"},
                                                    [&](const Json& item) -> Status {
                                                      // What is wrong with one is said once it is
                                                      // known that this is our text.
                                                      if (!tensors_read) return {};
                                                      Result<ManifestTensor> tensor = decode_tensor(item);
                                                      if (tensor) tensors.push_back(std::move(*tensor));
                                                      else tensors_read = std::unexpected(tensor.error());
                                                      return {};
                                                    });
  if (!envelope) {
    return fail(ErrorCode::corrupt,
                format("{} ({} bytes): it is cut short or damaged", envelope.error().message, text.size()));
  }
  if (const std::optional<std::uint64_t> version = newer_version(*envelope)) {
    return fail(ErrorCode::refused, format("the manifest has version {}; this program reads up to {}: use a newer one",
                                           *version, kManifestVersion));
  }
  JsonFields in(*envelope, "the manifest");
  const std::string hash = in.text("hash");
  const Json& body = in.object("manifest");
  if (Status status = in.finish(); !status) return fail(ErrorCode::corrupt, status.error().message);
  // Also what parsing ignores (white space, a key twice, another spelling of a value) is damage:
  // the bytes themselves are hashed.
  const std::size_t seal_bytes = seal("", hash).size();
  const std::string_view body_text =
      text.size() < seal_bytes ? std::string_view() : text.substr(seal_bytes - 1, text.size() - seal_bytes);
  if (const std::string actual = hash_of(body_text); actual != hash) {
    return fail(
        ErrorCode::corrupt,
        format(
            "the manifest does not have the hash that it carries ({}, found {}): it was changed after it was written",
            hash.substr(0, 40), actual));
  }
  if (std::string(text.substr(0, seal_bytes - 1)) + "}" != seal("", hash) || !text.ends_with('}'))
    return fail(ErrorCode::corrupt, "the manifest is not spelled as it was written: it was changed");

  Result<Manifest> manifest = decode_body(body);
  if (!manifest) return std::unexpected(manifest.error());
  if (!tensors_read) return std::unexpected(tensors_read.error());
  manifest->tensors = std::move(tensors);
  if (Status status = check_manifest(*manifest); !status) return std::unexpected(status.error());
  // A field of this version that we would not write means something to its writer, and not to us:
  // it is not read past.
  if (body["version"] == kManifestVersion && encode_body(*manifest) != body_text) {
    return fail(ErrorCode::invalid_input,
                format("the manifest has a field that version {} does not have: use the program that wrote it",
                       kManifestVersion));
  }
  return SealedManifest{std::move(*manifest), hash};
}

}  // namespace rekindle
