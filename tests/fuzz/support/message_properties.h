// What holds for every message that a decoder accepted.
#pragma once

#include <variant>

#include "tests/fuzz/support/fuzzing.h"
#include "worker-sidecar/checkpoint/written.h"

namespace rekindle {

inline void expect_inside(std::string_view name) { RK_ASSERT(!leads_out_of_its_folder(name)); }

inline void check_written(const WrittenFile& written, std::size_t body_bytes) {
  expect_inside(written.file);
  RK_ASSERT(written.entries.size() <= body_bytes && written.chunks.size() <= body_bytes);
  for (const WrittenEntry& entry : written.entries)
    RK_ASSERT(entry.begin_row <= entry.end_row && entry.begin_byte <= entry.end_byte);
}

// Names of files and folders that the message has, whatever message it is.
template <typename Message>
void check_names(const Message& message, std::size_t body_bytes) {
  if constexpr (requires { message.path; }) {
    if (!message.path.empty()) expect_inside(message.path);
  }
  if constexpr (requires { message.file; }) expect_inside(message.file);
  if constexpr (requires { message.written; }) check_written(message.written, body_bytes);
  if constexpr (requires { message.writers; }) {
    RK_ASSERT(message.writers.size() <= body_bytes);
    for (const auto& writer : message.writers) expect_inside(writer.file);
  }
  if constexpr (requires { message.states_file; }) {
    if (!message.states_file.name.empty()) expect_inside(message.states_file.name);
    for (const auto& rank : message.ranks) check_written(rank.written, body_bytes);
    for (const auto& state : message.states) expect_inside(state.file);
  }
}

// Too long sentences are cut when they are written, so the text is compared from the second time
// on.
template <typename Decode, typename Encode>
void check_message(std::uint16_t kind, std::string_view body, Decode decode, Encode encode) {
  const auto message = decode(kind, body);
  if (!message) {
    expect_sentence(message.error());
    return;
  }
  std::visit([&](const auto& each) { check_names(each, body.size()); }, *message);
  const auto encoded = encode(*message);
  RK_ASSERT(static_cast<std::uint16_t>(encoded.kind) == kind);
  const auto again = decode(kind, encoded.body);
  RK_ASSERT(again.has_value());
  RK_ASSERT(encode(*again).body == encoded.body);
}

}  // namespace rekindle
