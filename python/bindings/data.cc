// Pictures from lists, made-up pictures, downloads.
#include <pybind11/stl.h>

#include "bindings/convert.h"
#include "bindings/gil.h"
#include "fleetx/base/job_env.h"
#include "fleetx/data/download.h"
#include "fleetx/data/flowers.h"
#include "fleetx/data/image_list.h"
#include "fleetx/data/loader.h"

namespace fleetx::python {
namespace {

using data::ImageList;
using data::Loader;

// Batches of an ImageList under the names that the program feeds. Where this machine has only a
// share of the pictures, its own workers divide them.
class ImageLoader {
 public:
  ImageLoader(data::ImageListOptions images, data::LoaderOptions batches, int local_rank,
              int local_world, std::string image, std::string label)
      : list_(std::make_shared<ImageList>(std::move(images))),
        loader_(list_, with_share(batches, *list_, local_rank, local_world)),
        names_{std::move(image), std::move(label)},
        batches_(batches_of(batches)) {}

  // Of a pass: as many on every worker, however the pictures are divided.
  int64_t batches() const { return batches_; }
  int64_t listed() const { return list_->size() + list_->elsewhere(); }

  const ImageList& list() const { return *list_; }
  Loader& loader() { return loader_; }

  py::dict next() {
    data::Batch batch;
    {
      const GilReleased release;
      batch = loader_.next();
    }
    py::dict feed;
    for (size_t i = 0; i < names_.size(); ++i)
      feed[py::str(names_[i])] = array_from(batch.feeds[i].second);
    return feed;
  }

 private:
  static data::LoaderOptions with_share(data::LoaderOptions o, const ImageList& list,
                                        int local_rank, int local_world) {
    if (list.elsewhere() == 0 || o.world == 1) return o;
    o.rank = local_rank;
    o.world = local_world;
    return o;
  }
  int64_t batches_of(const data::LoaderOptions& asked) const {
    if (list_->elsewhere() == 0 || asked.world == 1) return loader_.batches();
    const int64_t share = (listed() + asked.world - 1) / asked.world;
    return asked.drop_last ? share / asked.batch : (share + asked.batch - 1) / asked.batch;
  }

  std::shared_ptr<const ImageList> list_;
  Loader loader_;
  std::vector<std::string> names_;
  int64_t batches_;
};

data::Damaged damaged_of(const std::string& word) {
  check_arg(word == "raise" || word == "replace", "on_damaged is '", word,
            "'; known: raise, replace");
  return word == "raise" ? data::Damaged::kFail : data::Damaged::kReplace;
}

void bind_images(py::module_& m) {
  py::class_<ImageLoader>(m, "ImageLoader")
      .def(py::init([](const std::string& list, int64_t batch, bool train, int size, int resize,
                       float min_area, int64_t classes, bool shuffle, bool drop_last, uint64_t seed,
                       int rank, int world, int local_rank, int local_world, int threads,
                       int prefetch, const std::string& on_damaged, const std::string& image,
                       const std::string& label) {
             return std::make_unique<ImageLoader>(
                 data::ImageListOptions{.list = list,
                                        .augment = train,
                                        .size = size,
                                        .resize = resize,
                                        .min_area = min_area,
                                        .classes = classes,
                                        .damaged = damaged_of(on_damaged)},
                 data::LoaderOptions{.batch = batch,
                                     .shuffle = shuffle,
                                     .drop_last = drop_last,
                                     .seed = seed,
                                     .rank = rank,
                                     .world = world,
                                     .threads = threads,
                                     .prefetch = prefetch},
                 local_rank, local_world, image, label);
           }),
           py::kw_only(), py::arg("list"), py::arg("batch"), py::arg("train"), py::arg("size"),
           py::arg("resize"), py::arg("min_area"), py::arg("classes"), py::arg("shuffle"),
           py::arg("drop_last"), py::arg("seed"), py::arg("rank"), py::arg("world"),
           py::arg("local_rank") = 0, py::arg("local_world") = 1, py::arg("threads"),
           py::arg("prefetch"), py::arg("on_damaged"), py::arg("image"), py::arg("label"))
      .def_property_readonly("size", &ImageLoader::listed)
      .def_property_readonly("classes", [](const ImageLoader& l) { return l.list().classes(); })
      .def_property_readonly("damaged", [](const ImageLoader& l) { return l.list().damaged(); })
      .def_property_readonly("batches", &ImageLoader::batches)
      // Before the first batch of this pass; what has been read ahead for it is kept.
      .def("begin_pass",
           [](ImageLoader& l, int64_t pass) {
             const GilReleased release;
             if (!(l.loader().position() == data::Position{pass, 0})) l.loader().seek({pass, 0});
           })
      .def("next", &ImageLoader::next);
}

void ask_python() {
  const GilHeld gil;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

py::dict download(const std::string& yaml, const std::string& folder, int shard_num, int shard_id,
                  int threads, bool from_hdfs) {
  data::Downloaded done;
  {
    const GilReleased release;
    done = data::download({.yaml = yaml,
                           .store = from_hdfs ? data::Store::kHadoop : data::Store::kServer,
                           .folder = folder,
                           .shard_num = shard_num,
                           .shard_id = shard_id,
                           .threads = threads,
                           .poll = ask_python});
  }
  return py::dict(py::arg("fetched") = done.fetched, py::arg("kept") = done.kept,
                  py::arg("unpacked") = done.unpacked);
}

}  // namespace

void bind_data(py::module_& m) {
  bind_images(m);
  m.def("download", &download, py::arg("yaml"), py::arg("folder"), py::arg("shard_num"),
        py::arg("shard_id"), py::arg("threads"), py::arg("from_hdfs") = false);
  m.def(
      "cached_flowers",
      [](int classes, int64_t train, int64_t val, int size, uint64_t seed) {
        const GilReleased release;
        return data::cached_flowers(
            {.classes = classes, .train = train, .val = val, .size = size, .seed = seed});
      },
      py::arg("classes"), py::arg("train"), py::arg("val"), py::arg("size"), py::arg("seed") = 0);
  // This process in its job, as the launcher says.
  m.def("job_env", [] {
    const JobEnv job = JobEnv::from_environment();
    return py::dict(py::arg("rank") = job.rank, py::arg("world") = job.world,
                    py::arg("local_rank") = job.local_rank,
                    py::arg("local_world") = job.local_world, py::arg("node") = job.node,
                    py::arg("by_mpi") = job.started_by == JobEnv::StartedBy::kMpi,
                    py::arg("nodes") = job.nodes);
  });
}

}  // namespace fleetx::python
