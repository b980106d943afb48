#include "operator/io/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

namespace rekindle::op {

struct Metrics::Families {
  prometheus::Registry registry;
  prometheus::Family<prometheus::Counter>& reconciles = prometheus::BuildCounter()
                                                            .Name("controller_runtime_reconcile_total")
                                                            .Help("Reconciles of jobs by result")
                                                            .Register(registry);
  prometheus::Gauge& depth = prometheus::BuildGauge()
                                 .Name("workqueue_depth")
                                 .Help("Jobs that wait to be looked at")
                                 .Register(registry)
                                 .Add({{"name", "job"}, {"controller", "job"}});
  prometheus::Family<prometheus::Counter>& reviews = prometheus::BuildCounter()
                                                         .Name("controller_runtime_webhook_requests_total")
                                                         .Help("Admission requests by webhook and outcome")
                                                         .Register(registry);
  prometheus::Family<prometheus::Gauge>& requests = prometheus::BuildGauge()
                                                        .Name("rekindle_api_requests")
                                                        .Help("Requests to the API server since the start, by outcome")
                                                        .Register(registry);
  prometheus::Gauge& waiting = prometheus::BuildGauge()
                                   .Name("rekindle_sidecars_waiting")
                                   .Help("Sidecars whose long poll is open")
                                   .Register(registry)
                                   .Add({});
  prometheus::Gauge& jobs = prometheus::BuildGauge()
                                .Name("rekindle_protected_jobs")
                                .Help("Volcano Jobs that are protected")
                                .Register(registry)
                                .Add({});
  prometheus::Family<prometheus::Counter>& troubles = prometheus::BuildCounter()
                                                          .Name("rekindle_watch_troubles_total")
                                                          .Help("Lists and watches that failed, by kind")
                                                          .Register(registry);
};

Metrics::Metrics() : families_(std::make_unique<Families>()) {}
Metrics::~Metrics() = default;

void Metrics::reconciled(std::string_view result) {
  families_->reconciles.Add({{"controller", "job"}, {"result", std::string(result)}}).Increment();
}
void Metrics::queue(std::size_t depth) { families_->depth.Set(static_cast<double>(depth)); }
void Metrics::admitted(std::string_view webhook, bool allowed) {
  families_->reviews.Add({{"webhook", std::string(webhook)}, {"allowed", allowed ? "true" : "false"}}).Increment();
}
void Metrics::requests(std::uint64_t answered, std::uint64_t errors, std::uint64_t retries) {
  families_->requests.Add({{"outcome", "answered"}}).Set(static_cast<double>(answered));
  families_->requests.Add({{"outcome", "failed"}}).Set(static_cast<double>(errors));
  families_->requests.Add({{"outcome", "retried"}}).Set(static_cast<double>(retries));
}
void Metrics::sidecars_waiting(std::size_t count) { families_->waiting.Set(static_cast<double>(count)); }
void Metrics::protected_jobs(std::size_t count) { families_->jobs.Set(static_cast<double>(count)); }
void Metrics::watch_trouble(std::string_view kind) {
  families_->troubles.Add({{"kind", std::string(kind)}}).Increment();
}

std::string Metrics::text() const { return prometheus::TextSerializer().Serialize(families_->registry.Collect()); }

}  // namespace rekindle::op
