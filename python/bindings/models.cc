// The models of fleetx/models, and curves of their training.
#include <pybind11/stl.h>

#include "bindings/builder.h"
#include "fleetx/models/resnet.h"
#include "fleetx/models/vgg.h"
#include "fleetx/train/plot.h"

namespace fleetx::python {
namespace {

py::tuple to_python(const models::Network& net) {
  return py::make_tuple(net.logits.name(), net.checkpoints);
}

void plot_curves(const std::string& path, const py::list& panels) {
  std::vector<train::Panel> out;
  for (const py::handle& item : panels) {
    const auto panel = item.cast<py::dict>();
    train::Panel& to = out.emplace_back();
    to.title = panel["title"].cast<std::string>();
    to.x_label = panel["x"].cast<std::string>();
    to.from_zero = true;
    for (const auto& [label, points] : panel["series"].cast<py::dict>())
      to.series.push_back(
          {label.cast<std::string>(), points.cast<std::vector<std::pair<double, double>>>()});
  }
  train::plot_png(path, out);
}

}  // namespace

void bind_models(py::module_& m) {
  m.def("resnet", [](PyBuilder& b, const std::string& image, int depth, int64_t classes,
                     int64_t width, const std::string& name, const std::string& file, int line) {
    const PyBuilder::At at(b, file, line);
    return to_python(models::resnet(
        b.var(image), {.depth = depth, .classes = classes, .width = width, .name = name}));
  });
  m.def("vgg16", [](PyBuilder& b, const std::string& image, int64_t classes, double dropout,
                    const std::string& name, const std::string& file, int line) {
    const PyBuilder::At at(b, file, line);
    return to_python(
        models::vgg16(b.var(image), {.classes = classes, .dropout = dropout, .name = name}));
  });
  m.def("plot_curves", &plot_curves);
}

}  // namespace fleetx::python
