#include "common/net/http_server.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/format.h"
#include "common/net/connection.h"
#include "common/net/http_reader.h"
#include "common/net/http_wire.h"
#include "common/net/socket.h"
#include "common/system/clock.h"

namespace rekindle {
namespace {

constexpr std::size_t kDrainBytesMax = 256u << 10;
constexpr Duration kDrainTime = std::chrono::milliseconds(500);
// Reads take what is there and wait for nothing.
constexpr Instant kAtOnce{};

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
  enum class Stage {
    opening,  // before the end of the TLS handshake
    head,
    body,
    between,  // nothing has come since the last answer
    leaving,  // answered for the last time; what it still sends is thrown away
  };

  // `connection` is null before the first byte: the TLS handshake is the workers' business.
  struct Client {
    FileDescriptor fresh;
    std::unique_ptr<Connection> connection;
    std::unique_ptr<HttpReader> reader;
    std::string address;
    Stage stage = Stage::opening;
    HttpRequest request;  // whose body is being read
    std::size_t drained = 0;
    bool served = false;  // has brought a whole request
    Instant waits_since{};
    Instant deadline{};  // of the stage; of opening and head together

    int descriptor() const { return connection ? connection->descriptor() : fresh.get(); }
    bool has_begun() const { return stage == Stage::body || (stage == Stage::head && reader->has_begun()); }
    void enter(Stage next, Instant until) {
      stage = next;
      deadline = until;
    }
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
    bool too_late = false;  // the client has not kept its time
  };
  std::deque<Task> tasks;
  std::vector<std::unique_ptr<Client>> coming_back;
  std::vector<std::thread> workers;
  std::size_t idle_workers = 0;
  std::size_t connections = 0;
  bool stopped = false;
  bool ending = false;        // no write that begins now gets its whole time
  Instant last_write_ends{};  // of those that had begun
  std::vector<int> writing;   // their descriptors

  std::condition_variable written;
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
      Instant wake = settings.now() + std::chrono::seconds(3600);
      const bool may_accept = settings.now() >= accept_again;
      if (!may_accept) wake = accept_again;
      watched.push_back({.fd = may_accept ? listener.get() : -1, .events = POLLIN, .revents = 0});
      for (const std::unique_ptr<Client>& client : idle) {
        watched.push_back({.fd = client->descriptor(), .events = POLLIN, .revents = 0});
        wake = std::min(wake, client->deadline);
      }
      const Duration left = std::max(wake - settings.now(), Duration::zero());
      const timespec limit{.tv_sec = static_cast<time_t>(left / std::chrono::seconds(1)),
                           .tv_nsec = static_cast<long>((left % std::chrono::seconds(1)).count())};
      // interrupted by a signal
      if (ppoll(watched.data(), watched.size(), &limit, nullptr) < 0) continue;

