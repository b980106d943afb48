#include "operator/reconcile/action.h"

#include "common/base/format.h"

namespace rekindle::op {
namespace {

struct Printer {
  std::string operator()(const CreateBreakpoint& action) const {
    const BreakpointSpec& spec = action.object.spec;
    std::string text = format("create breakpoint {} trigger={}", action.object.name, to_string(spec.trigger));
    if (spec.broken) text += format(" broken={}", spec.broken->uid);
    text += " pods=";
    for (std::size_t i = 0; i < spec.pods.size(); ++i) text += (i == 0 ? "" : ",") + spec.pods[i].uid;
    return text + format(" reason=\"{}\"", spec.reason);
  }
  std::string operator()(const WriteBreakpointStatus& action) const {
    const BreakpointStatus& status = action.status;
    std::string text = format("write status {} state={} step={}", action.name, to_string(status.state), status.step);
    for (const Condition& condition : status.conditions) {
      text += format(" {}={}/{}", condition.type, condition.status, condition.reason);
    }
    if (status.state == BreakpointState::restored) text += format(" first_step={}", status.first_step);
    return text + format(" message=\"{}\"", status.message);
  }
  std::string operator()(const AdoptBreakpoint& action) const {
    return format("adopt breakpoint {} job_uid={}", action.name, action.job_uid);
  }
  std::string operator()(const DeletePod& action) const {
    return format("delete pod {} uid={} grace=own why=\"{}\"", action.name, action.uid, action.why);
  }
  std::string operator()(const DeleteBreakpoint& action) const { return format("delete breakpoint {}", action.name); }
  std::string operator()(const CreateCertificateSecret& action) const {
    return format("create secret {}", action.name);
  }
  std::string operator()(const AnnotateLastCheckpoint& action) const {
    return format("annotate job {} step={} time={}", action.job_name, action.step, to_text(action.time));
  }
  std::string operator()(const RecordEvent& action) const {
    return format("event {} {} on {}/{} note=\"{}\"", action.warning ? "Warning" : "Normal", action.reason,
                  action.regarding.kind, action.regarding.name, action.note);
  }
};

}  // namespace

std::string to_text(const Action& action) { return std::visit(Printer{}, action); }

std::string to_text(const SyncOrder& order) {
  return format("order {} cause={} after={} seconds_left={}", order.breakpoint, to_string(order.cause),
                to_string(order.after), order.seconds_left);
}

}  // namespace rekindle::op
