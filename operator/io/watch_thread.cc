#include "operator/io/watch_thread.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>

#include "common/base/format.h"
#include "common/system/clock.h"
#include "operator/kube/line_splitter.h"

namespace rekindle::op {
namespace {

// How often a silent stream lets the machine check the time.
constexpr Duration kQuietMin = std::chrono::milliseconds(5);
constexpr Duration kQuietMax = std::chrono::seconds(1);

}  // namespace

// Performs the outputs of the machine in order. A stream is read inside stream(); the inputs that
// it yields go straight to the machine, and what the machine wants done while a stream is open
// (deliver, close) needs no other call.
class WatchThread::Driver {
 public:
  Driver(KubeTransport& transport, Job job, Deliver deliver, OnTrouble on_trouble, std::uint64_t seed,
         std::stop_token stop)
      : transport_(transport),
        job_(std::move(job)),
        deliver_(std::move(deliver)),
        on_trouble_(std::move(on_trouble)),
        machine_(job_.settings, seed),
        stop_(std::move(stop)) {}

  void run() {
    take(watch::Tick{});
    while (!ended()) {
      if (next_list_) {
        list(*std::exchange(next_list_, std::nullopt));
      } else if (next_watch_) {
        watch_once(*std::exchange(next_watch_, std::nullopt));
      } else {
        wait_until(wake_at_);
        take(watch::Tick{});
      }
    }
  }

 private:
  std::string doing(std::string_view verb) const {
    std::string what = format("{} {}", verb, job_.resource.plural);
    if (!job_.selection.namespace_name.empty()) what += " in " + job_.selection.namespace_name;
    return what;
  }

  void take(watch::Input input) {
    for (watch::Output& output : machine_.advance(std::move(input), monotonic_now())) {
      std::visit([this](auto& one) { perform(one); }, output);
    }
  }

  void perform(watch::SendList& output) { next_list_ = std::move(output); }
  void perform(watch::OpenWatch& output) { next_watch_ = std::move(output); }
  void perform(watch::CloseWatch&) { close_ = true; }
  void perform(watch::WakeAt& output) { wake_at_ = output.when; }
  void perform(watch::Trouble& output) {
    if (!on_trouble_ || stop_.stop_requested()) return;
    on_trouble_(job_, with_context(std::move(output.error), doing("watching")), output.next);
  }
  void perform(watch::Emit& output) {
    if (!taken_away_ && !deliver_(std::move(output.event), stop_)) taken_away_ = true;
  }

  void list(const watch::SendList& wanted) {
    const HttpRequest request =
        list_request(job_.resource, job_.selection, {.limit = wanted.limit, .continue_token = wanted.continue_token});
    const Result<HttpResponse> response = transport_.send(request, stop_);
    if (ended()) return;
    if (!response) {
      take(watch::ListFailed{response.error(), std::nullopt});
      return;
    }
    Result<ListPage> page = read_list_page(*response, doing("listing"));
    if (page) {
      take(watch::PageArrived{std::move(*page)});
    } else {
      take(watch::ListFailed{page.error(), retry_after(*response)});
    }
  }

  void watch_once(const watch::OpenWatch& wanted) {
    const HttpRequest request = watch_request(job_.resource, job_.selection,
                                              {.resource_version = wanted.resource_version, .timeout = wanted.timeout});
    close_ = false;
    LineSplitter lines;
    TransportSink sink;
    sink.on_bytes = [&](std::string_view bytes) {
      const Status fed = lines.feed(bytes);
      while (std::optional<std::string> line = lines.next()) {
        take(watch::WatchLine{decode_watch_event(*line)});
        if (close_ || ended()) return false;
      }
      if (!fed) take(watch::WatchLine{std::unexpected(fed.error())});
      return !close_ && !ended();
    };
    sink.on_quiet = [&] {
      if (monotonic_now() >= wake_at_) take(watch::Tick{});
      return !close_ && !ended();
    };
    sink.quiet_interval = std::clamp<Duration>(job_.settings.idle_limit / 4, kQuietMin, kQuietMax);
    const Result<HttpResponse> end = transport_.stream(request, sink, stop_);
    if (ended()) return;
    if (!end) {
      take(watch::StreamClosed{end.error(), std::nullopt});
      return;
    }
    if (end->status < 200 || end->status > 299) {
      const Result<Json> refusal = read_answer(*end, doing("watching"));
      take(watch::StreamClosed{refusal.error(), retry_after(*end)});
      return;
    }
    // The end came in the middle of a line: what it would have said comes again, since the version
    // did not advance.
    take(watch::StreamClosed{});
  }

  // The receiver takes no more events: we were stopped, or the mailbox is closed.
  bool ended() const { return taken_away_ || stop_.stop_requested(); }

  void wait_until(Instant when) {
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock lock(mutex);
    const Duration left = std::max(when - monotonic_now(), Duration::zero());
    never.wait_for(lock, stop_, left, [] { return false; });
  }

  KubeTransport& transport_;
  const Job job_;
  const Deliver deliver_;
  const OnTrouble on_trouble_;
  WatchMachine machine_;
  const std::stop_token stop_;

  std::optional<watch::SendList> next_list_;
  std::optional<watch::OpenWatch> next_watch_;
  Instant wake_at_{};
  bool close_ = false;
  bool taken_away_ = false;
};

WatchThread::WatchThread(KubeTransport& transport, Job job, Deliver deliver, OnTrouble on_trouble, std::uint64_t seed)
    : thread_([&transport, job = std::move(job), deliver = std::move(deliver), on_trouble = std::move(on_trouble),
               seed](std::stop_token stop) mutable {
        Driver(transport, std::move(job), std::move(deliver), std::move(on_trouble), seed, std::move(stop)).run();
      }) {}

WatchThread::~WatchThread() { stop(); }

void WatchThread::stop() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

}  // namespace rekindle::op
