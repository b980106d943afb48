#include "worker-sidecar/protocol/shadow_plan.h"

#include <xxhash.h>

#include <cstring>
#include <map>
#include <utility>

#include "common/base/format.h"
#include "common/base/json_fields.h"

namespace rekindle {
namespace {

// a line of the cache, so that copies of pieces do not share one
constexpr std::uint64_t kPieceAlignment = 64;
constexpr std::uint64_t kSlotBytesMax = std::uint64_t{1} << 50;

struct Header {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t rank;
  std::uint64_t incarnation;
  std::uint64_t serial;
  std::uint32_t slots;
  std::uint32_t snapshot_slot;
  std::uint64_t shadow_every_steps;
  std::uint64_t slots_offset;
  std::uint64_t slot_bytes;
  std::uint64_t state_offset;
  std::uint64_t state_bytes;
  std::uint32_t plan_bytes;
  std::uint32_t plan_checksum;
};
static_assert(sizeof(Header) == 88 && offsetof(Header, slots_offset) == 48 && offsetof(Header, plan_bytes) == 80);

constexpr std::uint64_t rounded_up(std::uint64_t bytes, std::uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

std::uint32_t checksum_of(std::string_view text) {
  return static_cast<std::uint32_t>(XXH3_64bits(text.data(), text.size()));
}

std::string pieces_text(const std::vector<ShadowPiece>& pieces) {
  Json list = Json::array();
  for (const ShadowPiece& piece : pieces) {
    list.push_back({{"tensor", piece.piece.tensor},
                    {"begin_row", piece.piece.begin_row},
                    {"end_row", piece.piece.end_row},
                    {"offset", piece.offset},
                    {"bytes", piece.bytes}});
  }
  return dump_json(list);
}

auto wrong(std::string_view what) { return fail(ErrorCode::corrupt, format("the shadow {}", what)); }

Result<Header> read_header(std::string_view front) {
  Header header{};
  if (front.size() < sizeof header) return wrong("is cut short");
  std::memcpy(&header, front.data(), sizeof header);
  if (header.magic != kShadowMagic) return wrong("does not begin like one");
  if (header.version != kShadowVersion) {
    return fail(ErrorCode::refused,
                format("the shadow has version {}, this program knows {}", header.version, kShadowVersion));
  }
  if (header.plan_bytes > kShadowPlanBytesMax) return wrong("claims a plan that is too long");
  return header;
}

Status read_pieces(const Json& list, const Header& header, std::vector<ShadowPiece>& pieces) {
  if (!list.is_array()) return wrong("has a plan that is no list");
  for (const Json& element : list) {
    JsonFields part(element, "piece of a shadow");
    ShadowPiece piece{.piece = {.tensor = part.text("tensor"),
                                .begin_row = part.number("begin_row"),
                                .end_row = part.number("end_row")},
                      .offset = part.number("offset"),
                      .bytes = part.number("bytes")};
    if (Status status = part.finish(); !status) return std::unexpected(status.error());
    const bool inside = piece.offset >= kShadowPageBytes && piece.offset % kPieceAlignment == 0 &&
                        piece.offset <= header.state_offset && piece.bytes <= header.state_offset - piece.offset;
    if (!inside || piece.piece.begin_row > piece.piece.end_row) return wrong("has a piece outside its slot");
    pieces.push_back(std::move(piece));
  }
  return {};
}

}  // namespace

Result<ShadowPlan> plan_shadow(const ShadowPurpose& purpose, const Layout& layout,
                               const std::vector<PiecePlan>& pieces) {
  ShadowPlan plan{.rank = purpose.rank,
                  .incarnation = purpose.incarnation,
                  .serial = purpose.serial,
                  .shadow_every_steps = purpose.shadow_every_steps,
                  .state_bytes = purpose.state_bytes};
  const std::uint32_t shadow_slots = purpose.shadow_every_steps != 0 ? 2 : 0;
  plan.slots = shadow_slots + (purpose.snapshots ? 1 : 0);
  plan.snapshot_slot = shadow_slots;
  std::map<std::string_view, const TensorDescription*> tensors;
  for (const TensorDescription& tensor : layout.tensors) tensors.emplace(tensor.name, &tensor);
  std::uint64_t at = kShadowPageBytes;
  for (const PiecePlan& piece : pieces) {
    const auto found = tensors.find(piece.tensor);
    if (found == tensors.end() || !has_rows(*found->second, piece.begin_row, piece.end_row)) {
      return fail(ErrorCode::invalid_input,
                  format("the share of rank {} names rows {} to {} of \"{}\", which it does not have", purpose.rank,
                         piece.begin_row, piece.end_row, piece.tensor));
    }
    const std::uint64_t bytes = rows_bytes(*found->second, piece.end_row - piece.begin_row);
    plan.pieces.push_back({piece, at, bytes});
    at = rounded_up(at + bytes, kPieceAlignment);
  }
  plan.state_offset = at;
  plan.slot_bytes = rounded_up(at + purpose.state_bytes, kShadowPageBytes);
  const std::string text = pieces_text(plan.pieces);
  if (text.size() > kShadowPlanBytesMax) {
    return fail(ErrorCode::invalid_input,
                format("the share of rank {} has too many pieces for a shadow: {}", purpose.rank, plan.pieces.size()));
  }
  plan.slots_offset = rounded_up(sizeof(Header) + text.size(), kShadowPageBytes);
  return plan;
}

std::string encode_shadow_plan(const ShadowPlan& plan) {
  const std::string text = pieces_text(plan.pieces);
  const Header header{.magic = kShadowMagic,
                      .version = kShadowVersion,
                      .rank = plan.rank,
                      .incarnation = plan.incarnation,
                      .serial = plan.serial,
                      .slots = plan.slots,
                      .snapshot_slot = plan.snapshot_slot,
                      .shadow_every_steps = plan.shadow_every_steps,
                      .slots_offset = plan.slots_offset,
                      .slot_bytes = plan.slot_bytes,
                      .state_offset = plan.state_offset,
                      .state_bytes = plan.state_bytes,
                      .plan_bytes = static_cast<std::uint32_t>(text.size()),
                      .plan_checksum = checksum_of(text)};
  std::string bytes(plan.slots_offset, '\0');
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + sizeof header, text.data(), text.size());
  return bytes;
}

Result<std::uint64_t> shadow_front_bytes(std::string_view first_page) {
  const Result<Header> header = read_header(first_page);
  if (!header) return std::unexpected(header.error());
  return sizeof(Header) + header->plan_bytes;
}

Result<ShadowPlan> decode_shadow_plan(std::string_view front) {
  const Result<Header> header = read_header(front);
  if (!header) return std::unexpected(header.error());
  if (front.size() - sizeof(Header) < header->plan_bytes) return wrong("is cut short");
  const std::string_view text = front.substr(sizeof(Header), header->plan_bytes);
  if (checksum_of(text) != header->plan_checksum) return wrong("has a plan with another checksum than its header says");
  const bool sane =
      header->slots >= 1 && header->slots <= kShadowSlotsMax && header->snapshot_slot <= header->slots &&
      header->slots_offset % kShadowPageBytes == 0 && header->slots_offset >= sizeof(Header) + header->plan_bytes &&
      header->slots_offset <= kSlotBytesMax && header->slot_bytes % kShadowPageBytes == 0 &&
      header->slot_bytes <= kSlotBytesMax && header->state_offset >= kShadowPageBytes &&
      header->state_offset <= header->slot_bytes && header->state_bytes <= header->slot_bytes - header->state_offset;
  if (!sane) return wrong("has sizes that do not fit each other");
  const Result<Json> list = parse_json(text, "the plan of a shadow", kShadowPlanBytesMax);
  if (!list) return wrong("has a plan that is no JSON");
  ShadowPlan plan{.rank = header->rank,
                  .incarnation = header->incarnation,
                  .serial = header->serial,
                  .slots = header->slots,
                  .snapshot_slot = header->snapshot_slot,
                  .shadow_every_steps = header->shadow_every_steps,
                  .pieces = {},
                  .slots_offset = header->slots_offset,
                  .slot_bytes = header->slot_bytes,
                  .state_offset = header->state_offset,
                  .state_bytes = header->state_bytes};
  // A rank divides by the steps, and its shadow alternates over the slots before the snapshot's.
  const bool fits =
      (plan.shadow_slots() == 0) == (plan.shadow_every_steps == 0) && plan.snapshot_slot >= plan.shadow_slots();
  if (!fits) return wrong("has slots that do not fit what they are for");
  if (Status status = read_pieces(*list, *header, plan.pieces); !status) return std::unexpected(status.error());
  return plan;
}

}  // namespace rekindle
