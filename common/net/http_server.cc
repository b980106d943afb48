#include "common/net/http_server.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "common/net/connection.h"
#include "common/net/http_reader.h"
#include "common/net/http_wire.h"
#include "common/net/socket.h"
#include "common/system/clock.h"

namespace rekindle {
namespace {

constexpr std::size_t kDrainBytesMax = 256u << 10;
constexpr Duration kDrainTime = std::chrono::milliseconds(500);

int status_of_refusal(const Error& error, bool in_head) {
  switch (error.code) {
    case ErrorCode::exhausted: return in_head ? 431 : 413;
    case ErrorCode::deadline_exceeded: return 408;
    case ErrorCode::refused: return 505;
    case ErrorCode::invalid_input: return in_head ? 400 : 501;
    default: return 400;
  }
}

bool has_hung_up(int descriptor) {
  pollfd state{.fd = descriptor, .events = POLLRDHUP, .revents = 0};
  return poll(&state, 1, 0) > 0 && (state.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

}  // namespace

struct HttpServer::Shared {
  // A connection between two requests. `connection` is null before the first: the TLS handshake is
  // the worker's business.
  struct Client {
    FileDescriptor fresh;
    std::unique_ptr<Connection> connection;
    std::string address;
    Instant idle_until{};

    int descriptor() const { return connection ? connection->descriptor() : fresh.get(); }
  };

  // Constant after construction.
  HttpServerSettings settings;
  Handler handler;
  Trouble on_trouble;
  FileDescriptor listener;
  std::uint16_t port = 0;

  std::stop_source stopping;
  Waker stop_signal;  // woken for good when we stop: ends every wait for bytes of a client
  Waker returned;     // a worker gave a client back to the waiting thread

  std::mutex mutex;
  std::condition_variable work;
  // Guarded by mutex.
  std::shared_ptr<const TlsServerContext> tls;
  struct Task {
    std::unique_ptr<Client> client;
    Instant since;
  };
  std::deque<Task> tasks;
  std::vector<std::unique_ptr<Client>> coming_back;
  std::vector<std::thread> workers;
  std::size_t idle_workers = 0;
  std::size_t connections = 0;
  bool stopped = false;

  std::thread waiting_thread;

  void trouble(const Error& error) const {
    if (on_trouble) on_trouble(error);
  }

  void forget(std::unique_ptr<Client> client) {
    client.reset();
    const std::lock_guard lock(mutex);
    --connections;
  }

  // ---- the waiting thread

  void wait_for_clients() {
    std::vector<std::unique_ptr<Client>> idle;
    std::vector<pollfd> watched;
    Instant accept_again{};
    while (!stopping.stop_requested()) {
      watched.clear();
      watched.push_back({.fd = stop_signal.descriptor(), .events = POLLIN, .revents = 0});
      watched.push_back({.fd = returned.descriptor(), .events = POLLIN, .revents = 0});
      Instant wake = monotonic_now() + std::chrono::seconds(3600);
      const bool may_accept = monotonic_now() >= accept_again;
      if (!may_accept) wake = accept_again;
      watched.push_back({.fd = may_accept ? listener.get() : -1, .events = POLLIN, .revents = 0});
      for (const std::unique_ptr<Client>& client : idle) {
        watched.push_back({.fd = client->descriptor(), .events = POLLIN, .revents = 0});
        wake = std::min(wake, client->idle_until);
      }
      const Duration left = std::max(wake - monotonic_now(), Duration::zero());
      const timespec limit{.tv_sec = static_cast<time_t>(left / std::chrono::seconds(1)),
                           .tv_nsec = static_cast<long>((left % std::chrono::seconds(1)).count())};
      // interrupted by a signal
      if (ppoll(watched.data(), watched.size(), &limit, nullptr) < 0) continue;

      const Instant now = monotonic_now();
      for (std::size_t at = 0; at < idle.size(); ++at) {
        if (watched[at + 3].revents != 0) {
          hand_to_worker(std::move(idle[at]));
        } else if (now >= idle[at]->idle_until) {
          forget(std::move(idle[at]));
        }
      }
      std::erase(idle, nullptr);
      if (watched[1].revents != 0) {
        returned.take();
        const std::lock_guard lock(mutex);
        std::ranges::move(coming_back, std::back_inserter(idle));
        coming_back.clear();
      }
      if (watched[2].revents != 0 && !accept_clients(idle)) {
        accept_again = monotonic_now() + std::chrono::milliseconds(100);
      }
    }
    for (std::unique_ptr<Client>& client : idle) forget(std::move(client));
  }

  // Takes everybody who waits at the door. False when the process has no descriptor left, so that
  // we do not spin.
  bool accept_clients(std::vector<std::unique_ptr<Client>>& idle) {
    while (true) {
      FileDescriptor descriptor(accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!descriptor) {
        if (errno == EAGAIN || errno == EWOULDBLOCK) return true;
        if (errno == EINTR || errno == ECONNABORTED) continue;
        trouble(fail_errno(errno, "cannot accept a connection").error());
        return false;
      }
      {
        const std::lock_guard lock(mutex);
        if (connections >= settings.connections_max) continue;  // the descriptor closes here
        ++connections;
      }
      tune_connection(descriptor.get());
      auto client = std::make_unique<Client>();
      client->address = peer_address(descriptor.get());
      client->fresh = std::move(descriptor);
      client->idle_until = monotonic_now() + settings.head_limit;
      idle.push_back(std::move(client));
    }
  }

  void hand_to_worker(std::unique_ptr<Client> client) {
    const std::lock_guard lock(mutex);
    tasks.push_back({std::move(client), monotonic_now()});
    if (idle_workers < tasks.size() && workers.size() < settings.workers) {
      workers.emplace_back([this] { work_for_clients(); });
    }
    work.notify_one();
  }

  // ---- worker threads

  void work_for_clients() {
    std::unique_lock lock(mutex);
    while (true) {
      ++idle_workers;
      work.wait(lock, [&] { return stopped || !tasks.empty(); });
      --idle_workers;
      if (tasks.empty()) return;
      Task task = std::move(tasks.front());
      tasks.pop_front();
      std::shared_ptr<const TlsServerContext> context = tls;
      lock.unlock();
      std::unique_ptr<Client> client = serve(std::move(task), context);
      if (client) {
        client->idle_until = monotonic_now() + settings.idle_limit;
        const std::lock_guard again(mutex);
        coming_back.push_back(std::move(client));
        returned.wake();
      }
      lock.lock();
    }
  }

  // Serves the requests that have arrived. The client when its connection is to be kept, else null.
  std::unique_ptr<Client> serve(Task task, const std::shared_ptr<const TlsServerContext>& context) {
    std::unique_ptr<Client> client = std::move(task.client);
    const Instant head_deadline = task.since + settings.head_limit;
    if (!client->connection) {
      if (Status status = open(*client, context, head_deadline); !status) {
        if (!stopping.stop_requested()) trouble(status.error());
        forget(std::move(client));
        return nullptr;
      }
    }
    HttpReader reader(*client->connection);
    if (monotonic_now() >= head_deadline) {
      refuse(*client, 503, Error{ErrorCode::exhausted, "no worker was free in time", Retry::yes});
      forget(std::move(client));
      return nullptr;
    }
    Instant deadline = head_deadline;
    while (serve_one(*client, reader, deadline)) {
      // What is left in the reader's buffer is a request already; it cannot be waited for.
      if (!reader.has_bytes()) return client;
      deadline = monotonic_now() + settings.head_limit;
    }
    client->connection->close_politely();
    forget(std::move(client));
    return nullptr;
  }

  Status open(Client& client, const std::shared_ptr<const TlsServerContext>& context, Instant deadline) {
    if (!context) {
      client.connection = make_plain_connection(std::move(client.fresh));
      return {};
    }
    Result<ConnectionPointer> made = make_tls_server_connection(std::move(client.fresh), *context, client.address,
                                                                deadline, stop_signal.descriptor());
    if (!made) return std::unexpected(made.error());
    client.connection = std::move(*made);
    return {};
  }

  // True when the connection stays open for the next request.
  bool serve_one(Client& client, HttpReader& reader, Instant deadline) {
    const int interrupt = stop_signal.descriptor();
    const Result<std::string> head =
        reader.read_head(settings.head_bytes_max, settings.head_limit, deadline, interrupt);
    if (head && head->empty()) return false;  // hung up between two requests
    if (!head) {
      if (reader.has_begun()) refuse(client, status_of_refusal(head.error(), true), head.error());
      return false;
    }
    Result<HttpRequest> request = parse_request_head(*head);
    if (!request) {
      refuse(client, status_of_refusal(request.error(), true), request.error());
      return false;
    }
    if (Status status = read_body(client, reader, *request); !status) return false;

    bool keep_open = keeps_open(request->headers) && !stopping.stop_requested();
    const bool is_head = request->method == "HEAD";
    HttpResponse response = handle(client, std::move(*request));
    keep_open = keep_open && !stopping.stop_requested();
    return write(client, response, is_head, keep_open) && keep_open;
  }

  Status read_body(Client& client, HttpReader& reader, HttpRequest& request) {
    const auto refused = [&](int status, const Error& error) -> Status {
      refuse(client, status, error);
      return std::unexpected(error);
    };
    const Result<BodyFraming> framing = framing_of_request(request);
    if (!framing) return refused(status_of_refusal(framing.error(), false), framing.error());
    if (request.headers.has("Expect")) {
      if (!equal_ignoring_case(request.headers.value_of("Expect"), "100-continue")) {
        return refused(417, Error{ErrorCode::refused, "a client expects what we do not know"});
      }
      const bool fits = framing->kind != BodyFraming::Kind::length || framing->length <= settings.body_bytes_max;
      if (fits && framing->kind != BodyFraming::Kind::none) write(client, {.status = 100}, false, true);
    }
    reader.begin_body(*framing);
    Result<std::string> body = reader.read_body(settings.body_bytes_max, settings.body_limit,
                                                monotonic_now() + settings.body_limit, stop_signal.descriptor());
    if (!body) return refused(status_of_refusal(body.error(), false), body.error());
    request.body = std::move(*body);
    return {};
  }

  HttpResponse handle(Client& client, HttpRequest request) {
    const int descriptor = client.descriptor();
    const ServedRequest served{.request = std::move(request),
                               .peer_address = client.address,
                               .peer_uri = client.connection->peer_uri(),
                               .stopping = stopping.get_token(),
                               .peer_gone = [descriptor] { return has_hung_up(descriptor); }};
    try {
      return handler(served);
    } catch (const std::exception& exception) {
      trouble({ErrorCode::internal, "the handler of " + served.request.path + " failed: " + exception.what()});
    } catch (...) {
      trouble({ErrorCode::internal, "the handler of " + served.request.path + " failed"});
    }
    return {.status = 500, .headers = {{"Content-Type", "text/plain"}}, .body = "internal error; see the log\n"};
  }

  bool write(Client& client, const HttpResponse& response, bool is_head, bool keep_open) {
    std::string bytes = encode_response_head(response, keep_open);
    const bool has_body = !is_head && response.status >= 200 && response.status != 204 && response.status != 304;
    if (has_body) bytes += response.body;
    // An answer that was made is delivered even while we stop; the limit bounds how long that can
    // take.
    const Status status =
        client.connection->write_all(bytes, settings.write_limit, monotonic_now() + settings.write_limit, -1);
    return status.has_value();
  }

  void refuse(Client& client, int status, const Error& error) {
    if (stopping.stop_requested()) return;
    trouble(with_context(error, "a request from " + client.address + " was refused with " + std::to_string(status)));
    const HttpResponse response{
        .status = status, .headers = {{"Content-Type", "text/plain"}}, .body = error.message + "\n"};
    if (!write(client, response, false, false)) return;
    // Closing while the client still writes would reset the connection and take the answer away
    // from it.
    client.connection->close_politely();
    shutdown(client.descriptor(), SHUT_WR);
    const Instant deadline = monotonic_now() + kDrainTime;
    char buffer[4096];
    for (std::size_t drained = 0; drained < kDrainBytesMax;) {
      const Result<std::size_t> count =
          client.connection->read_some(buffer, sizeof buffer, deadline, stop_signal.descriptor());
      if (!count || *count == 0) return;
      drained += *count;
    }
  }
};

HttpServer::HttpServer(std::unique_ptr<Shared> shared) : shared_(std::move(shared)) {}

Result<std::unique_ptr<HttpServer>> HttpServer::start(HttpServerSettings settings, Handler handler,
                                                      Trouble on_trouble) {
  Result<FileDescriptor> listener = listen_on(settings.address, settings.port);
  if (!listener) return std::unexpected(listener.error());
  auto shared = std::make_unique<Shared>();
  shared->settings = std::move(settings);
  shared->handler = std::move(handler);
  shared->on_trouble = std::move(on_trouble);
  shared->listener = std::move(*listener);
  shared->port = local_port(shared->listener.get());
  shared->tls = shared->settings.tls;
  shared->waiting_thread = std::thread([state = shared.get()] { state->wait_for_clients(); });
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(shared)));
}

HttpServer::~HttpServer() { stop(); }

std::uint16_t HttpServer::port() const { return shared_->port; }

void HttpServer::replace_tls(std::shared_ptr<const TlsServerContext> tls) {
  const std::lock_guard lock(shared_->mutex);
  shared_->tls = std::move(tls);
}

void HttpServer::stop() {
  if (!shared_->stopping.request_stop()) return;
  shared_->stop_signal.wake();
  shared_->waiting_thread.join();
  shared_->listener.reset();
  std::vector<std::thread> workers;
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->stopped = true;
    workers.swap(shared_->workers);
    shared_->work.notify_all();
  }
  for (std::thread& worker : workers) worker.join();
  const std::lock_guard lock(shared_->mutex);
  shared_->coming_back.clear();
  shared_->tasks.clear();
}

}  // namespace rekindle
