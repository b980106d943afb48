// Writes the first inputs of the targets whose formats are binary: `make_corpus FOLDER`. They come
// from the real encoders, so that a fuzzer begins where the interesting part begins. Again: ninja
// -C build/fuzz make_corpus && build/fuzz/bin/make_corpus build/fuzz/new && ./dev fuzz --keep
#include <filesystem>
#include <fstream>
#include <iostream>

#include "common/base/json_fields.h"
#include "worker-sidecar/checkpoint/attempt.h"
#include "worker-sidecar/checkpoint/hash.h"
#include "worker-sidecar/checkpoint/manifest.h"
#include "worker-sidecar/checkpoint/safetensors.h"
#include "worker-sidecar/mindspore/checkpoint_file.h"
#include "worker-sidecar/mindspore/group_info.h"
#include "worker-sidecar/protocol/local_message.h"
#include "worker-sidecar/protocol/peer_message.h"
#include "worker-sidecar/protocol/shadow_plan.h"

namespace rekindle {
namespace {

std::filesystem::path root;

void put(const std::string& corpus, const std::string& name, std::string_view bytes) {
  std::filesystem::create_directories(root / corpus);
  std::ofstream file(root / corpus / name, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

template <typename Number>
std::string raw(Number value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

Layout some_layout() {
  TensorDescription part = whole_tensor("part", Dtype::bf16, {4, 3});
  part.global_shape = {8, 3};
  part.offset = {4, 0};
  TensorDescription packed = whole_tensor("packed", Dtype::f6_e3m2, {2, 4});
  packed.global_shape = {2, 12};
  packed.offset = {0, 8};
  return {{whole_tensor("w", Dtype::f32, {4, 2}), part, whole_tensor("scale", Dtype::f64, {}),
           whole_tensor("empty", Dtype::f8_e4m3, {0, 4}),
           whole_tensor("seen", Dtype::boolean, {3}, WrittenIn::anywhere), packed,
           whole_tensor("nibbles", Dtype::f4, {6}), whole_tensor("phase", Dtype::c64, {2})}};
}

// Elements narrower than a byte, cut where a byte ends and, in the second, where none does.
Manifest packed_manifest(std::uint64_t border) {
  const std::string hash(32, 'a');
  Manifest manifest{.job = {"team-a", "digits", "5f1c"},
                    .attempt = 1,
                    .step = 7,
                    .term = 1,
                    .world_size = 1,
                    .live_ranks = 1,
                    .trigger = {"hook", "x"},
                    .time = "now"};
  manifest.tensors = {{"packed",
                       Dtype::f4,
                       {4, 6},
                       {{"rank-0.safetensors", "packed", {0, 0}, {4, border}, 64, 64 + 2 * border},
                        {"rank-1.safetensors", "packed", {0, border}, {4, 6 - border}, 64, 64 + 2 * (6 - border)}}}};
  manifest.files = {{"rank-0.safetensors", 64 + 2 * border, hash, {}},
                    {"rank-1.safetensors", 64 + 2 * (6 - border), hash, {}}};
  return manifest;
}

Manifest some_manifest() {
  const std::string hash(32, 'a');
  Manifest manifest{.job = {"team-a", "digits", "5f1c"},
                    .attempt = 2,
                    .step = 101,
                    .term = 65536,
                    .world_size = 2,
                    .live_ranks = 2,
                    .trigger = {"hook", "digits-worker-0"},
                    .parent = ParentPoint{1, 100, "a1-s100-x"},
                    .time = "2026-01-02T03:04:05Z"};
  manifest.tensors = {{"w",
                       Dtype::f32,
                       {4, 2},
                       {{"rank-0.safetensors", "w[0:2]", {0, 0}, {2, 2}, 128, 144},
                        {"rank-1.safetensors", "w[2:4]", {2, 0}, {2, 2}, 128, 144}}},
                      {"scale", Dtype::f64, {}, {{"rank-0.safetensors", "scale", {}, {}, 120, 128}}},
                      {"empty", Dtype::u8, {0, 4}, {{"rank-0.safetensors", "empty", {0, 0}, {0, 4}, 144, 144}}}};
  manifest.states = {{0, "sampler", "state-0.safetensors", "state/0/sampler", 16, 96, 112}};
  manifest.files = {{"rank-0.safetensors", 144, hash, {std::string(16, 'b')}},
                    {"rank-1.safetensors", 144, hash, {}},
                    {"state-0.safetensors", 112, hash, {}}};
  manifest.agreed_milliseconds = 6;
  return manifest;
}

void make_manifests() {
  const auto put_both = [](const std::string& name, const Manifest& manifest) {
    const std::string sealed = encode_manifest(manifest).text;
    put("manifest", name + "-sealed", sealed);
    put("manifest", name, dump_json((*parse_json(sealed, "manifest"))["manifest"]));
  };
  put_both("whole", some_manifest());
  Manifest small = some_manifest();
  small.kind = CheckpointKind::periodic;
  small.parent.reset();
  small.states.clear();
  small.tensors.resize(1);
  small.inexact_ranks = {1};
  small.agreed_milliseconds = 0;
  put_both("periodic", small);
  put_both("packed", packed_manifest(2));
  put("manifest", "evil-border",
      dump_json((*parse_json(encode_manifest(packed_manifest(3)).text, "manifest"))["manifest"]));
  // Edited and sealed again: names that lead out, ranges that do not fit. All must be refused.
  int number = 0;
  for (const char* name : {"../rank-0.safetensors", "/etc/passwd", "..", ".hidden", "a/b", "manifest.json", ""}) {
    Manifest evil = small;
    evil.files[0].name = name;
    evil.tensors[0].pieces[0].file = name;
    put("manifest", "evil-name-" + std::to_string(number++),
        dump_json((*parse_json(encode_manifest(evil).text, "manifest"))["manifest"]));
  }
  Manifest huge = small;
  huge.tensors[0].global_shape = {std::uint64_t{1} << 62, 4};
  huge.tensors[0].pieces[0].shape = {std::uint64_t{1} << 62, 2};
  huge.tensors[0].pieces[1].offset = {~std::uint64_t{0}, 1};
  put("manifest", "evil-shape", dump_json((*parse_json(encode_manifest(huge).text, "manifest"))["manifest"]));
}

void make_data_headers() {
  std::vector<DataEntry> entries;
  for (const TensorDescription& tensor : some_layout().tensors)
    entries.push_back(entry_of_piece(tensor, 0, row_count(tensor)));
  entries.push_back(entry_of_piece(some_layout().tensors[0], 1, 3));
  entries.push_back(entry_of_state(3, {"sampler", 16}));
  const DataFileLayout layout = *lay_out_data_file(entries);
  std::string file = layout.header;
  file.resize(layout.file_bytes, '\x11');
  put("data_header", "file", file);
  put("data_header", "header", raw(layout.file_bytes - layout.header.size()) + layout.header.substr(8));
  put("data_header", "metadata",
      raw(std::uint64_t{1}) +
          R"({"__metadata__":{"format":"pt"},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})");
  put("data_header", "huge",
      raw(std::uint64_t{1} << 50) +
          R"({"a":{"dtype":"U8","shape":[1125899906842624],"data_offsets":[0,1125899906842624]}})");
}

void make_records() {
  put("attempt", "first",
      encode_attempt({.attempt = 1, .parent = {}, .job_uid = "5f1c", .pods = {}, .time = "2026-01-02T03:04:05Z"}));
  put("attempt", "second",
      encode_attempt({.attempt = 2,
                      .parent = ParentPoint{1, 100, "a1-s100-x"},
                      .job_uid = "5f1c",
                      .pods = {{"digits-worker-0", "u0"}, {"digits-worker-1", "u1"}},
                      .time = "2026-01-02T03:04:05Z"}));
  put("job_file", "ours", R"({"format":"rekindle-job","name":"digits","namespace":"team-a","version":1})");
  put("job_file", "other", R"({"format":"rekindle-job","name":"../digits","namespace":"team-b","version":1})");
  put("layout", "all", dump_json(encode_layout(some_layout())));
  put("group_info", "pair", encode_group_info({0, 4}));
  put("group_info", "alone", encode_group_info({4095}));
  // A communication group before the list, and the list under another number, as other versions of
  // MindSpore write it.
  put("group_info", "with-communication-group",
      std::string("\x0a\x0e\x0a\x06"
                  "hccl-0"
                  "\x12\x04\x08\x00\x08\x04",
                  16) +
          encode_group_info({0, 4}));
  put("group_info", "list-elsewhere", std::string("\x1a\x04\x08\x00\x08\x04", 6));
  for (const char* name : {"a2-s101-y", "12.json", "rank-3.safetensors", "team-a\ndigits", "../x", "a1-s0-../y",
                           "team.a\ndigits", ".hidden"}) {
    static int number = 0;
    put("names", std::to_string(number++), name);
  }
  const std::string payload = raw(std::uint16_t{7}) + "sampler" + raw(std::uint64_t{8}) + "abcdefgh" +
                              raw(std::uint16_t{5}) + "empty" + raw(std::uint64_t{0});
  put("slot_payload", "two", raw(std::uint32_t{2}) + raw(std::uint16_t{0}) + payload);
  put("slot_payload", "with-room", raw(std::uint32_t{2}) + raw(std::uint16_t{3}) + payload + "xyz");
  put("slot_payload", "none", raw(std::uint32_t{0}) + raw(std::uint16_t{0}));
}

void make_shadow_plans() {
  const Layout layout = some_layout();
  const std::vector<PiecePlan> share{{"w", 1, 3}, {"part", 0, 4}, {"scale", 0, 1}, {"empty", 0, 0}};
  const auto put_plan = [&](const std::string& name, const ShadowPurpose& purpose,
                            const std::vector<PiecePlan>& pieces) {
    put("shadow_plan", name,
        std::string_view(encode_shadow_plan(*plan_shadow(purpose, layout, pieces))).substr(0, 1024));
  };
  put_plan("both",
           {.rank = 3, .incarnation = 9, .serial = 2, .snapshots = true, .shadow_every_steps = 1, .state_bytes = 256},
           share);
  put_plan("shadow",
           {.rank = 0, .incarnation = 1, .serial = 1, .snapshots = false, .shadow_every_steps = 50, .state_bytes = 64},
           share);
  put_plan("snapshots",
           {.rank = 0, .incarnation = 1, .serial = 1, .snapshots = true, .shadow_every_steps = 0, .state_bytes = 0},
           {});
}

void make_mindspore_files() {
  const auto slice = [](std::string_view name, std::string_view type, const Extents& shape,
                        const std::string& content) {
    return slice_header(name, type, shape, content.size()) + content;
  };
  const std::string tensors = slice("conv.weight", "Float32", {2, 3}, std::string(24, 'w')) +
                              slice("scale", "BFloat16", {}, "sc") + slice("large", "Int8", {8}, "half") +
                              slice("large", "Int8", {8}, "rest") + slice("epoch_num", kMindSporeText, {0}, "3");
  put("mindspore_file", "tensors", tensors);
  put("mindspore_file", "checksum", tensors + "crc_num" + std::string(6, '\0') + "\x12\x34\x56\x78");
  put("mindspore_file", "beyond", slice_header("far", "Float32", {std::uint64_t{1} << 60}, std::uint64_t{1} << 62));
  put("mindspore_file", "twice",
      slice("a", "UInt8", {1}, "1") + slice("b", "UInt8", {1}, "2") + slice("a", "UInt8", {1}, "3"));
}

void make_frames() {
  const std::string stream = raw(std::uint8_t{4}) + raw(std::uint16_t{40}) + raw(std::uint16_t{13}) +
                             raw(std::uint32_t{2}) + raw(std::uint8_t{15}) + R"({"exit_code":0})" +
                             raw(std::uint16_t{3}) + raw(std::uint32_t{2}) + raw(std::uint8_t{0});
  put("frame", "two", stream);
  // 255 bytes stand for a frame that is full and goes on.
  const auto part = [](std::uint16_t kind, const std::string& body) {
    return raw(kind) + raw(std::uint32_t{2}) + raw(static_cast<std::uint8_t>(body.size())) + body;
  };
  const std::string head = raw(std::uint8_t{4}) + raw(std::uint16_t{40});
  const std::string full(255, 'l');
  put("frame", "long", head + part(13, "{}") + part(4, full) + part(4, full) + part(4, "end") + part(13, "x"));
  put("frame", "continued", head + part(4, full) + part(9, "x"));
  put("frame", "wire", raw(std::uint8_t{30}) + std::string("RKF1\x00\x01\x0d\x00\x0f\x00\x00\x00\x02\x00\x00\x00", 16));
}

void make_messages() {
  const std::string hash(32, '0');
  const Error full{ErrorCode::exhausted, "the volume is full", Retry::no};
  const WrittenFile file{.file = "rank-1.safetensors",
                         .bytes = 96,
                         .hash = hash,
                         .chunks = {std::string(16, '1')},
                         .entries = {{"w[0:2]", "w", 0, 2, 64, 96}}};
  const std::vector<LocalMessage> local = {
      HelloMessage{1, 4, 77, 65536, "0.1.0", 3},
      ControlMessage{4096, 9, "/checkpoints"},
      WelcomeMessage{},
      RegisteredMessage{some_layout(), {{"sampler", 16}}, true},
      OfferMessage{"a1-s184-x", 184, hash},
      LoadedMessage{"a1-s184-x", 184, false, full, false},
      TakeMessage{2, "a1-s184-x", 184, hash, CheckpointSummary{1024, 4, 3, 6}},
      WriteMessage{65536, 3, 185, "a2-s185-y", "rank-1.safetensors", {{"w", 0, 2}}},
      WrittenMessage{65536, file},
      WriteFailedMessage{65536, full},
      CollectiveFailedMessage{184, "ring broken"},
      CheckpointWantedMessage{184},
      FinishedMessage{143},
      EndMessage{143},
      RefusedMessage{full},
      StatusMessage{R"({"phase":"training"})"},
      HookMessage{"main", 27.5},
      HookDoneMessage{HookOutcome::durable, 185, "a2-s185-y", 31, "step 185 is durable"},
      CheckpointDoneMessage{184, HookOutcome::durable, 185, "a2-s185-y", "step 185 is durable"}};
  for (const LocalMessage& message : local) {
    const EncodedMessage encoded = encode_local_message(message);
    const auto kind = static_cast<std::uint8_t>(encoded.kind);
    put("local_message", std::to_string(kind), raw(kind) + encoded.body);
  }
  const TriggerMessage trigger{.term = 65536,
                               .cause = TriggerCause::hook,
                               .pod = 1,
                               .detail = "main",
                               .seconds_left = 30,
                               .after = AfterBreakpoint::park,
                               .breakpoint = "b-1"};
  PodWrittenMessage written{.term = 65536,
                            .ordinal = 1,
                            .ok = true,
                            .error = {},
                            .failed_ranks = {2},
                            .ranks = {{1, file}},
                            .states_file = {"state-1.safetensors", 80, hash, {}}};
  written.states = {{1, "sampler", "state-1.safetensors", "state/1/sampler", 16, 64, 80}};
  written.inexact_ranks = {3};
  const std::vector<PeerMessage> peer = {
      PeerHelloMessage{"job-1", "pod-1", 1, 2, "0.1.0"},
      ReadyMessage{1, {{1, ReadyState::loaded}}, hash, 0, 184, "a1-s184-x", hash},
      BeginMessage{},
      OfferMessage{"a1-s184-x", 184, hash},
      PodLoadedMessage{1, "a1-s184-x", 184, false, full},
      TakeMessage{2, "", 0, "", {}},
      trigger,
      CollectMessage{131072, trigger},
      CollectedMessage{131072, 1, {{1, true, true, 184, RankPhase::computing}}},
      PermitMessage{131072, 185, {0, 1}},
      AssignMessage{131072, 185, "a2-s185-y", {{1, "rank-1.safetensors", {{"w", 0, 2}}, 0}}},
      written,
      CommittedMessage{131072, 185, "a2-s185-y", hash, AfterBreakpoint::stop, 1024, 0.5},
      FailedMessage{131072, full, AfterBreakpoint::go_on},
      PodFinishedMessage{1}};
  for (const PeerMessage& message : peer) {
    const EncodedMessage encoded = encode_peer_message(message);
    const auto kind = static_cast<std::uint8_t>(encoded.kind);
    put("peer_message", std::to_string(kind), raw(kind) + encoded.body);
  }
}

}  // namespace
}  // namespace rekindle

int main(int count, char** arguments) {
  if (count != 2) {
    std::cerr << "usage: make_corpus FOLDER (build/fuzz/new)\n";
    return 2;
  }
  rekindle::root = arguments[1];
  rekindle::make_manifests();
  rekindle::make_data_headers();
  rekindle::make_records();
  rekindle::make_shadow_plans();
  rekindle::make_mindspore_files();
  rekindle::make_frames();
  rekindle::make_messages();
  return 0;
}
