// The models of fleetx/models, translations by one of them, and curves of their training.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>

#include "bindings/builder.h"
#include "bindings/gil.h"
#include "bindings/interrupt.h"
#include "fleetx/models/bert.h"
#include "fleetx/models/resnet.h"
#include "fleetx/models/transformer.h"
#include "fleetx/models/vgg.h"
#include "fleetx/train/bleu.h"
#include "fleetx/train/event_file.h"
#include "fleetx/train/plot.h"
#include "fleetx/train/translator.h"

namespace fleetx::python {
namespace {

// What is fed, by name; a variable that is not there is undefined.
class PyInputs {
 public:
  PyInputs(PyBuilder& b, const ir::Names& names) : b_(b), names_(names) {}
  ir::Var operator[](const std::string& name) const {
    return std::ranges::find(names_, name) == names_.end() ? ir::Var() : b_.var(name);
  }

 private:
  PyBuilder& b_;
  const ir::Names& names_;
};

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
    to.from_zero = panel["from_zero"].cast<bool>();
    for (const auto& [label, points] : panel["series"].cast<py::dict>())
      to.series.push_back(
          {label.cast<std::string>(), points.cast<std::vector<std::pair<double, double>>>()});
  }
  train::plot_png(path, out);
}

models::TransformerOptions transformer_options(const py::dict& from) {
  return {.source_vocabulary = from["source_vocabulary"].cast<int64_t>(),
          .target_vocabulary = from["target_vocabulary"].cast<int64_t>(),
          .shared_words = from["shared_words"].cast<bool>(),
          .hidden = from["hidden"].cast<int64_t>(),
          .layers = from["layers"].cast<int>(),
          .heads = from["heads"].cast<int64_t>(),
          .intermediate = from["intermediate"].cast<int64_t>(),
          .dropout = from["dropout"].cast<double>(),
          .label_smoothing = from["label_smoothing"].cast<double>()};
}

py::dict transformer(PyBuilder& b, const ir::Names& inputs, const py::dict& options,
                     const std::string& file, int line) {
  const PyBuilder::At at(b, file, line);
  const PyInputs in(b, inputs);
  const models::TransformerTraining net = models::transformer({.words = in["src_word"],
                                                               .places = in["src_pos"],
                                                               .mask = in["src_mask"],
                                                               .lengths = in["src_len"]},
                                                              {.words = in["trg_word"],
                                                               .places = in["trg_pos"],
                                                               .next = in["lbl_word"],
                                                               .weights = in["lbl_weight"],
                                                               .lengths = in["trg_len"]},
                                                              transformer_options(options));
  return py::dict(py::arg("loss") = net.loss.name(), py::arg("token_loss") = net.token_loss.name(),
                  py::arg("logits") = net.logits.name(), py::arg("checkpoints") = net.checkpoints);
}

models::BertInputs bert_inputs(const PyInputs& in) {
  return {.words = in["src_ids"],
          .sentences = in["sent_ids"],
          .mask = in["input_mask"],
          .places = in["pos_ids"],
          .lengths = in["seq_len"],
          .read = in["read_pos"],
          .read_lengths = in["read_len"],
          .first = in["seq_first"]};
}

models::BertOptions bert_options(const py::dict& from) {
  return {.vocabulary = from["vocabulary"].cast<int64_t>(),
          .hidden = from["hidden"].cast<int64_t>(),
          .layers = from["layers"].cast<int>(),
          .heads = from["heads"].cast<int64_t>(),
          .intermediate = from["intermediate"].cast<int64_t>(),
          .max_positions = from["max_positions"].cast<int64_t>(),
          .dropout = from["dropout"].cast<double>(),
          .init_std = from["init_std"].cast<double>()};
}

