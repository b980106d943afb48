#include "tests/support/fake_api_server.h"

#include <httplib.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include "common/base/format.h"
#include "common/net/openssl_support.h"

namespace rekindle {
namespace {

Json status_object(int code, const std::string& reason) {
  return {{"kind", "Status"}, {"apiVersion", "v1"}, {"code", code}, {"reason", reason}, {"message", "said the fake"}};
}

void answer(httplib::Response& response, int status, const Json& body) {
  response.status = status;
  response.set_content(body.dump(), "application/json");
}

std::uint64_t number_of(const std::string& text) { return text.empty() ? 0 : std::stoull(text); }

}  // namespace

struct FakeApiServer::Shared {
  struct Change {
    std::uint64_t version;
    std::string collection;
    std::string line;
  };

  std::unique_ptr<httplib::Server> server;
  int port = 0;
  std::thread thread;

  mutable std::recursive_mutex mutex;
  mutable std::condition_variable_any changed;
  // Guarded by mutex.
  std::map<std::string, std::map<std::string, Json>> collections;
  std::vector<Change> history;
  std::uint64_t version = 100;
  std::uint64_t compacted = 0;
  std::uint64_t watch_generation = 0;
  bool break_them = false;
  bool stopping = false;
  std::deque<HttpResponse> prepared;
  std::string token;
  std::vector<std::string> requests;
  HttpHeaders last_headers;
  std::size_t open_watches = 0;
  // lines for the watches that were open then
  std::vector<std::pair<std::uint64_t, std::string>> spoken;

  void record(const std::string& collection, const std::string& type, const Json& object) {
    const Json event = {{"type", type}, {"object", object}};
    history.push_back({version, collection, event.dump() + "\n"});
    changed.notify_all();
  }

  void handle(const httplib::Request& request, httplib::Response& response) {
    std::unique_lock lock(mutex);
    requests.push_back(format("{} {}", request.method, request.target));
    last_headers = {};
    for (const auto& [name, value] : request.headers) last_headers.add(name, value);
    changed.notify_all();
    if (!prepared.empty()) {
      const HttpResponse next = std::move(prepared.front());
      prepared.pop_front();
      response.status = next.status;
      for (const HttpHeader& header : next.headers) response.set_header(header.name, header.value);
      response.set_content(next.body, "application/json");
      return;
    }
    if (!token.empty() && request.get_header_value("Authorization") != "Bearer " + token) {
      answer(response, 401, status_object(401, "Unauthorized"));
    } else if (request.get_param_value("watch") == "true") {
      watch(request, response);
    } else if (collections.contains(request.path)) {
      list(request, response);
    } else {
      answer(response, 404, status_object(404, "NotFound"));
    }
  }

  void list(const httplib::Request& request, httplib::Response& response) {
    const std::map<std::string, Json>& objects = collections.at(request.path);
    const std::string continued = request.get_param_value("continue");  // "<version>/<last name>"
    const std::uint64_t limit = number_of(request.get_param_value("limit"));
    std::uint64_t list_version = version;
    auto at = objects.begin();
    if (!continued.empty()) {
      list_version = number_of(continued.substr(0, continued.find('/')));
      if (list_version <= compacted) return answer(response, 410, status_object(410, "Expired"));
      at = objects.upper_bound(continued.substr(continued.find('/') + 1));
    }
    Json items = Json::array();
    std::string last;
    for (; at != objects.end() && (limit == 0 || items.size() < limit); ++at) {
      items.push_back(at->second);
      last = at->first;
    }
    Json metadata = {{"resourceVersion", std::to_string(list_version)}};
    if (at != objects.end()) metadata["continue"] = format("{}/{}", list_version, last);
    answer(response, 200, {{"kind", "List"}, {"metadata", metadata}, {"items", items}});
  }