      const Instant now = settings.now();
      for (std::size_t at = 0; at < idle.size(); ++at) {
        serve_if_due(idle[at], watched[at + 3].revents != 0, now);
      }
      std::erase(idle, nullptr);
      if (watched[1].revents != 0) {
        returned.take();
        const std::lock_guard lock(mutex);
        std::ranges::move(coming_back, std::back_inserter(idle));
        coming_back.clear();
      }
      if (watched[2].revents != 0 && !accept_clients(idle)) {
        accept_again = settings.now() + std::chrono::milliseconds(100);
      }
    }
    for (std::unique_ptr<Client>& client : idle) forget(std::move(client));
  }

  // A client that has sent something, or whose time may be over. Null behind it: it is not waited
  // for any more.
  void serve_if_due(std::unique_ptr<Client>& client, bool readable, Instant now) {
    const bool too_late = now >= client->deadline;
    if (!readable && !too_late) return;
    if (client->stage == Stage::leaving) {
      if (too_late || !drain(*client)) forget(std::move(client));
    } else if (too_late && !client->has_begun()) {
      forget(std::move(client));
    } else {
      hand_to_worker(std::move(client), too_late);
    }
  }

  // Closing while the client still writes would reset the connection and take the answer away from
  // it. False when it has closed its end, or has sent too much.
  static bool drain(Client& client) {
    char buffer[4096];
    while (client.drained < kDrainBytesMax) {
      const ssize_t count = recv(client.descriptor(), buffer, sizeof buffer, MSG_DONTWAIT);
      if (count <= 0) return count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
      client.drained += static_cast<std::size_t>(count);
    }
    return false;
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
      if (is_full()) make_room(idle);
      if (is_full()) continue;  // the descriptor closes here
      {
        const std::lock_guard lock(mutex);
        ++connections;
      }
      tune_connection(descriptor.get());
      auto client = std::make_unique<Client>();
      client->address = peer_address(descriptor.get());
      client->fresh = std::move(descriptor);
      client->waits_since = settings.now();
      client->enter(Stage::opening, settings.now() + settings.head_limit);
      idle.push_back(std::move(client));
    }
  }

  bool is_full() {
    const std::lock_guard lock(mutex);
    return connections >= settings.connections_max;
  }

  void make_room(std::vector<std::unique_ptr<Client>>& idle) {
    const auto oldest = std::ranges::min_element(
        idle, {}, [](const std::unique_ptr<Client>& client) { return std::pair(client->served, client->waits_since); });
    if (oldest == idle.end()) return;
    forget(std::move(*oldest));
    idle.erase(oldest);
  }

  void hand_to_worker(std::unique_ptr<Client> client, bool too_late) {
    std::optional<Error> no_thread;
    std::unique_ptr<Client> nobody_serves;
    {
      const std::lock_guard lock(mutex);
      tasks.push_back({std::move(client), settings.now(), too_late});
      if (idle_workers < tasks.size() && workers.size() < settings.workers) {
        if (Status status = start_worker(); !status) no_thread = status.error();
      }
      if (workers.empty()) {
        nobody_serves = std::move(tasks.back().client);
        tasks.pop_back();
      }
      work.notify_one();
    }
    if (nobody_serves) forget(std::move(nobody_serves));
    if (no_thread) trouble(*no_thread);
  }

  Status start_worker() {
    try {
      workers.push_back(settings.make_thread([this] { work_for_clients(); }));
    } catch (const std::system_error& error) {
      return fail(ErrorCode::exhausted, std::string("no thread for another worker: ") + error.what(), Retry::yes);
    }
    return {};
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
      std::unique_ptr<Client> client = std::move(task.client);
      if (advance(*client, task, context)) {
        client->waits_since = settings.now();
        const std::lock_guard again(mutex);
        coming_back.push_back(std::move(client));
        returned.wake();
      } else {
        forget(std::move(client));
      }
      lock.lock();
    }
  }

  enum class Next { go_on, wait, hang_up };

  // Goes as far as the bytes that have arrived allow, and never waits for more. True when the
  // client is to be waited for, else its connection is over.
  bool advance(Client& client, const Task& task, const std::shared_ptr<const TlsServerContext>& context) {
    Next next = Next::go_on;
    if (stopping.stop_requested()) {
      next = Next::hang_up;
    } else if (client.stage == Stage::opening) {
      next = open(client, context);
    } else if (task.too_late) {
      next = refuse(client, 408, Error{ErrorCode::deadline_exceeded, "no bytes came in time", Retry::yes});
    }
    if (next == Next::go_on && settings.now() >= task.since + settings.head_limit) {
      next = refuse(client, 503, Error{ErrorCode::exhausted, "no worker was free in time", Retry::yes});
    }
    if (client.stage == Stage::between) client.enter(Stage::head, settings.now() + settings.head_limit);
    while (next == Next::go_on) {
      if (client.stage == Stage::head) next = read_head(client);
      if (next == Next::go_on) next = read_body(client);
      if (next == Next::go_on) next = answer(client);
    }
    return next == Next::wait;
  }

  Next open(Client& client, const std::shared_ptr<const TlsServerContext>& context) {
    Status status;
    if (!client.connection) {
      if (context) {
        Result<ConnectionPointer> made = make_tls_server_connection(std::move(client.fresh), *context, client.address);
        if (made) {
          client.connection = *std::move(made);
        } else {
          status = std::unexpected(made.error());
        }
      } else {
        client.connection = make_plain_connection(std::move(client.fresh));
      }
    }
    if (status) status = client.connection->open(kAtOnce, stop_signal.descriptor());
    if (!status && status.error().code == ErrorCode::deadline_exceeded) return Next::wait;
    if (!status) {
      if (!stopping.stop_requested()) trouble(status.error());
      return Next::hang_up;
    }
    client.reader = std::make_unique<HttpReader>(*client.connection);
    client.stage = Stage::head;  // within the time that the client got when it came
    return Next::go_on;
  }

  Next read_head(Client& client) {
    const Result<std::string> head =
        client.reader->read_head(settings.head_bytes_max, Duration::zero(), kAtOnce, stop_signal.descriptor());
    if (!head && head.error().code == ErrorCode::deadline_exceeded) return Next::wait;
    if (head && head->empty()) return Next::hang_up;  // it hung up between two requests
    if (!head) {
      if (!client.reader->has_begun()) return Next::hang_up;
      return refuse(client, status_of_refusal(head.error(), true), head.error());
    }
    Result<HttpRequest> request = parse_request_head(*head);
    if (!request) return refuse(client, status_of_refusal(request.error(), true), request.error());
    const Result<BodyFraming> framing = framing_of_request(*request);
    if (!framing) return refuse(client, status_of_refusal(framing.error(), false), framing.error());
    if (request->headers.has("Expect")) {
      if (!equal_ignoring_case(request->headers.value_of("Expect"), "100-continue")) {
        return refuse(client, 417, Error{ErrorCode::refused, "a client expects what we do not know"});
      }
      const bool fits = framing->kind != BodyFraming::Kind::length || framing->length <= settings.body_bytes_max;
      if (fits && framing->kind != BodyFraming::Kind::none) write(client, {.status = 100}, false, true);
    }
    client.reader->begin_body(*framing);
    client.request = *std::move(request);
    client.enter(Stage::body, settings.now() + settings.body_limit);
    return Next::go_on;
  }

  Next read_body(Client& client) {
    while (true) {
      const Result<bool> ended =
          client.reader->append_piece(client.request.body, settings.body_bytes_max, kAtOnce, stop_signal.descriptor());
      if (ended && *ended) return Next::go_on;
      if (!ended && ended.error().code == ErrorCode::deadline_exceeded) return Next::wait;
      if (!ended) return refuse(client, status_of_refusal(ended.error(), false), ended.error());
      // A client that is never silent is never waited for.
      if (settings.now() >= client.deadline) {
        return refuse(client, 408, Error{ErrorCode::deadline_exceeded, "a body did not end in time", Retry::yes});
      }
    }
  }

  Next answer(Client& client) {
    client.served = true;
    HttpRequest request = std::exchange(client.request, {});
    bool keep_open = keeps_open(request.headers) && !stopping.stop_requested();
    const bool is_head = request.method == "HEAD";
    const HttpResponse response = handle(client, std::move(request));
    keep_open = keep_open && !stopping.stop_requested();
    if (!write(client, response, is_head, keep_open) || !keep_open) {
      client.connection->close_politely();
      return Next::hang_up;
    }
    // What is left in the reader's buffer may be a request already; nobody would wake us for it.
    if (client.reader->has_bytes()) {
      client.enter(Stage::head, settings.now() + settings.head_limit);
      return Next::go_on;
    }
    client.enter(Stage::between, settings.now() + settings.idle_limit);
    return Next::wait;
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
      trouble({ErrorCode::internal, format("the handler of {} failed: {}", served.request.path, exception.what())});
    } catch (...) {
      trouble({ErrorCode::internal, format("the handler of {} failed", served.request.path)});
    }
    return {.status = 500, .headers = {{"Content-Type", "text/plain"}}, .body = "internal error; see the log\n"};
  }

  bool write(Client& client, const HttpResponse& response, bool is_head, bool keep_open) {
    std::string bytes = encode_response_head(response, keep_open);
    const bool has_body = !is_head && response.status >= 200 && response.status != 204 && response.status != 304;
    if (has_body) bytes += response.body;
    // An answer that was made is delivered even while we stop; the limit bounds how long that can
    // take, by the clock of the socket.
    const int descriptor = client.descriptor();
    const Duration limit = begin_write(descriptor);
    const Status status = client.connection->write_all(bytes, limit, monotonic_now() + limit, -1);
    end_write(descriptor);
    return status.has_value();
  }

  Duration begin_write(int descriptor) {
    const std::lock_guard lock(mutex);
    if (ending) return std::min(settings.write_limit, settings.last_write_limit);
    writing.push_back(descriptor);
    return settings.write_limit;
  }

  void end_write(int descriptor) {
    const std::lock_guard lock(mutex);
    std::erase(writing, descriptor);
    if (writing.empty()) written.notify_all();
  }

  // Clients that do not read would be written to for the whole limit.
  void end_writes() {
    std::unique_lock lock(mutex);
    written.wait_for(lock, last_write_ends - monotonic_now(), [&] { return writing.empty(); });
    for (const int descriptor : writing) shutdown(descriptor, SHUT_RDWR);
  }

  Next refuse(Client& client, int status, const Error& error) {
    if (stopping.stop_requested()) return Next::hang_up;
    trouble(with_context(error, format("a request from {} was refused with {}", client.address, status)));
    const HttpResponse response{
        .status = status, .headers = {{"Content-Type", "text/plain"}}, .body = error.message + "\n"};
    if (!write(client, response, false, false)) return Next::hang_up;
    client.connection->close_politely();
    shutdown(client.descriptor(), SHUT_WR);
    client.enter(Stage::leaving, settings.now() + kDrainTime);
    return Next::wait;
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
  if (!shared->stop_signal || !shared->returned) return no_descriptor_left();
  try {
    shared->waiting_thread = shared->settings.make_thread([state = shared.get()] { state->wait_for_clients(); });
  } catch (const std::system_error& error) {
    return fail(ErrorCode::exhausted, std::string("no thread for a server: ") + error.what(), Retry::yes);
  }
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(shared)));
}

HttpServer::~HttpServer() { stop(); }

std::uint16_t HttpServer::port() const { return shared_->port; }

void HttpServer::replace_tls(std::shared_ptr<const TlsServerContext> tls) {
  const std::lock_guard lock(shared_->mutex);
  shared_->tls = std::move(tls);
}

void HttpServer::request_stop() {
  {
    const std::lock_guard lock(shared_->mutex);
    if (shared_->ending) return;
    shared_->ending = true;
    shared_->last_write_ends = monotonic_now() + shared_->settings.last_write_limit;
  }
  shared_->stopping.request_stop();
  shared_->stop_signal.wake();
}

void HttpServer::stop() {
  if (!shared_->waiting_thread.joinable()) return;
  request_stop();
  shared_->waiting_thread.join();
  shared_->listener.reset();
  std::vector<std::thread> workers;
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->stopped = true;
    workers.swap(shared_->workers);
    shared_->work.notify_all();
  }
  shared_->end_writes();
  for (std::thread& worker : workers) worker.join();
  const std::lock_guard lock(shared_->mutex);
  shared_->coming_back.clear();
  shared_->tasks.clear();
}

}  // namespace rekindle
