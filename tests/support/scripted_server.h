// A TCP server on loopback that sends and receives exactly the bytes of a test, right or wrong. One
// script a connection, in order; it runs on a thread of the server.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "common/net/socket.h"
#include "common/system/clock.h"

namespace rekindle {

// What a script can do with its connection.
class ScriptedPeer {
 public:
  ScriptedPeer(FileDescriptor descriptor, int stop) : descriptor_(std::move(descriptor)), stop_(stop) {}

  // False when the peer takes nothing any more.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::send(descriptor_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count < 0) {
        if (errno != EAGAIN || !wait(true)) return false;
        continue;
      }
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }

  // Reads until what was received ends with `end`, or the peer hangs up. Gives everything received
  // since the last call.
  std::string receive_until(std::string_view end) {
    std::string received;
    while (!received.ends_with(end)) {
      char buffer[4096];
      const ssize_t count = recv(descriptor_.get(), buffer, sizeof buffer, 0);
      if (count == 0) break;
      if (count > 0) received.append(buffer, static_cast<std::size_t>(count));
      if (count < 0 && (errno != EAGAIN || !wait(false))) break;
    }
    return received;
  }

  // Until the peer hangs up or the test is over.
  void receive_all() { receive_until("no request ends like this"); }

 private:
  bool wait(bool to_write) {
    const auto readiness = wait_for(descriptor_.get(), to_write, monotonic_now() + std::chrono::seconds(60), stop_);
    return readiness && *readiness == Readiness::ready;
  }

  FileDescriptor descriptor_;
  int stop_;
};

class ScriptedServer {
 public:
  using Script = std::function<void(ScriptedPeer&)>;

  explicit ScriptedServer(std::vector<Script> scripts) : listener_(listen_on("127.0.0.1", 0).value()) {
    port_ = local_port(listener_.get());
    thread_ = std::thread([this, scripts = std::move(scripts)] {
      for (const Script& script : scripts) {
        const auto far = monotonic_now() + std::chrono::seconds(60);
        const auto readiness = wait_for(listener_.get(), false, far, stop_.descriptor());
        if (!readiness || *readiness != Readiness::ready) return;
        FileDescriptor accepted(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        ++connections_;
        ScriptedPeer peer(std::move(accepted), stop_.descriptor());
        script(peer);
      }
    });
  }
  ~ScriptedServer() {
    stop_.wake();
    thread_.join();
  }

  std::uint16_t port() const { return port_; }
  int connections() const { return connections_; }

 private:
  FileDescriptor listener_;
  std::uint16_t port_ = 0;
  Waker stop_;
  std::atomic<int> connections_{0};
  std::thread thread_;
};

}  // namespace rekindle