  void watch(const httplib::Request& request, httplib::Response& response) {
    const std::uint64_t from = number_of(request.get_param_value("resourceVersion"));
    if (from <= compacted) return answer(response, 410, status_object(410, "Expired"));
    ++open_watches;
    changed.notify_all();
    struct Cursor {
      std::uint64_t version;
      std::uint64_t generation;
      std::size_t spoken;
    };
    auto cursor = std::make_shared<Cursor>(Cursor{from, watch_generation, spoken.size()});
    response.set_chunked_content_provider(
        "application/json",
        [this, cursor, collection = request.path](std::size_t, httplib::DataSink& sink) {
          std::unique_lock guard(mutex);
          std::string bytes;
          const auto look = [&] {
            for (const Change& change : history) {
              if (change.version <= cursor->version) continue;
              cursor->version = change.version;
              if (change.collection == collection) bytes += change.line;
            }
            for (; cursor->spoken < spoken.size(); ++cursor->spoken) bytes += spoken[cursor->spoken].second;
            return !bytes.empty() || cursor->generation != watch_generation || stopping;
          };
          // Wakes from time to time as well, to notice a client that is gone.
          changed.wait_for(guard, std::chrono::milliseconds(20), look);
          const bool over = cursor->generation != watch_generation || stopping;
          const bool broken = over && break_them;
          guard.unlock();
          if (!bytes.empty()) return sink.write(bytes.data(), bytes.size());
          if (broken) return false;
          if (over) sink.done();
          return over || sink.is_writable();
        },
        [this](bool) {
          const std::lock_guard guard(mutex);
          --open_watches;
          changed.notify_all();
        });
  }
};

FakeApiServer::FakeApiServer(Options options) : shared_(std::make_shared<Shared>()) {
  shared_->token = options.token;
  if (options.tls) {
    X509Pointer certificate = certificate_of(options.tls->certificate_pem).value();
    KeyPointer key = private_key_of(options.tls->private_key_pem).value();
    X509_STORE* store = nullptr;
    if (!options.client_authorities_pem.empty()) {
      store = X509_STORE_new();
      X509_STORE_add_cert(store, certificate_of(options.client_authorities_pem).value().get());
    }
    shared_->server = std::make_unique<httplib::SSLServer>(certificate.get(), key.get(), store);
  } else {
    shared_->server = std::make_unique<httplib::Server>();
  }
  shared_->server->new_task_queue = [] { return new httplib::ThreadPool(16); };
  const auto handler = [shared = shared_.get()](const httplib::Request& request, httplib::Response& response) {
    shared->handle(request, response);
  };
  shared_->server->Get(".*", handler);
  shared_->server->Put(".*", handler);
  shared_->server->Post(".*", handler);
  shared_->server->Patch(".*", handler);
  shared_->server->Delete(".*", handler);
  shared_->port = shared_->server->bind_to_any_port("127.0.0.1");
  shared_->thread = std::thread([shared = shared_.get()] { shared->server->listen_after_bind(); });
  while (!shared_->server->is_running()) std::this_thread::yield();
}

FakeApiServer::~FakeApiServer() {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->stopping = true;
    shared_->changed.notify_all();
  }
  shared_->server->stop();
  shared_->thread.join();
}

std::uint16_t FakeApiServer::port() const { return static_cast<std::uint16_t>(shared_->port); }

void FakeApiServer::put(const std::string& collection, Json object) {
  const std::lock_guard lock(shared_->mutex);
  const std::string name = object["metadata"]["name"];
  object["metadata"]["resourceVersion"] = std::to_string(++shared_->version);
  std::map<std::string, Json>& objects = shared_->collections[collection];
  const std::string type = objects.contains(name) ? "MODIFIED" : "ADDED";
  objects[name] = object;
  shared_->record(collection, type, object);
}

void FakeApiServer::remove(const std::string& collection, const std::string& name) {
  const std::lock_guard lock(shared_->mutex);
  Json object = shared_->collections.at(collection).extract(name).mapped();
  object["metadata"]["resourceVersion"] = std::to_string(++shared_->version);
  shared_->record(collection, "DELETED", object);
}

void FakeApiServer::compact() {
  const std::lock_guard lock(shared_->mutex);
  shared_->compacted = shared_->version++;
}

void FakeApiServer::say_in_watches(const std::string& line) {
  const std::lock_guard lock(shared_->mutex);
  shared_->spoken.emplace_back(shared_->version, line + "\n");
  shared_->changed.notify_all();
}

void FakeApiServer::bookmark() {
  const std::lock_guard lock(shared_->mutex);
  ++shared_->version;
  const Json event = {{"type", "BOOKMARK"},
                      {"object", {{"metadata", {{"resourceVersion", std::to_string(shared_->version)}}}}}};
  say_in_watches(event.dump());
}

void FakeApiServer::close_watches() {
  const std::lock_guard lock(shared_->mutex);
  shared_->break_them = false;
  ++shared_->watch_generation;
  shared_->changed.notify_all();
}

void FakeApiServer::break_watches() {
  const std::lock_guard lock(shared_->mutex);
  shared_->break_them = true;
  ++shared_->watch_generation;
  shared_->changed.notify_all();
}

void FakeApiServer::answer_next(HttpResponse response) {
  const std::lock_guard lock(shared_->mutex);
  shared_->prepared.push_back(std::move(response));
}

void FakeApiServer::require_token(const std::string& token) {
  const std::lock_guard lock(shared_->mutex);
  shared_->token = token;
}

std::vector<std::string> FakeApiServer::requests() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->requests;
}

HttpHeaders FakeApiServer::last_headers() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->last_headers;
}

std::size_t FakeApiServer::open_watches() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->open_watches;
}

bool FakeApiServer::wait_until(const std::function<bool(const FakeApiServer&)>& condition) const {
  std::unique_lock lock(shared_->mutex);
  return shared_->changed.wait_for(lock, std::chrono::minutes(1), [&] { return condition(*this); });
}

}  // namespace rekindle
