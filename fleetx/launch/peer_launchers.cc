#include "fleetx/launch/peer_launchers.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "fleetx/base/error.h"

namespace fleetx::launch {
namespace {

// A failure is sent as "<exit code> <f or u> <text>"; u: the user stopped the job.
std::string encode(const std::string& what, int code, bool by_user) {
  return str(code, by_user ? " u " : " f ", what);
}

std::optional<PeerEvent> decode(const std::string& text) {
  int code = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), code);
  const std::string_view rest(end, static_cast<size_t>(text.data() + text.size() - end));
  if (error != std::errc{} || !(rest.starts_with(" f ") || rest.starts_with(" u ")))
    return std::nullopt;
  return PeerEvent{std::string(rest.substr(3)), code, rest[1] == 'u'};
}

PeerEvent decode(const LinkFailure& failure) {
  const std::string& text = failure.what;
  if (auto event = decode(text)) return *std::move(event);
  // A launcher that died without a report. The store itself, on the first machine, has node -1.
  return {str("fleetrun on machine ", std::max(0, failure.node), " (", failure.host, ") ", text), 1,
          false};
}

// Longer than any job. The failure of a machine ends the wait.
constexpr double kNoTimeout = 10 * 365 * 86400.0;

}  // namespace

PeerLaunchers::PeerLaunchers(const Stores& stores, LinkOptions options)
    : seconds_(options.seconds), event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE)) {
  FLEETX_CHECK(event_, std::strerror(errno));
  options.on_failure = [this](const LinkFailure& failure) { post(decode(failure)); };
  link_ = stores.link(options);
}

std::vector<std::string> PeerLaunchers::gather(const std::string& name, const std::string& value) {
  return link_->gather(name, value, seconds_);
}

void PeerLaunchers::post(PeerEvent event) {
  const std::lock_guard lock(mutex_);
  events_.push_back(std::move(event));
  const uint64_t one = 1;
  FLEETX_CHECK(write(event_.get(), &one, sizeof one) > 0);
}

std::optional<PeerEvent> PeerLaunchers::next_event() {
  const std::lock_guard lock(mutex_);
  // A semaphore: each event adds one, each read takes one.
  uint64_t one = 0;
  if (read(event_.get(), &one, sizeof one) < 0) return std::nullopt;
  PeerEvent event = events_.front();
  events_.pop_front();
  return event;
}

void PeerLaunchers::report_failure(const std::string& what, int code, bool by_user) {
  try {
    link_->abort(encode(what, code, by_user));
  } catch (const Error&) {
    // Another machine failed first, and its failure has been published.
  }
}

void PeerLaunchers::workers_done(const std::string& what, int code) {
  waiting_ = std::jthread([this, own = what.empty() ? "" : encode(what, code, false)] {
    try {
      PeerEvent all;
      for (const std::string& text : link_->gather("workers_done", own, kNoTimeout))
        if (auto event = decode(text); event && all.what.empty()) all = *std::move(event);
      all.workers_done = true;
      post(all);
      link_->leave();
    } catch (const Error&) {
      // on_failure has posted the event.
    }
  });
}

std::string description_of(const JobPlan& plan) {
  return str(to_csv(plan.endpoints(JobRole::kServer)), " ",
             to_csv(plan.endpoints(JobRole::kWorker)));
}

void check_same_job(const JobPlan& plan, const std::vector<std::string>& descriptions) {
  const std::string mine = description_of(plan);
  for (size_t node = 0; node < descriptions.size(); ++node)
    check_arg(descriptions[node] == mine, "machine ", node,
              " was started with other flags: its servers and workers are '", descriptions[node],
              "', here '", mine, "'; run the same command on every machine");
}

}  // namespace fleetx::launch
