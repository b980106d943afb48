#include "training.h"

#include <chrono>
#include <cstdio>
#include <ctime>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "adam.h"
#include "allreduce.h"
#include "data.h"
#include "journal.h"
#include "model.h"
#include "safetensors.h"
#include "session.h"

namespace digits {
namespace {

constexpr double kLearningRate = 1e-3;

double cpu_milliseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

double wall_milliseconds() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// What became of the loop.
enum class Outcome { all_steps_done, stopped };

class Training {
 public:
  Training(const Options& options, Dataset dataset)
      : options_(options),
        dataset_(std::move(dataset)),
        global_batch_(options.batch * static_cast<std::uint64_t>(options.place.world_size)),
        sampler_(options.seed, dataset_.training.size(), global_batch_),
        model_(options.batch),
        parameters_(initial_parameters(options.seed)),
        adam_(parameters_.size(), kLearningRate),
        gradients_(parameters_.size() + 1),
        images_(options.batch) {}

  Result<int> run() {
    Status opened = open_files();
    if (opened) opened = session_.open(options_);
    if (opened) opened = session_.register_all(parameters_, adam_);
    if (!opened) return failure(opened.error());
    Result<Position> at = session_.restore();
    if (!at) return failure(at.error());
    if (Status agreed = take_position(*at); !agreed) return failure(agreed.error());

    ring_.emplace(options_.place, attempt_);
    Result<Outcome> outcome = take_steps(at->step + 1);
    if (outcome && *outcome == Outcome::all_steps_done) outcome = finish();
    if (!outcome) return failure(outcome.error());
    if (*outcome == Outcome::stopped) say("stopped after step " + std::to_string(adam_.counters.updates));
    ring_.reset();  // hangs up, so that ranks which wait for us learn that we have left
    const int code = session_.close();
    return *outcome == Outcome::stopped && code == 0 ? 1 : code;
  }

 private:
  bool is_first_rank() const { return options_.place.rank == 0; }

  void say(const std::string& message) const {
    std::printf("digits rank %d: %s\n", options_.place.rank, message.c_str());
    std::fflush(stdout);
  }

  Status open_files() {
    for (const std::string& log : options_.logs) {
      if (Status opened = journal_.open(log); !opened) return opened;
    }
    if (is_first_rank() && !options_.output.empty()) {
      if (Status writable = check_writable(options_.output); !writable) return writable;
    }
    if (!options_.status_page.empty()) return status_page_.open(options_.status_page, options_.place.rank);
    return {};
  }

  // Says where training stands, and refuses to train on a mixture of two steps.
  Status take_position(const Position& at) {
    attempt_ = at.attempt;
    if (at.state_missing) adam_.counters = Adam::counters_after(at.step);
    if (adam_.counters.updates != at.step) {
      return failure("restored to step " + std::to_string(at.step) + " but the counters are of step " +
                     std::to_string(adam_.counters.updates) + "; not training on that");
    }
    if (!is_first_rank()) return {};
    if (at.step > 0) {
      say("attempt " + std::to_string(at.attempt) + " resumes after step " + std::to_string(at.step) + " from " +
          at.path);
    } else {
      say("attempt " + std::to_string(at.attempt) + " starts, " + std::to_string(dataset_.training.size()) +
          " images to learn, " + std::to_string(dataset_.held_out.size()) + " held out, " +
          std::to_string(options_.place.world_size) + " ranks");
    }
    return {};
  }

  Result<Outcome> take_steps(std::uint64_t first) {
    for (std::uint64_t step = first; step <= options_.steps; ++step) {
      status_page_.set(Doing::between, step);
      rk_status status = session_.step_begin(step);
      if (status == RK_OK) {
        const Result<rk_status> taken = take_step(step, step == first);
        if (!taken) return failure(taken.error());
        status = *taken;
      }
      if (status == RK_STOP) return Outcome::stopped;
      if (status != RK_OK) return rekindle_failure(status);
    }
    return Outcome::all_steps_done;
  }

