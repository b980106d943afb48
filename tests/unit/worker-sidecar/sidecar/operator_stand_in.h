// The operator as far as sidecars see it: one HTTPS endpoint that keeps a table of the pods that
// have called, and remembers what they report. Speaks docs/formats/operator-protocol.md with long
// polls.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "common/net/http_server.h"
#include "tests/support/certificates.h"

namespace rekindle::sidecar {

class OperatorStandIn {
 public:
  OperatorStandIn(const TestAuthority& authority, std::string job_uid, std::uint32_t pods)
      : job_uid_(std::move(job_uid)), pods_(pods) {
    auto server = HttpServer::start({.address = "127.0.0.1",
                                     .tls = server_context(authority.server({.ip = {"127.0.0.1"}}), authority.pem()),
                                     .workers = 16},
                                    [this](const ServedRequest& served) { return serve(served); });
    EXPECT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
  }

  std::string address() const { return "127.0.0.1:" + std::to_string(server_->port()); }

  void order(nlohmann::json order) {
    const std::lock_guard lock(mutex_);
    orders_.push_back(std::move(order));
    ++version_;
    changed_.notify_all();
  }
  // A new life of the job: the pods of the old one are gone.
  void forget_pods() {
    const std::lock_guard lock(mutex_);
    for (const auto& [ordinal, pod] : table_) gone_.insert(pod["uid"].get<std::string>());
    table_.clear();
    ++version_;
    changed_.notify_all();
  }
  // As an operator that was started anew: it knows the pods, and where they are only once they have
  // called.
  void forget_addresses() {
    const std::lock_guard lock(mutex_);
    for (auto& [ordinal, pod] : table_) pod["address"] = "";
    ++version_;
    changed_.notify_all();
  }
  nlohmann::json report_of(std::uint32_t ordinal) {
    const std::lock_guard lock(mutex_);
    const auto found = reports_.find(ordinal);
    return found == reports_.end() ? nlohmann::json::object() : found->second;
  }
  // The newest breakpoint in that state that any pod has reported, or null.
  nlohmann::json breakpoint(const std::string& state) {
    const std::lock_guard lock(mutex_);
    for (const auto& [ordinal, report] : reports_) {
      if (!report.contains("breakpoints")) continue;
      for (const auto& entry : report["breakpoints"]) {
        if (entry["state"] == state) return entry;
      }
    }
    return nullptr;
  }
  std::string problem(const std::string& code) {
    const std::lock_guard lock(mutex_);
    for (const auto& [ordinal, report] : reports_) {
      if (!report.contains("problems")) continue;
      for (const auto& entry : report["problems"]) {
        if (entry["code"] == code) return entry["message"];
      }
    }
    return {};
  }

 private:
  HttpResponse serve(const ServedRequest& served) {
    const nlohmann::json request = nlohmann::json::parse(served.request.body, nullptr, false);
    if (served.request.path != "/v1/sync" || request.is_discarded()) return {.status = 400};
    if (!served.peer_uri || !served.peer_uri->ends_with("/" + job_uid_)) return {.status = 403};
    std::unique_lock lock(mutex_);
    const std::uint32_t ordinal = request["ordinal"];
    nlohmann::json pod{{"name", request["pod"]["name"]}, {"uid", request["pod"]["uid"]}, {"ordinal", ordinal},
                       {"address", request["address"]},  {"port", request["port"]},      {"old", false}};
    // A last call of the old life may be read after the new one has begun.
    if (gone_.contains(pod["uid"].get<std::string>())) return {.status = 404};
    if (table_[ordinal] != pod) {
      table_[ordinal] = std::move(pod);
      ++version_;
      changed_.notify_all();
    }
    reports_[ordinal] = request["report"];
    const std::uint64_t seen = request["seen"];
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(request["wait_seconds"].get<int>());
    while (version_ <= seen && !served.stopping.stop_requested() && !served.peer_gone() &&
           std::chrono::steady_clock::now() < until) {
      changed_.wait_for(lock, std::chrono::milliseconds(20));
    }
    nlohmann::json answer{
        {"version", version_},          {"job", {{"namespace", "team"}, {"name", "digits"}, {"uid", job_uid_}}},
        {"pods_expected", pods_},       {"pods", nlohmann::json::array()},
        {"go", table_.size() == pods_}, {"orders", orders_}};
    for (const auto& [place, entry] : table_) answer["pods"].push_back(entry);
    return {.status = 200, .headers = {{"Content-Type", "application/json"}}, .body = answer.dump()};
  }

  const std::string job_uid_;
  const std::uint32_t pods_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t version_ = 1;
  std::map<std::uint32_t, nlohmann::json> table_;
  std::map<std::uint32_t, nlohmann::json> reports_;
  std::set<std::string> gone_;  // pods of earlier lives
  nlohmann::json orders_ = nlohmann::json::array();
  std::unique_ptr<HttpServer> server_;  // last: its workers use the rest
};

}  // namespace rekindle::sidecar
