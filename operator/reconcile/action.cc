#include "operator/reconcile/action.h"

#include "common/base/format.h"

namespace rekindle::op {
namespace {

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

struct Printer {
  std::string operator()(const CreateBreakpoint& action) const {
    const BreakpointSpec& spec = action.object.spec;
    std::string text = "create breakpoint " + action.object.name + " trigger=" + std::string(to_string(spec.trigger));
    if (spec.broken) text += " broken=" + spec.broken->uid;
    text += " pods=";
    for (std::size_t i = 0; i < spec.pods.size(); ++i) text += (i == 0 ? "" : ",") + spec.pods[i].uid;
    return text + " reason=" + quoted(spec.reason);
  }
  std::string operator()(const WriteBreakpointStatus& action) const {
    const BreakpointStatus& status = action.status;
    std::string text = "write status " + action.name + " state=" + std::string(to_string(status.state)) +
                       " step=" + std::to_string(status.step);
    for (const Condition& condition : status.conditions) {
      text += " " + condition.type + "=" + condition.status + "/" + condition.reason;
    }
    if (status.state == BreakpointState::restored) text += " first_step=" + std::to_string(status.first_step);
    return text + " message=" + quoted(status.message);
  }
  std::string operator()(const AdoptBreakpoint& action) const {
    return "adopt breakpoint " + action.name + " job_uid=" + action.job_uid;
  }
  std::string operator()(const DeletePod& action) const {
    return "delete pod " + action.name + " uid=" + action.uid +
           " grace=" + (action.grace ? std::to_string(action.grace->count()) : "own") + " why=" + quoted(action.why);
  }
  std::string operator()(const DeleteBreakpoint& action) const { return "delete breakpoint " + action.name; }
  std::string operator()(const CreateCertificateSecret& action) const { return "create secret " + action.name; }
  std::string operator()(const AnnotateLastCheckpoint& action) const {
    return "annotate job " + action.job_name + " step=" + std::to_string(action.step) + " time=" + to_text(action.time);
  }
  std::string operator()(const RecordEvent& action) const {
    return std::string("event ") + (action.warning ? "Warning " : "Normal ") + action.reason + " on " +
           action.regarding.kind + "/" + action.regarding.name + " note=" + quoted(action.note);
  }
};

}  // namespace

std::string to_text(const Action& action) { return std::visit(Printer{}, action); }

std::string to_text(const SyncOrder& order) {
  return format("order {} cause={} after={} seconds_left={}", order.breakpoint, to_string(order.cause),
                to_string(order.after), order.seconds_left);
}

}  // namespace rekindle::op
