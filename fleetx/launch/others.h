// The launchers of the other machines of a job, seen from one: they agree on the job before it
// starts, tell each other about the first failure, and know when all workers have ended.
#pragma once

#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "fleetx/base/fd.h"
#include "fleetx/launch/plan.h"
#include "fleetx/launch/store.h"
#include "fleetx/launch/supervisor.h"

namespace fleetx::launch {

class Others {
 public:
  // Waits until all launchers are there.
  Others(const Stores& stores, LinkOptions options);
  Others(const Others&) = delete;
  Others& operator=(const Others&) = delete;

  std::vector<std::string> gather(const std::string& name, const std::string& value);

  // For the supervisor.
  int news_fd() const { return event_.get(); }
  std::optional<News> read_news();
  void failed(const std::string& what, int code, bool by_user);
  // The workers of this machine have ended; news comes when those of all have.
  void workers_done();

 private:
  void post(News news);

  double seconds_;
  Fd event_;
  std::mutex mutex_;
  std::deque<News> news_;
  std::unique_ptr<Link> link_;
  std::jthread waiting_;  // ends before the link does
};

// Every machine must have been started with flags that give the same job: names the machine that
// differs.
void check_same_job(const JobPlan& plan, const std::vector<std::string>& descriptions);
std::string description_of(const JobPlan& plan);

}  // namespace fleetx::launch
