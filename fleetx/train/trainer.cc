#include "fleetx/train/trainer.h"

#include <chrono>
#include <cmath>

#include "fleetx/base/error.h"
#include "fleetx/base/rng.h"
#include "fleetx/fleet/fleet.h"
#include "fleetx/ir/transform.h"

namespace fleetx::train {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr const char* kHistory = "history.csv";

double seconds_between(SteadyClock::time_point a, SteadyClock::time_point b) {
  return std::chrono::duration<double>(b - a).count();
}

Metrics metrics_of(const std::vector<Tensor>& fetched, int64_t samples) {
  const auto number = [&](size_t i) { return static_cast<double>(fetched[i].item<float>()); };
  return {number(0), fetched.size() > 1 ? number(1) : std::nan(""), samples};
}

comm::Communicator* workers_of_this_job() {
  if (!fleet::is_initialized() || fleet::worker_num() == 1) return nullptr;
  return &fleet::workers();
}

// All workers must go on from the same place; who cannot see the folder would start from nothing.
void check_same_checkpoint(comm::Communicator& workers, const std::string& latest) {
  const std::string name = latest.substr(latest.rfind('/') + 1);
  const uint64_t own = stable_hash(name);
  std::vector<uint64_t> all(static_cast<size_t>(workers.size()));
  workers.all_gather(&own, all.data(), 1, i64);
  for (size_t rank = 0; rank < all.size(); ++rank)
    check_arg(all[rank] == own, "trainer: worker ", workers.rank(), " finds ",
              name.empty() ? "no checkpoint" : "the checkpoint " + latest, " and worker ", rank,
              " another one or none; checkpoint_dir must be a folder that all workers see");
}

std::string print(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

}  // namespace

// Speed, without the first step of a fit(), which makes the plan, and without evaluation.
struct Trainer::Clock {
  int64_t items = 0;
  double seconds = 0;
  bool warm = false;

