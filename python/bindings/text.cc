#include "bindings/text.h"

#include <pybind11/stl.h>

#include "bindings/convert.h"
#include "bindings/gil.h"
#include "fleetx/base/file.h"
#include "fleetx/data/bert_batches.h"
#include "fleetx/data/learn_vocabulary.h"
#include "fleetx/data/translation.h"
#include "fleetx/data/wordpiece.h"

namespace fleetx::python {
namespace {

using data::Bpe;
using data::TextBatches;
using data::TextCorpus;
using data::Tokenizer;
using data::TranslationPairs;
using data::WordPiece;

std::vector<std::vector<int32_t>> encode_all(const Tokenizer& tokenizer,
                                             const std::vector<std::string>& texts) {
  const GilReleased release;
  std::vector<std::vector<int32_t>> out;
  out.reserve(texts.size());
  for (const std::string& text : texts) out.push_back(tokenizer.encode(text));
  return out;
}

data::TextBatchOptions batch_options(int64_t batch, int64_t tokens, int64_t multiple, bool shuffle,
                                     bool drop_last, uint64_t seed, int rank, int world,
                                     bool packed) {
  return {.batches = {.batch = batch,
                      .tokens = tokens,
                      .multiple = multiple,
                      .shuffle = shuffle,
                      .drop_last = drop_last,
                      .seed = seed},
          .packed = packed,
          .rank = rank,
          .world = world};
}

py::object next_feed(TextBatches& batches) {
  std::optional<data::Batch> batch;
  {
    const GilReleased release;
    batch = batches.next();
  }
  if (!batch) return py::none();
  py::dict feed;
  for (const auto& [name, tensor] : batch->feeds) feed[py::str(name)] = array_from(tensor);
  return feed;
}

void bind_tokenizers(py::module_& m) {
  py::class_<Tokenizer, std::shared_ptr<Tokenizer>>(m, "Tokenizer")
      .def("encode", [](const Tokenizer& t, const std::string& text) { return t.encode(text); })
      .def("encode_all", &encode_all)
      .def("decode", &Tokenizer::decode)
      .def_property_readonly("tokens", [](const Tokenizer& t) { return t.vocabulary().tokens(); })
      .def_property_readonly("size", [](const Tokenizer& t) { return t.vocabulary().size(); })
      .def("token", [](const Tokenizer& t, int64_t id) { return t.vocabulary().token(id); })
      .def("find", [](const Tokenizer& t, const std::string& s) { return t.vocabulary().find(s); });
  py::class_<WordPiece, Tokenizer, std::shared_ptr<WordPiece>>(m, "WordPiece")
      .def(py::init([](const std::string& vocab, bool lowercase, bool strip_accents) {
             const GilReleased release;
             return std::make_shared<WordPiece>(
                 data::Vocabulary::load(vocab),
                 data::CharOptions{.lowercase = lowercase, .strip_accents = strip_accents});
           }),
           py::arg("vocab"), py::arg("lowercase"), py::arg("strip_accents"));
  py::class_<Bpe, Tokenizer, std::shared_ptr<Bpe>>(m, "Bpe")
      .def(py::init([](const std::string& codes, const std::string& vocab, int64_t min_count) {
             const GilReleased release;
             return std::make_shared<Bpe>(
                 data::BpeCodes::load(codes),
                 vocab.empty() ? data::Vocabulary() : data::load_bpe_vocabulary(vocab, min_count));
           }),
           py::arg("codes"), py::arg("vocab"), py::arg("min_count"))
      .def("segment", &Bpe::segment);
}

void bind_learning(py::module_& m) {
  m.def(
      "learn_wordpiece",
      [](const std::vector<std::string>& files, const std::string& out, int64_t size,
         int64_t min_count, int64_t alphabet, bool lowercase, bool strip_accents,
         const std::string& bad_lines) {
        const GilReleased release;
        const auto words = data::count_words(
            files, {.characters = {.lowercase = lowercase, .strip_accents = strip_accents},
                    .policy = data::bad_text_of(bad_lines, "bad_lines")});
        const data::Vocabulary vocabulary = data::learn_wordpiece(
            words, {.size = size, .min_count = min_count, .alphabet = alphabet});
        vocabulary.save(out);
        return vocabulary.size();
      },
      py::kw_only(), py::arg("files"), py::arg("out"), py::arg("size"), py::arg("min_count"),
      py::arg("alphabet"), py::arg("lowercase"), py::arg("strip_accents"), py::arg("bad_lines"));
  m.def(
      "learn_bpe",
      [](const std::vector<std::string>& files, const std::string& codes, const std::string& vocab,
         int64_t merges, int64_t min_count, const std::string& bad_lines, bool tabs) {
        const GilReleased release;
        const auto words = data::count_words(
            files, {.rule = tabs ? data::WordRule::kTabs : data::WordRule::kSpaces,
                    .policy = data::bad_text_of(bad_lines, "bad_lines")});
        const data::BpeCodes learned = data::learn_bpe(words, merges, min_count);
        write_file(codes, learned.text());
        write_file(vocab, data::bpe_vocabulary_text(words, learned));
        return learned.merges.size();
      },
      py::kw_only(), py::arg("files"), py::arg("codes"), py::arg("vocab"), py::arg("merges"),
      py::arg("min_count"), py::arg("bad_lines"), py::arg("tabs"));
}

void bind_corpora(py::module_& m) {
  py::class_<TextCorpus, std::shared_ptr<TextCorpus>>(m, "TextCorpus")
      .def(py::init([](const Tokenizer& tokenizer, const std::vector<std::string>& files,
                       const std::string& format, const std::string& field, int64_t max_tokens,
                       const std::string& bad_lines, const std::string& long_sentences) {
             const GilReleased release;
             return std::make_shared<TextCorpus>(
                 tokenizer,
                 data::CorpusOptions{
                     .files = files,
                     .format = data::corpus_format_of(format),
                     .field = field,
                     .max_tokens = max_tokens,
                     .bad_lines = data::bad_text_of(bad_lines, "bad_lines"),
                     .long_sentences = data::bad_text_of(long_sentences, "long_sentences")});
           }),
           py::arg("tokenizer"), py::kw_only(), py::arg("files"), py::arg("format"),
           py::arg("field"), py::arg("max_tokens"), py::arg("bad_lines"), py::arg("long_sentences"))
      .def_property_readonly("documents", &TextCorpus::documents)
      .def_property_readonly("sentences", &TextCorpus::sentences)
      .def_property_readonly("tokens", [](const TextCorpus& c) { return c.tokens(); })
      .def_property_readonly("bad_lines", &TextCorpus::bad_lines)
      .def_property_readonly("long_sentences", &TextCorpus::long_sentences);
  py::class_<TranslationPairs, std::shared_ptr<TranslationPairs>>(m, "TranslationPairs")
      .def(py::init([](const Tokenizer& source, const Tokenizer& target, const std::string& from,
                       const std::string& into, int64_t max_length, const std::string& bad_lines,
                       const std::string& long_lines) {
             const GilReleased release;
             return std::make_shared<TranslationPairs>(
                 source, target,
                 data::TranslationOptions{
                     .source = from,
                     .target = into,
                     .max_length = max_length,
                     .bad_lines = data::bad_text_of(bad_lines, "bad_lines"),
                     .long_lines = data::bad_text_of(long_lines, "long_lines")});
           }),
           py::arg("source"), py::arg("target"), py::kw_only(), py::arg("source_file"),
           py::arg("target_file"), py::arg("max_length"), py::arg("bad_lines"),
           py::arg("long_lines"))
      .def_property_readonly("size", &TranslationPairs::size)
      .def_property_readonly("bad_lines", &TranslationPairs::bad_lines)
      .def_property_readonly("long_lines", &TranslationPairs::long_lines);
}

void bind_batches(py::module_& m) {
  py::class_<TextBatches>(m, "TextBatches")
      .def("begin_pass", &TextBatches::begin_pass, py::call_guard<GilReleased>())
      .def("next", &next_feed)
      .def_property_readonly("samples", &TextBatches::samples)
      .def_property_readonly("batches", &TextBatches::batches)
      .def_property_readonly("padding", &TextBatches::padding);
  py::class_<data::BertBatches, TextBatches>(m, "BertBatches")
      .def(py::init([](const std::shared_ptr<TextCorpus>& corpus, const Tokenizer& tokenizer,
                       int64_t max_length, double mask_rate, double short_rate, bool fill,
                       int64_t batch, int64_t tokens, int64_t multiple, bool shuffle,
                       bool drop_last, uint64_t seed, int rank, int world, bool packed) {
             const GilReleased release;
             return std::make_unique<data::BertBatches>(
                 corpus, tokenizer.vocabulary(),
                 data::BertBatchOptions{.text = batch_options(batch, tokens, multiple, shuffle,
                                                              drop_last, seed, rank, world, packed),
                                        .max_length = max_length,
                                        .short_rate = short_rate,
                                        .mask_rate = mask_rate,
                                        .fill = fill});
           }),
           py::arg("corpus"), py::arg("tokenizer"), py::kw_only(), py::arg("max_length"),
           py::arg("mask_rate"), py::arg("short_rate"), py::arg("fill"), py::arg("batch"),
           py::arg("tokens"), py::arg("multiple"), py::arg("shuffle"), py::arg("drop_last"),
           py::arg("seed"), py::arg("rank"), py::arg("world"), py::arg("packed"));
  py::class_<data::TranslationBatches, TextBatches>(m, "TranslationBatches")
      .def(py::init([](const std::shared_ptr<TranslationPairs>& pairs, const Tokenizer& source,
                       const Tokenizer& target, int64_t batch, int64_t tokens, int64_t multiple,
                       bool shuffle, bool drop_last, uint64_t seed, int rank, int world,
                       bool packed) {
             const GilReleased release;
             return std::make_unique<data::TranslationBatches>(
                 pairs, source.vocabulary(), target.vocabulary(),
                 batch_options(batch, tokens, multiple, shuffle, drop_last, seed, rank, world,
                               packed));
           }),
           py::arg("pairs"), py::arg("source"), py::arg("target"), py::kw_only(), py::arg("batch"),
           py::arg("tokens"), py::arg("multiple"), py::arg("shuffle"), py::arg("drop_last"),
           py::arg("seed"), py::arg("rank"), py::arg("world"), py::arg("packed"));
}

}  // namespace

void bind_text(py::module_& m) {
  bind_tokenizers(m);
  bind_learning(m);
  bind_corpora(m);
  bind_batches(m);
}

}  // namespace fleetx::python
