#include "common/net/http_reader.h"

#include <algorithm>
#include <utility>

#include "common/base/format.h"
#include "common/system/clock.h"

namespace rekindle {
namespace {

constexpr std::size_t kReadBytes = 32u << 10;

Error cut_short() { return {ErrorCode::unavailable, "the connection ended in the middle of a message", Retry::yes}; }

}  // namespace

Result<std::size_t> HttpReader::fill(Instant deadline, int interrupt) {
  const std::size_t before = buffer_.size();
  buffer_.resize(before + kReadBytes);
  Result<std::size_t> count = connection_.read_some(buffer_.data() + before, kReadBytes, deadline, interrupt);
  buffer_.resize(before + count.value_or(0));
  return count;
}

Result<std::string> HttpReader::read_head(std::size_t bytes_max, Duration silence, Instant deadline, int interrupt) {
  begun_ = !buffer_.empty();
  std::size_t searched = 0;
  while (true) {
    const std::size_t end = buffer_.find("\r\n\r\n", searched);
    if (std::min(end, buffer_.size()) > bytes_max) {
      return fail(ErrorCode::exhausted, format("the head of a message is longer than {} bytes", bytes_max));
    }
    if (end != std::string::npos) {
      std::string head = buffer_.substr(0, end + 4);
      buffer_.erase(0, end + 4);
      return head;
    }
    searched = buffer_.size() < 3 ? 0 : buffer_.size() - 3;
    const Result<std::size_t> count = fill(std::min(deadline, monotonic_now() + silence), interrupt);
    if (!count) return std::unexpected(count.error());
    if (*count == 0) {
      if (buffer_.empty()) return std::string();
      return std::unexpected(cut_short());
    }
    begun_ = true;
  }
}

void HttpReader::begin_body(BodyFraming framing) {
  framing_ = framing;
  chunks_ = ChunkedDecoder();
  ended_ = framing.kind == BodyFraming::Kind::none;
}

Result<std::string_view> HttpReader::next_piece(Instant deadline, int interrupt) {
  piece_.clear();
  while (piece_.empty() && !ended_) {
    if (buffer_.empty()) {
      const Result<std::size_t> count = fill(deadline, interrupt);
      if (!count) return std::unexpected(count.error());
      if (*count == 0) {
        if (framing_.kind != BodyFraming::Kind::until_close) return std::unexpected(cut_short());
        ended_ = true;
        break;
      }
    }
    if (framing_.kind == BodyFraming::Kind::chunked) {
      const Result<std::size_t> used = chunks_.feed(buffer_, piece_);
      if (!used) return std::unexpected(used.error());
      buffer_.erase(0, *used);
      ended_ = chunks_.done();
    } else if (framing_.kind == BodyFraming::Kind::length) {
      const std::size_t count = static_cast<std::size_t>(std::min<std::uint64_t>(framing_.length, buffer_.size()));
      piece_ = buffer_.substr(0, count);
      buffer_.erase(0, count);
      framing_.length -= count;
      ended_ = framing_.length == 0;
    } else {
      std::swap(piece_, buffer_);
    }
  }
  return std::string_view(piece_);
}

Result<bool> HttpReader::append_piece(std::string& body, std::size_t bytes_max, Instant deadline, int interrupt) {
  const auto too_long = [&] {
    return fail(ErrorCode::exhausted, format("the body of a message is longer than {} bytes", bytes_max));
  };
  const bool announced = framing_.kind == BodyFraming::Kind::length && !ended_;
  if (announced && framing_.length > bytes_max - body.size()) return too_long();
  const Result<std::string_view> piece = next_piece(deadline, interrupt);
  if (!piece) return std::unexpected(piece.error());
  if (piece->size() > bytes_max - body.size()) return too_long();
  body += *piece;
  return piece->empty();
}

Result<std::string> HttpReader::read_body(std::size_t bytes_max, Duration silence, Instant deadline, int interrupt) {
  std::string body;
  while (true) {
    // A sender that is never silent makes no read wait, so that the time has to be looked at as
    // well.
    const Instant now = monotonic_now();
    if (now >= deadline) {
      return fail(ErrorCode::deadline_exceeded, "the body of a message did not end in time", Retry::yes);
    }
    const Result<bool> ended = append_piece(body, bytes_max, std::min(deadline, now + silence), interrupt);
    if (!ended) return std::unexpected(ended.error());
    if (*ended) return body;
  }
}

}  // namespace rekindle