  void add(int64_t count, double elapsed) {
    if (warm) {
      items += count;
      seconds += elapsed;
    }
    warm = true;
  }
  double rate() const { return seconds > 0 ? static_cast<double>(items) / seconds : 0; }
};

Trainer::Trainer(ir::Builder& builder, const ir::Var& loss, const ir::Var& accuracy,
                 TrainerOptions options)
    : options_(std::move(options)),
      workers_(workers_of_this_job()),
      main_(builder.main()),
      startup_(builder.startup()),
      progress_(speaks() ? options_.out : nullptr) {
  const TrainerOptions& o = options_;
  check_arg(o.epochs >= 1, "trainer: epochs is ", o.epochs, "; must be at least 1");
  check_arg(o.log_every >= 1, "trainer: log_every is ", o.log_every, "; must be at least 1");
  check_arg(o.checkpoint_every >= 0 && o.max_steps >= 0,
            "trainer: checkpoint_every and max_steps must not be negative");
  check_arg(!o.checkpoint_dir.empty() || (!o.resume && o.checkpoint_every == 0),
            "trainer: resume and checkpoint_every need a checkpoint_dir");
  fetch_.push_back(loss.name());
  if (accuracy.defined()) fetch_.push_back(accuracy.name());
  if (o.seed) {
    main_.set_seed(*o.seed);
    startup_.set_seed(*o.seed);
  }
  test_ = ir::prune(ir::clone_for_test(main_), fetch_);
  restore();
  if (!o.event_dir.empty() && speaks()) events_.emplace(o.event_dir);
}

void Trainer::restore() {
  const std::string latest =
      options_.checkpoint_dir.empty() ? "" : latest_checkpoint(options_.checkpoint_dir);
  if (workers_ != nullptr) check_same_checkpoint(*workers_, latest);
  executor_.run(startup_, scope_);  // also what no checkpoint holds
  if (latest.empty()) return;
  check_arg(options_.resume, "trainer: ", latest,
            " is there already; resume from it or use another checkpoint_dir");
  const State state = load_checkpoint(latest, scope_, {{"main", &main_}});
  check_arg(state.seed == main_.seed(), latest, ": was trained with seed ", state.seed,
            ", the program has ", main_.seed());
  step_ = state.step;
  position_ = state.position;
  if (const auto it = state.texts.find(kHistory); it != state.texts.end())
    history_ = History::parse_csv(it->second, latest + "/" + kHistory);
  if (!history_.empty()) seconds_ = history_.records().back().seconds;
  progress_.say(
      str("resuming from ", latest, " (step ", step_, ", epoch ", position_.epoch + 1, ")"));
}

bool Trainer::finished() const {
  return position_.epoch >= options_.epochs ||
         (options_.max_steps > 0 && step_ >= options_.max_steps);
}

void Trainer::fit(data::Loader& train, data::Loader* test) {
  Clock clock;
  train.seek(position_);
  while (!finished()) {
    train_epoch(train, clock);
    const bool ended = position_.epoch >= epoch_;  // else max_steps stopped it in the middle
    if (ended) finish_epoch(to_line(status(train, clock, epoch_means_), Bar::kNo), test);
    const int64_t every = options_.checkpoint_every;
    if (!options_.checkpoint_dir.empty() && (every == 0 || step_ % every == 0 || finished()))
      save();
  }
}

void Trainer::finish_epoch(std::string line, data::Loader* test) {
  close_window();
  if (test != nullptr) {
    const Metrics m = evaluate(*test);
    record("test", m.loss, m.accuracy);
    line += print("  test loss %.4f", m.loss);
    if (!std::isnan(m.accuracy)) line += print("  test acc %.2f %%", 100 * m.accuracy);
  }
  progress_.say(line);
}

void Trainer::train_epoch(data::Loader& train, Clock& clock) {
  epoch_ = position_.epoch + 1;
  epoch_means_ = {};
  while (!finished() && position_.epoch < epoch_) {
    const auto start = SteadyClock::now();
    const Metrics m = run_step(train);
    const double elapsed = seconds_between(start, SteadyClock::now());
    seconds_ += elapsed;
    clock.add(m.samples * train.options().world, elapsed);
    window_.add(m);
    epoch_means_.add(m);
    if (options_.on_step) options_.on_step(step_, m.loss);
    if (progress_.live()) progress_.show(status(train, clock, window_));
    if (position_.epoch >= epoch_) break;  // what follows an epoch comes before its checkpoint
    if (step_ % options_.log_every == 0) {
      if (!progress_.live()) progress_.say(to_line(status(train, clock, window_), Bar::kNo));
      close_window();
    }
    if (options_.checkpoint_every > 0 && step_ % options_.checkpoint_every == 0) save();
  }
}

Metrics Trainer::run_step(data::Loader& train) {
  const data::Batch batch = train.next();
  const Metrics m = metrics_of(executor_.run(main_, scope_, batch.feeds, fetch_), batch.size);
  ++step_;
  position_ = train.position();
  check_arg(
      std::isfinite(m.loss), "the loss is ", m.loss, " at step ", step_,
      "; a smaller learning rate may help, FLEETX_CHECK_FINITE=1 names the op where it began");
  return m;
}

// Puts the means since the last record into the history.
void Trainer::close_window() {
  if (window_.loss.weight() == 0) return;
  record("train", window_.loss.value(), window_.accuracy.value());
  window_ = {};
}

void Trainer::record(const std::string& split, double loss, double accuracy) {
  history_.add({split, epoch_, step_, loss, accuracy, seconds_});
  if (!events_) return;
  events_->scalar(split + "/loss", step_, loss);
  if (!std::isnan(accuracy)) events_->scalar(split + "/accuracy", step_, accuracy);
}

Status Trainer::status(const data::Loader& train, const Clock& clock, const Means& means) const {
  const data::LoaderOptions& o = train.options();
  const int64_t steps = train.batches();
  const bool ended = position_.epoch >= epoch_;
  const int64_t done = ended ? steps : position_.offset / (o.batch * o.world);
  double left = static_cast<double>((options_.epochs - epoch_) * steps + steps - done);
  if (options_.max_steps > 0)
    left = std::min(left, static_cast<double>(options_.max_steps - step_));
  const double rate = clock.rate();
  return {.epoch = epoch_,
          .epochs = options_.epochs,
          .step = done,
          .steps = steps,
          .loss = means.loss.value(),
          .accuracy = means.accuracy.value(),
          .rate = rate,
          .items = options_.items,
          .seconds_left = rate > 0 ? left * static_cast<double>(o.batch * o.world) / rate : 0};
}

Metrics Trainer::evaluate(data::Loader& test) {
  test.seek({0, 0});
  Means means;
  for (int64_t i = 0; i < test.batches(); ++i) {
    const data::Batch batch = test.next();
    means.add(metrics_of(executor_.run(test_, scope_, batch.feeds, fetch_), batch.size));
  }
  return gather(means, test);
}

Metrics Trainer::gather(const Means& means, const data::Loader& loader) const {
  const double own = means.loss.weight();
  if (workers_ == nullptr || loader.options().world == 1)
    return {means.loss.value(), means.accuracy.value(), static_cast<int64_t>(own)};
  double sums[] = {own, own * means.loss.value(), own * means.accuracy.value()};
  workers_->all_reduce(sums, 3, f64);
  return {sums[1] / sums[0], sums[2] / sums[0], static_cast<int64_t>(sums[0])};
}

std::string Trainer::save() {
  check_arg(!options_.checkpoint_dir.empty(), "trainer: no checkpoint_dir to save in");
  close_window();
  std::string path =
      save_checkpoint(options_.checkpoint_dir, scope_, {{"main", &main_}, {"startup", &startup_}},
                      {.step = step_,
                       .position = position_,
                       .seed = main_.seed(),
                       .texts = {{kHistory, history_.to_csv()}}},
                      {.keep = options_.keep, .writes = speaks()});
  if (workers_ != nullptr) workers_->barrier();  // nobody looks for it before it is there
  return path;
}

}  // namespace fleetx::train