  Result<rk_status> take_step(std::uint64_t step, bool is_first) {
    status_page_.set(Doing::computing, step);
    const double cpu_before = cpu_milliseconds();
    compute_gradients(step);
    const double compute = cpu_milliseconds() - cpu_before;

    status_page_.set(Doing::reducing, step);
    const double wall_before = wall_milliseconds();
    if (Status summed = ring_->sum(gradients_, step); !summed) return session_.collective_failed(summed.error());
    const double reduce = wall_milliseconds() - wall_before;
    average();

    if (const rk_status status = session_.update_begin(); status != RK_OK) return status;
    status_page_.set(Doing::updating, step);
    adam_.update(parameters_, std::span(gradients_).first(parameters_.size()));
    if (const rk_status status = session_.update_end(); status != RK_OK) return status;
    status_page_.set(Doing::between, step);

    report(step, is_first, compute, reduce);
    if (options_.checkpoint_every != 0 && step % options_.checkpoint_every == 0 && is_first_rank()) {
      if (const rk_status status = session_.checkpoint(); status < RK_OK) return status;
    }
    return session_.step_end();
  }

  // The loss travels behind the gradients.
  void compute_gradients(std::uint64_t step) {
    const std::uint64_t place = static_cast<std::uint64_t>(options_.place.rank) * options_.batch;
    for (std::size_t k = 0; k < images_.size(); ++k)
      images_[k] = &dataset_.training[sampler_.image_at(step, place + k)];
    gradients_.back() = model_.add_gradients(parameters_, images_, std::span(gradients_).first(parameters_.size()));
  }

  void average() {
    const float images = static_cast<float>(global_batch_);
    for (float& value : gradients_) value /= images;
  }

  void report(std::uint64_t step, bool is_first, double compute, double reduce) {
    const double loss = gradients_.back();
    if (is_first || step == options_.steps || (options_.log_every != 0 && step % options_.log_every == 0)) {
      journal_.write({.attempt = attempt_,
                      .step = step,
                      .rank = options_.place.rank,
                      .loss = loss,
                      .compute_milliseconds = compute,
                      .reduce_milliseconds = reduce});
    }
    if (!is_first_rank()) return;
    if (is_first || (options_.print_every != 0 && step % options_.print_every == 0)) {
      char message[96];
      std::snprintf(message, sizeof message, "step %llu of %llu, loss %.4f", static_cast<unsigned long long>(step),
                    static_cast<unsigned long long>(options_.steps), loss);
      say(message);
    }
  }

  // Evaluates, writes the result, and lets no rank leave before it is written: with the others
  // gone, a death of rank 0 here would leave no copy of the last steps.
  Result<Outcome> finish() {
    status_page_.set(Doing::finishing, options_.steps);
    session_.set_phase(RK_EVALUATING);
    if (is_first_rank()) {
      char message[96];
      std::snprintf(message, sizeof message, "done after step %llu, %.2f %% of the held-out digits recognised",
                    static_cast<unsigned long long>(adam_.counters.updates),
                    100.0 * model_.accuracy(parameters_, dataset_.held_out));
      say(message);
      if (!options_.output.empty()) {
        if (Status written = write_output(); !written) return failure(written.error());
      }
    }
    if (Status met = ring_->meet(options_.steps + 1); !met) {
      const rk_status status = session_.collective_failed(met.error());
      return status == RK_STOP ? Result<Outcome>(Outcome::stopped) : rekindle_failure(status);
    }
    return Outcome::all_steps_done;
  }

  Status write_output() {
    std::vector<NamedArray> arrays;
    for (const Part& part : model_parts()) {
      arrays.push_back({part.name, part.shape, std::span(parameters_).subspan(part.begin, part.elements)});
      arrays.push_back(
          {"adam.first." + part.name, part.shape, std::span(adam_.first_moments).subspan(part.begin, part.elements)});
      arrays.push_back(
          {"adam.second." + part.name, part.shape, std::span(adam_.second_moments).subspan(part.begin, part.elements)});
    }
    return write_safetensors(options_.output, arrays);
  }

  static std::unexpected<std::string> rekindle_failure(rk_status status) {
    return failure(std::string(rk_status_name(status)) + ": " + rk_last_error());
  }

  const Options& options_;
  Dataset dataset_;
  std::uint64_t global_batch_;
  Sampler sampler_;
  Model model_;
  std::vector<float> parameters_;
  Adam adam_;
  std::vector<float> gradients_;  // and the loss
  std::vector<const Image*> images_;
  std::uint64_t attempt_ = 1;
  Journal journal_;
  StatusPage status_page_;
  std::optional<AllReduce> ring_;
  Session session_;  // last: closed before the memory that it knows goes
};

}  // namespace

int train(const Options& options) {
  Result<Dataset> dataset = load_dataset(options.data, options.seed);
  Result<int> code = dataset ? Training(options, std::move(*dataset)).run() : failure(dataset.error());
  if (code) return *code;
  std::fprintf(stderr, "digits rank %d: %s\n", options.place.rank, code.error().c_str());
  return 1;
}

}  // namespace digits
