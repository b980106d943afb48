// Numbers of the messages (docs/formats/frames.md). A number is never given to something else.
#pragma once

#include <cstdint>
#include <string>

namespace rekindle {

enum class MessageKind : std::uint16_t {
  hello = 1,
  control = 2,
  welcome = 3,
  registered = 4,
  offer = 5,
  loaded = 6,
  take = 7,
  write = 8,
  written = 9,
  write_failed = 10,
  collective_failed = 11,
  checkpoint_wanted = 12,
  finished = 13,
  end = 14,
  refused = 15,
  status = 16,
  hook = 17,
  hook_done = 18,
  keep = 19,
  kept = 20,
  snapshotted = 21,
  rebuilt = 22,
  peer_hello = 101,
  peer_ready = 102,
  peer_begin = 103,
  peer_offer = 104,
  peer_loaded = 105,
  peer_take = 106,
  peer_trigger = 107,
  peer_collect = 108,
  peer_collected = 109,
  peer_permit = 110,
  peer_assign = 111,
  peer_written = 112,
  peer_committed = 113,
  peer_failed = 114,
  peer_finished = 115,
  peer_layouts = 116,
  peer_keep = 117,
  peer_kept = 118,
  peer_snapshot = 119,
  peer_snapshotted = 120,
};

// A message ready to be framed; `body` is one JSON object.
struct EncodedMessage {
  MessageKind kind = MessageKind::hello;
  std::string body;

  bool operator==(const EncodedMessage&) const = default;
};

}  // namespace rekindle
