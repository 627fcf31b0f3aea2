// fleetx tokenize: the tokens of text, line by line.
#include <iostream>

#include "fleetx/base/error.h"
#include "fleetx/data/bpe.h"
#include "fleetx/data/text_lines.h"
#include "fleetx/data/wordpiece.h"
#include "tools/commands.h"

namespace fleetx::tools {
namespace {

struct TokenizeOptions {
  std::vector<std::string> files;
  std::string vocab, codes, bad_lines = "stop";
  bool cased = false, ids = false;
};

std::unique_ptr<data::Tokenizer> make_tokenizer(const TokenizeOptions& o) {
  if (!o.codes.empty()) {
    check_arg(!o.cased, "--cased is for WordPiece; byte pairs always keep the case");
    return std::make_unique<data::Bpe>(data::BpeCodes::load(o.codes),
                                       data::load_bpe_vocabulary(o.vocab));
  }
  return std::make_unique<data::WordPiece>(
      data::Vocabulary::load(o.vocab),
      data::CharOptions{.lowercase = !o.cased, .strip_accents = !o.cased});
}

void tokenize(const TokenizeOptions& o) {
  const std::unique_ptr<data::Tokenizer> tokenizer = make_tokenizer(o);
  std::vector<int32_t> tokens;
  std::string out;
  for (const std::string& file : o.files) {
    data::TextLines lines(file, data::bad_text_of(o.bad_lines, "--bad-lines"));
    while (lines.next()) {
      tokens.clear();
      tokenizer->encode(lines.line(), tokens);
      out.clear();
      for (const int32_t id : tokens) {
        if (!out.empty()) out += ' ';
        out += o.ids ? std::to_string(id) : tokenizer->vocabulary().token(id);
      }
      std::cout << out << '\n';
    }
    lines.warn();
  }
}

}  // namespace

void add_tokenize(CLI::App& app) {
  CLI::App* command = app.add_subcommand("tokenize", "Print the tokens of text, line by line");
  auto o = std::make_shared<TokenizeOptions>();
  command->add_option("FILE", o->files, "texts; also *.gz and *.zst")->required();
  command->add_option("--vocab", o->vocab, "vocab.txt of BERT; with --codes, that of subword-nmt")
      ->required();
  command->add_option("--codes", o->codes, "of subword-nmt: byte pairs instead of WordPiece");
  command->add_flag("--cased", o->cased, "WordPiece: keep upper case and accents");
  command->add_flag("--ids", o->ids, "numbers instead of tokens");
  command->add_option("--bad-lines", o->bad_lines, "lines that are not UTF-8: stop, skip, replace")
      ->capture_default_str();
  command->footer(
      "Examples:\n"
      "  fleetx tokenize book.txt --vocab vocab.txt\n"
      "  fleetx tokenize train.de --codes codes.bpe --vocab vocab.bpe --ids\n");
  command->callback([o] { tokenize(*o); });
}

}  // namespace fleetx::tools
