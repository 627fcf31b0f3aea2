// fleetx vocab: learn the vocabulary of a tokenizer from text.
#include <iostream>

#include "fleetx/base/file.h"
#include "fleetx/data/learn_vocabulary.h"
#include "tools/commands.h"

namespace fleetx::tools {
namespace {

struct VocabOptions {
  std::vector<std::string> files;
  std::string out, vocab, bad_lines = "stop";
  int64_t size = 30'000, merges = 32'000, min_count = 2, alphabet = 1'000;
  bool cased = false;
};

void wordpiece(const VocabOptions& o) {
  const auto words =
      data::count_words(o.files, {.characters = {.lowercase = !o.cased, .strip_accents = !o.cased},
                                  .policy = data::bad_text_of(o.bad_lines, "--bad-lines")});
  const data::Vocabulary vocabulary = data::learn_wordpiece(
      words, {.size = o.size, .min_count = o.min_count, .alphabet = o.alphabet});
  vocabulary.save(o.out);
  std::cout << o.out << ": " << vocabulary.size() << " tokens of " << words.size()
            << " different words\n";
}

void bpe(const VocabOptions& o) {
  const auto words = data::count_words(
      o.files,
      {.rule = data::WordRule::kSpaces, .policy = data::bad_text_of(o.bad_lines, "--bad-lines")});
  const data::BpeCodes codes = data::learn_bpe(words, o.merges, o.min_count);
  write_file(o.out, codes.text());
  if (!o.vocab.empty()) write_file(o.vocab, data::bpe_vocabulary_text(words, codes));
  std::cout << o.out << ": " << codes.merges.size() << " merges of " << words.size()
            << " different words\n";
}

void add_common(CLI::App* command, VocabOptions& o) {
  command->add_option("FILE", o.files, "texts; also *.gz and *.zst")->required();
  command->add_option("--min-count", o.min_count, "rarer pairs of pieces are not merged")
      ->capture_default_str();
  command->add_option("--bad-lines", o.bad_lines, "lines that are not UTF-8: stop, skip, replace")
      ->capture_default_str();
}

}  // namespace

void add_vocab(CLI::App& app) {
  CLI::App* command = app.add_subcommand("vocab", "Learn the vocabulary of a tokenizer from text");
  command->require_subcommand(1);
  auto o = std::make_shared<VocabOptions>();
  CLI::App* pieces = command->add_subcommand("wordpiece", "BERT's vocab.txt");
  add_common(pieces, *o);
  pieces->add_option("-o,--output", o->out, "file to write")->required();
  pieces->add_option("--size", o->size, "tokens, at most")->capture_default_str();
  pieces->add_option("--alphabet", o->alphabet, "characters, the most frequent")
      ->capture_default_str();
  pieces->add_flag("--cased", o->cased, "keep upper case and accents");
  pieces->callback([o] { wordpiece(*o); });
  CLI::App* pairs = command->add_subcommand("bpe", "codes and vocabulary of subword-nmt");
  add_common(pairs, *o);
  pairs->add_option("-o,--output", o->out, "file of codes to write")->required();
  pairs->add_option("--vocab", o->vocab, "file of tokens and their counts to write");
  pairs->add_option("--merges", o->merges, "at most")->capture_default_str();
  pairs->callback([o] { bpe(*o); });
  command->footer(
      "Examples:\n"
      "  fleetx vocab wordpiece book.txt --size 8000 -o vocab.txt\n"
      "  fleetx vocab bpe train.en train.de --merges 16000 -o codes.bpe --vocab vocab.bpe\n");
}

}  // namespace fleetx::tools
