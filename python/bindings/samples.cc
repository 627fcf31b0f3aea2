// Data sets of sample files, and the loop over them.
#include <pybind11/stl.h>

#include <limits>

#include "bindings/convert.h"
#include "bindings/executor.h"
#include "bindings/gil.h"
#include "bindings/interrupt.h"
#include "fleetx/data/batches.h"
#include "fleetx/data/formats.h"
#include "fleetx/fleet/fleet.h"
#include "fleetx/fleet/global_shuffle.h"
#include "fleetx/train/dataset_loop.h"

namespace fleetx::python {
namespace {

using data::Batches;
using data::SampleStore;

using SlotTuple = std::tuple<std::string, std::string, int64_t>;  // name, dtype, width
using InputTuple = std::tuple<std::string, std::vector<int64_t>, std::string>;  // as DatasetInput

std::vector<data::Slot> slots_from(const std::vector<SlotTuple>& given) {
  std::vector<data::Slot> slots;
  for (const auto& [name, dtype, width] : given) slots.push_back({name, dtype_of(dtype), width});
  return slots;
}

// What scripts hold: the threads end with close(), also where an exception keeps the object alive.
class PyBatches {
 public:
  explicit PyBatches(std::unique_ptr<Batches> batches) : batches_(std::move(batches)) {}
  ~PyBatches() { close(); }

  Batches& open() {
    check_arg(batches_ != nullptr, "these batches were closed");
    return *batches_;
  }
  void close() {
    if (!batches_) return;
    const GilReleased release;
    batches_.reset();
  }

  // [(values, lengths or None)] per slot; None at the end.
  py::object next() {
    std::vector<data::SlotValues> columns;
    {
      const Waiting waiting;
      auto samples = open().next();
      if (samples) columns = data::to_tensors(std::move(*samples), open().slots());
    }
    if (columns.empty()) return py::none();
    py::list out;
    for (const data::SlotValues& c : columns)
      out.append(py::make_tuple(array_from(c.values), c.lengths.defined()
                                                          ? py::object(array_from(c.lengths))
                                                          : py::object(py::none())));
    return out;
  }

 private:
  std::unique_ptr<Batches> batches_;
};

std::unique_ptr<PyBatches> read_files(std::vector<std::string> files,
                                      const std::vector<SlotTuple>& slots,
                                      const std::string& format, int64_t ids,
                                      const std::string& command, int64_t batch, int threads,
                                      bool skip_bad_lines, std::pair<int64_t, int64_t> share) {
  return std::make_unique<PyBatches>(
      data::read_files({.files = std::move(files),
                        .format = data::make_format(format, slots_from(slots), ids),
                        .command = command,
                        .batch = batch,
                        .threads = threads,
                        .bad_lines = skip_bad_lines ? data::BadLines::kSkip : data::BadLines::kFail,
                        .share = {.index = share.first, .count = share.second}}));
}

using Clock = std::chrono::steady_clock;  // that of time.monotonic()

Clock::time_point time_point(double seconds) {
  return Clock::time_point(
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds)));
}

// The callbacks take the GIL, which the loop does without.
train::DatasetLoop loop_of(const std::vector<InputTuple>& inputs, const ir::Names& fetch,
                           int64_t print_period, const py::function& show,
                           const py::object& handler, double due) {
  train::DatasetLoop loop;
  for (const auto& [name, sample, lengths] : inputs)
    loop.inputs.push_back({name, Shape(sample), lengths});
  loop.fetch = fetch;
  loop.print_period = print_period;
  loop.show = [&show](int64_t batch, const std::vector<Tensor>& values) {
    const GilHeld gil;
    py::list arrays;
    for (const Tensor& value : values) arrays.append(array_from(value));
    show(batch, arrays);
  };
  loop.handler_due = time_point(due);
  if (!handler.is_none())
    loop.handler = [&handler] {
      const GilHeld gil;
      return time_point(handler().cast<double>());
    };
  return loop;
}

int64_t run_over(PyBatches& batches, Executor& executor, const ir::Program& program,
                 runtime::Scope& scope, const std::vector<InputTuple>& inputs,
                 const ir::Names& fetch, int64_t print_period, const py::function& show,
                 const py::object& handler, double due) {
  const train::DatasetLoop loop = loop_of(inputs, fetch, print_period, show, handler, due);
  const Waiting waiting;
  const std::lock_guard lock(executor.turn);
  return loop.run(executor.runs, program, scope, batches.open());
}

// All that is left of the batches, or only as many batches as hold `most` samples.
std::shared_ptr<SampleStore> load(PyBatches& batches, int64_t most) {
  const Waiting waiting;
  auto store = std::make_shared<SampleStore>(batches.open().slots());
  while (store->size() < most) {
    const auto samples = batches.open().next();
    if (!samples) break;
    store->append(*samples);
  }
  return store;
}

std::shared_ptr<SampleStore> dealt_out(const SampleStore& store, uint64_t seed, int64_t round) {
  const Waiting waiting;
  return std::make_shared<SampleStore>(fleet::global_shuffle(store, fleet::workers(), seed, round));
}

}  // namespace

void bind_samples(py::module_& m) {
  py::class_<PyBatches>(m, "Batches")
      .def("next", &PyBatches::next)
      .def("close", &PyBatches::close)
      .def("skipped", [](PyBatches& b) { return b.open().skipped(); })
      .def("run", &run_over);
  m.def("read_files", &read_files, py::kw_only(), py::arg("files"), py::arg("slots"),
        py::arg("format"), py::arg("ids"), py::arg("command"), py::arg("batch"), py::arg("threads"),
        py::arg("skip_bad_lines"), py::arg("share"));
  py::class_<SampleStore, std::shared_ptr<SampleStore>>(m, "SampleStore")
      .def_static("load", &load, py::arg("batches"),
                  py::arg("most") = std::numeric_limits<int64_t>::max())
      .def_property_readonly("size", &SampleStore::size)
      .def_property_readonly("bytes", &SampleStore::bytes)
      .def("shuffle", &SampleStore::shuffle, py::call_guard<GilReleased>())
      .def("dealt_out", &dealt_out)
      .def("batches", [](const std::shared_ptr<SampleStore>& store, int64_t batch) {
        return std::make_unique<PyBatches>(data::read_store(store, batch));
      });
}

}  // namespace fleetx::python
