// One TLS connection to another sidecar: handshake, frames in, frames out. Who is on the other side
// is the mesh's business. Threads: the loop thread.
#pragma once

#include <array>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/ssl/context.hpp>
#include <asio/ssl/stream.hpp>
#include <asio/steady_timer.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "worker-sidecar/protocol/frame.h"
#include "worker-sidecar/protocol/peer_message.h"

namespace rekindle::sidecar {

class PeerLink : public std::enable_shared_from_this<PeerLink> {
 public:
  struct Handlers {
    std::function<void()> secured;  // the handshake is done and the certificate is the job's
    std::function<void(const Frame&)> frame;
    std::function<void(const std::string& why)> ended;  // once; not after close()
  };

  // `context` is shared by many links and outlives them.
  PeerLink(asio::io_context& loop, asio::ssl::context& context, std::string identity);
  PeerLink(asio::ip::tcp::socket socket, asio::io_context& loop, asio::ssl::context& context, std::string identity);

  void dial(const asio::ip::tcp::endpoint& endpoint, Handlers handlers);
  void accept(Handlers handlers);
  void send(const PeerMessage& message, std::uint32_t attempt);
  // The hello has come; the limit on time is over.
  void keep();
  void close();

 private:
  void limit_time();
  void prepare_socket();
  void shake_hands(asio::ssl::stream_base::handshake_type side);
  void read_some();
  void write_next();
  void end(const std::string& why);

  asio::io_context& loop_;
  asio::ssl::stream<asio::ip::tcp::socket> stream_;
  const std::string identity_;
  asio::steady_timer limit_;
  Handlers handlers_;
  FrameDecoder decoder_;
  FrameEncoder encoder_;
  std::array<char, 16384> buffer_{};
  std::deque<std::string> outgoing_;
  std::size_t outgoing_bytes_ = 0;
  bool writing_ = false;
  bool secured_ = false;
  bool open_ = true;
};

}  // namespace rekindle::sidecar