py::dict bert_pretraining(PyBuilder& b, const ir::Names& inputs, const py::dict& options,
                          const std::string& file, int line) {
  const PyBuilder::At at(b, file, line);
  const PyInputs in(b, inputs);
  const models::BertPretraining net =
      models::bert_pretraining(bert_inputs(in),
                               {.positions = in["mask_pos"],
                                .words = in["mask_label"],
                                .follows = in["labels"],
                                .weights = in["mask_weight"],
                                .follows_weights = in["label_weight"]},
                               bert_options(options));
  return py::dict(py::arg("loss") = net.loss.name(), py::arg("word_loss") = net.word_loss.name(),
                  py::arg("sentence_loss") = net.sentence_loss.name(),
                  py::arg("word_logits") = net.word_logits.name(),
                  py::arg("sentence_logits") = net.sentence_logits.name(),
                  py::arg("checkpoints") = net.checkpoints);
}

py::dict bert_encoder(PyBuilder& b, const ir::Names& inputs, const py::dict& options,
                      const std::string& file, int line) {
  const PyBuilder::At at(b, file, line);
  const models::BertEncoder net =
      models::bert(bert_inputs(PyInputs(b, inputs)), bert_options(options));
  return py::dict(py::arg("sequence") = net.sequence.name(), py::arg("pooled") = net.pooled.name(),
                  py::arg("checkpoints") = net.checkpoints);
}

void bind_translation(py::module_& m) {
  m.def("transformer", &transformer, py::arg("builder"), py::arg("inputs"), py::arg("options"),
        py::arg("file"), py::arg("line"));
  py::class_<train::Translator>(m, "Translator")
      .def(py::init([](const py::dict& options, runtime::Scope& scope, int32_t source_end,
                       int32_t target_begin, int32_t target_end, int64_t target_words) {
             return std::make_unique<train::Translator>(
                 transformer_options(options), scope,
                 train::Translator::Marks{source_end, target_begin, target_end, target_words});
           }),
           py::arg("options"), py::arg("scope"), py::kw_only(), py::arg("source_end"),
           py::arg("target_begin"), py::arg("target_end"), py::arg("target_words"),
           py::keep_alive<1, 3>())
      .def(
          "translate",
          [](train::Translator& t, const std::vector<std::vector<int32_t>>& sentences, int beams,
             double length_penalty, int64_t max_length, int64_t batch) {
            std::vector<train::Translation> found;
            {
              const Interruptible guard;
              const GilReleased release;
              found = t.translate(sentences, {.beams = beams,
                                              .length_penalty = length_penalty,
                                              .max_length = max_length,
                                              .batch = batch});
            }
            py::list out;
            for (const train::Translation& one : found)
              out.append(py::make_tuple(one.words, one.score));
            return out;
          },
          py::arg("sentences"), py::kw_only(), py::arg("beams"), py::arg("length_penalty"),
          py::arg("max_length"), py::arg("batch"));
  m.def("bleu", [](const std::vector<train::Sentence>& candidates,
                   const std::vector<train::Sentence>& references) {
    return train::bleu(candidates, references).score;
  });
}

}  // namespace

void bind_models(py::module_& m) {
  bind_translation(m);
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
  m.def("bert_pretraining", &bert_pretraining, py::arg("builder"), py::arg("inputs"),
        py::arg("options"), py::arg("file"), py::arg("line"));
  m.def("bert_encoder", &bert_encoder, py::arg("builder"), py::arg("inputs"), py::arg("options"),
        py::arg("file"), py::arg("line"));
  m.def("plot_curves", &plot_curves);
  py::class_<train::EventFile>(m, "EventFile")
      .def(py::init<const std::string&>())
      .def("scalar", &train::EventFile::scalar)
      .def("histogram",
           [](train::EventFile& events, const std::string& tag, int64_t step,
              const py::array_t<float, py::array::c_style | py::array::forcecast>& values) {
             events.histogram(tag, step, {values.data(), static_cast<size_t>(values.size())});
           })
      .def_property_readonly("path", &train::EventFile::path);
}

}  // namespace fleetx::python
