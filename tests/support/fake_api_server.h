// An API server small enough to read, on loopback and over real HTTP, written on another HTTP
// library than the client that it tests. Collections hold objects under names; each change gets the
// next version and goes to the open watches. Lists come in pages, watches resume from a version,
// and a test can compact the history, refuse requests, break streams and rotate the token.
// Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/http_message.h"
#include "common/base/json_fields.h"
#include "common/net/tls.h"

namespace rekindle {

class FakeApiServer {
 public:
  struct Options {
    std::optional<TlsKeyPair> tls;
    std::string client_authorities_pem;  // set: only clients with a certificate under these
    std::string token;                   // set: 401 for anybody without it
  };

  explicit FakeApiServer(Options options = {});
  ~FakeApiServer();
  FakeApiServer(const FakeApiServer&) = delete;
  FakeApiServer& operator=(const FakeApiServer&) = delete;

  std::uint16_t port() const;

  // Creates or changes an object of a collection ("/api/v1/pods"); its name is metadata.name.
  void put(const std::string& collection, Json object);
  void remove(const std::string& collection, const std::string& name);

  // Every version so far is forgotten: watches from them and continue tokens get 410.
  void compact();
  // All open watches get this line, whatever it is.
  void say_in_watches(const std::string& line);
  void bookmark();
  // All open watches end, properly or in the middle of a chunk.
  void close_watches();
  void break_watches();

  // The next request is answered like this.
  void answer_next(HttpResponse response);
  void require_token(const std::string& token);

  // Every request so far, as "GET /api/v1/pods?limit=500" (headers of the last one apart).
  std::vector<std::string> requests() const;
  HttpHeaders last_headers() const;
  std::size_t open_watches() const;

  // Blocks until `condition` holds over requests and watches, looked at after each change. False
  // after a minute.
  bool wait_until(const std::function<bool(const FakeApiServer&)>& condition) const;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace rekindle
