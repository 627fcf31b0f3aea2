// Byte pair encoding as subword-nmt does it (Sennrich et al. 2016): words, separated by spaces, are
// sequences of characters, the last of which is marked by "</w>"; neighbours are merged in the
// order of the codes. Pieces that are not the last of their word end in "@@". A piece that the
// vocabulary lacks is split again into those that it was made of. A word of more than 4 KiB counts
// as several, because time grows with the square of the length.
//
//   Bpe tokenizer(BpeCodes::load("codes.bpe"), load_bpe_vocabulary("vocab.bpe"));
//   tokenizer.segment("lowest")         // low@@ est
#pragma once

#include <unordered_map>

#include "fleetx/data/tokenizer.h"

namespace fleetx::data {

// The merges, first one first; the file of `subword-nmt learn-bpe`.
struct BpeCodes {
  std::vector<std::pair<std::string, std::string>> merges{};
  // Version 0.1 of the file: "</w>" is a symbol of its own, not a part of the last character.
  bool separate_end = false;
  std::string name = "codes";

  // Damage is kCorrupt and names the line.
  static BpeCodes parse(std::string_view text, const std::string& name);
  static BpeCodes load(const std::string& path);
  std::string text() const;
};

inline constexpr std::string_view kBegin = "<s>", kEnd = "<e>", kUnknown = "<unk>";
inline constexpr std::string_view kNotLast = "@@", kWordEnd = "</w>";

// Lines of `token` or `token count`, as subword-nmt's get-vocab writes them; tokens of a smaller
// count are left out. <s>, <e> and <unk> come first where the file does not have them.
Vocabulary parse_bpe_vocabulary(std::string_view text, const std::string& name,
                                int64_t min_count = 0);
Vocabulary load_bpe_vocabulary(const std::string& path, int64_t min_count = 0);

class Bpe final : public Tokenizer {
 public:
  // A vocabulary without <unk> is kInvalidArgument. An empty one keeps every piece: then there is
  // segment() only.
  Bpe(const BpeCodes& codes, Vocabulary vocabulary);

  // The pieces of a line, separated by spaces.
  std::string segment(std::string_view line) const;
  // "@@ " between two pieces goes away.
  std::string decode(const std::vector<int32_t>& tokens) const override;

 private:
  struct Piece {
    int32_t symbol;     // -1: in no merge
    size_t begin, end;  // in the word
  };
  struct Merge {
    int32_t rank, joined;
  };
  struct PairHash {
    size_t operator()(uint64_t pair) const { return pair * 0x9e3779b97f4a7c15ull >> 20; }
  };
  using Pieces = std::vector<Piece>;

  void encode_valid(std::string_view text, std::vector<int32_t>& to) const override;
  void split(std::string_view word, Pieces& pieces) const;
  void merge(Pieces& pieces) const;
  // Calls with the text of each piece of a word, "@@" included.
  template <class Function>
  void for_each_piece(std::string_view word, Pieces& scratch, const Function& function) const;
  template <class Function>
  void give(std::string_view word, const Piece& piece, const Function& function) const;
  int32_t symbol_of(std::string_view text) const;
  static uint64_t key(int32_t a, int32_t b) {
    return uint64_t{static_cast<uint32_t>(a)} << 32 | static_cast<uint32_t>(b);
  }

  bool separate_end_;
  TokenIds symbols_;
  std::unordered_map<uint64_t, Merge, PairHash> merges_;
  std::vector<std::pair<int32_t, int32_t>> parts_;  // of a symbol; -1: it is a character
  std::vector<std::string> texts_;                  // of a symbol
  int32_t unknown_ = -1;
};

}  // namespace fleetx::data
