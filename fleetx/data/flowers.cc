#include "fleetx/data/flowers.h"

#include <array>
#include <atomic>
#include <exception>
#include <filesystem>
#include <mutex>
#include <utility>

#include "fleetx/base/env.h"
#include "fleetx/base/error.h"
#include "fleetx/base/file.h"
#include "fleetx/base/threads.h"
#include "fleetx/data/canvas.h"
#include "fleetx/data/folder_lock.h"
#include "fleetx/data/jpeg.h"

namespace fleetx::data {
namespace {

enum class Tip { kRound, kPointed, kNotched };

struct Form {
  int petals;
  Tip tip;
  int rings;
  bool slim;
  bool large_centre;
};

// Digits of `kind`, shifted against each other so that even the first few kinds differ in all of
// them; every kind below kMaxFlowerKinds has a form of its own.
Form form_of(int kind) {
  constexpr std::array kPetals{5, 8, 3, 12, 4, 6};
  const int d = kind % 6;
  return {kPetals[static_cast<size_t>(d)], static_cast<Tip>((kind / 6 + d) % 3),
          1 + (kind / 18 + d) % 2, (kind / 36 + d / 2) % 2 == 1, (kind / 72 + d / 3) % 2 == 1};
}

// One petal along the x axis from 0 to 1: half its width at every x, with the slope, in a table.
class Petal {
 public:
  explicit Petal(const Form& form) : tip_(form.tip) {
    const float pi = 3.14159265f, wedge = std::tan(pi / static_cast<float>(form.petals));
    widest_ = std::min(0.42f, 0.6f * wedge) * (form.slim ? 0.55f : 1.0f);
    const float peak = tip_ == Tip::kRound ? 0.6f : tip_ == Tip::kPointed ? 0.42f : 0.68f;
    for (size_t i = 0; i < table_.size(); ++i) {
      const float x = static_cast<float>(i) / static_cast<float>(table_.size() - 1);
      const float base = x / peak, end = (x - peak) / (1 - peak);
      if (x < peak)
        table_[i] = widest_ * std::pow(base * (2 - base), 0.8f);
      else if (tip_ == Tip::kPointed)
        table_[i] = widest_ * (1 - end) * (1 + 0.5f * end);
      else
        table_[i] = widest_ * std::sqrt(std::max(0.0f, 1 - end * end));
    }
  }

  float widest() const { return widest_; }

  // How deep (x, y) lies inside, in petal lengths; negative outside.
  float depth(float x, float y) const {
    if (x <= 0 || x >= 1.05f) return -1;
    const float n = static_cast<float>(table_.size() - 1), at = std::min(x, 0.9999f) * n;
    const auto i = static_cast<size_t>(at);
    const float slope = (table_[i + 1] - table_[i]) * n;
    const float width = table_[i] + (at - static_cast<float>(i)) * (table_[i + 1] - table_[i]);
    float d = (width - std::abs(y)) / std::sqrt(1 + slope * slope);
    d = std::min(d, 1 - x);
    if (tip_ == Tip::kNotched) {
      const float notch = 0.2f * std::max(0.0f, 1 - std::abs(y) / (0.55f * widest_));
      d = std::min(d, (1 - notch - x) * 0.6f);
    }
    return d;
  }

 private:
  Tip tip_;
  float widest_;
  std::array<float, 129> table_;
};

struct Point {
  float x, y;
};

// A flower seen at an angle: turned, and pressed together in one direction.
struct Pose {
  float cx, cy, length, squash, tilt_x, tilt_y, turn;

  Point flat(float dx, float dy) const {
    const float along = dx * tilt_x + dy * tilt_y;
    const float stretch = (1 / squash - 1) * along;
    return {(dx + stretch * tilt_x) / length, (dy + stretch * tilt_y) / length};
  }
};

struct Paint {
  Color base, tip;
  float veins;
};

void paint_ring(Canvas& canvas, const Form& form, const Pose& pose, float reach, float turn,
                const Paint& paint, Dice& dice) {
  const Petal petal(form);
  const int n = form.petals;
  const float step = 6.2831853f / static_cast<float>(n);
  const float wedge = std::tan(step / 2);
  struct Axis {
    float c, s, light, stretch;
  };
  std::vector<Axis> axes;
  for (int i = 0; i < n; ++i) {
    const float a = turn + step * static_cast<float>(i) + dice.between(-0.06f, 0.06f) * step;
    axes.push_back(
        {std::cos(a), std::sin(a), dice.between(0.88f, 1.06f), dice.between(1.0f, 1.1f)});
  }
  const float pixels = pose.length * reach;
  canvas.paint(pose.cx, pose.cy, pixels, [&](float dx, float dy) {
    const Point p = pose.flat(dx, dy);
    const float far2 = p.x * p.x + p.y * p.y;
    if (far2 > reach * reach) return std::pair(Color{}, 0.0f);
    float angle = (std::atan2(p.y, p.x) - turn) / step;
    const int i = (static_cast<int>(std::lround(angle)) + 2 * n) % n;
    const Axis& axis = axes[static_cast<size_t>(i)];
    const float scale = axis.stretch / reach;
    const float x = (p.x * axis.c + p.y * axis.s) * scale;
    const float y = (p.y * axis.c - p.x * axis.s) * scale;
    const float depth = petal.depth(x, y);
    const float alpha = coverage(depth * pixels);
    if (alpha <= 0) return std::pair(Color{}, 0.0f);
    // Darker towards the edge and where a neighbour begins, so that petals show one by one.
    const float inside = std::max(0.0f, std::min(depth, x * wedge - std::abs(y)));
    const float edge = 1 - 0.45f * std::max(0.0f, 1 - inside * 14);
    const float across = y / petal.widest();
    const float vein = 1 - paint.veins * std::max(0.0f, std::cos(across * 9)) * (1 - x);
    const float light = axis.light * edge * vein * (1 + 0.1f * across);
    return std::pair(Color::mix(paint.base, paint.tip, x) * light, alpha);
  });
}

void paint_centre(Canvas& canvas, const Pose& pose, float radius, const Color& color, Dice& dice) {
  const float dots = dice.between(16, 30);
  canvas.paint(pose.cx, pose.cy, pose.length * radius * 1.05f, [&](float dx, float dy) {
    const Point p = pose.flat(dx, dy);
    const float r = std::sqrt(p.x * p.x + p.y * p.y);
    const float grain = std::sin(p.x * dots * 2.1f) * std::sin(p.y * dots * 2.1f);
    const float light = (1 - 0.45f * r * r / (radius * radius)) * (1 + 0.22f * grain);
    return std::pair(color * light, coverage((radius - r) * pose.length));
  });
}

Color any_color(Dice& dice) {
  const float value = dice.between(0.25f, 1.0f);
  const float saturation =
      dice.chance(0.2f) ? dice.between(0.0f, 0.15f) : dice.between(0.25f, 1.0f);
  return Color::hsv(dice.unit(), saturation, value);
}

// A leaf or a loose petal: pointed at both ends, with a rib in the middle.
void paint_blade(Canvas& canvas, float cx, float cy, float length, float width, float angle,
                 const Color& color) {
  const float c = std::cos(angle), s = std::sin(angle), half = length / 2;
  canvas.paint(cx, cy, half, [&](float dx, float dy) {
    const float x = (dx * c + dy * s) / half, y = dy * c - dx * s;
    const float edge = width / 2 * (1 - x * x) - std::abs(y);
    const float rib = 1 + 0.25f * coverage(1.5f - std::abs(y), 2.0f);
    return std::pair(color * (rib * (y > 0 ? 0.92f : 1.05f)),
                     std::abs(x) < 1 ? coverage(edge) : 0.0f);
  });
}

void paint_ball(Canvas& canvas, float cx, float cy, float radius, float soft, const Color& color,
                float strength) {
  canvas.paint(cx, cy, radius + soft, [&](float dx, float dy) {
    const float inside = radius - std::sqrt(dx * dx + dy * dy);
    return std::pair(color, strength * coverage(inside, soft));
  });
}

Color paint_background(Canvas& canvas, Dice& dice) {
  const float n = static_cast<float>(canvas.size());
  const Color first = any_color(dice), second = Color::mix(first, any_color(dice), dice.unit());
  if (dice.chance(0.6f))
    canvas.gradient(first, second, dice.angle());
  else
    canvas.radial(first, second, dice.unit() * n, dice.unit() * n);
  canvas.texture(dice, n * dice.between(0.05f, 0.3f), dice.between(0.0f, 0.22f));
  for (int i = dice.below(5); i > 0; --i)
    paint_ball(canvas, dice.unit() * n, dice.unit() * n, n * dice.between(0.03f, 0.15f),
               n * dice.between(0.02f, 0.1f), any_color(dice), dice.between(0.2f, 0.7f));
  return Color::mix(first, second, 0.5f);
}

// Leaves, loose petals, sticks and berries: they lie behind the flower.
void paint_surroundings(Canvas& canvas, Dice& dice) {
  const float n = static_cast<float>(canvas.size());
  const auto spot = [&] { return dice.unit() * n; };
  for (int i = dice.below(6); i > 0; --i) {
    const Color green =
        Color::hsv(dice.between(0.2f, 0.45f), dice.between(0.3f, 0.9f), dice.between(0.2f, 0.8f));
    paint_blade(canvas, spot(), spot(), n * dice.between(0.2f, 0.55f),
                n * dice.between(0.06f, 0.16f), dice.angle(), green);
  }
  for (int i = dice.below(5); i > 0; --i) {
    const Color color = any_color(dice);
    const float x = spot(), y = spot(), angle = dice.angle();
    switch (dice.below(3)) {
      case 0:
        paint_blade(canvas, x, y, n * dice.between(0.1f, 0.25f), n * dice.between(0.05f, 0.12f),
                    angle, color);
        break;
      case 1: {
        const float reach = n * dice.between(0.1f, 0.5f);
        canvas.line(x, y, x + reach * std::cos(angle), y + reach * std::sin(angle),
                    n * dice.between(0.01f, 0.04f), color);
        break;
      }
      default: paint_ball(canvas, x, y, n * dice.between(0.015f, 0.06f), 1, color, 1);
    }
  }
}

// Slim flowers are drawn somewhat larger, so that size tells less about the kind.
float largeness(const Form& form) {
  const Petal petal(form);
  const float share = std::min(1.0f, petal.widest() * static_cast<float>(form.petals) * 0.5f);
  return std::pow(share, -0.25f);
}

void paint_flower(Canvas& canvas, const Form& form, const Color& background, Dice& dice) {
  const float n = static_cast<float>(canvas.size());
  const float length = std::min(0.48f, dice.between(0.26f, 0.42f) * largeness(form)) * n;
  const float room = std::max(0.0f, n - 2 * length) / 2 + 0.06f * n;
  const float tilt = dice.angle();
  const Pose pose{n / 2 + dice.between(-room, room),
                  n / 2 + dice.between(-room, room),
                  length,
                  dice.between(0.75f, 1.0f),
                  std::cos(tilt),
                  std::sin(tilt),
                  dice.angle()};
  if (dice.chance(0.5f))
    canvas.line(pose.cx, pose.cy, pose.cx + dice.between(-0.4f, 0.4f) * n, n + 10,
                n * dice.between(0.012f, 0.035f),
                Color::hsv(dice.between(0.2f, 0.4f), 0.6f, 0.45f));
  Color petals = any_color(dice);
  for (int i = 0; i < 8 && petals.distance(background) < 0.45f; ++i) petals = any_color(dice);
  Color centre = any_color(dice);
  for (int i = 0; i < 8 && petals.distance(centre) < 0.4f; ++i) centre = any_color(dice);
  const Paint paint{Color::mix(petals, any_color(dice), dice.between(0.0f, 0.5f)), petals,
                    dice.between(0.0f, 0.3f)};
  const float half_step = 3.14159265f / static_cast<float>(form.petals);
  paint_ring(canvas, form, pose, 1.0f, pose.turn, paint, dice);
  if (form.rings == 2) {
    const float light = petals.r + petals.g + petals.b > 1.8f ? 0.78f : 1.25f;
    const Paint inner{paint.base * light, paint.tip * light, paint.veins};
    paint_ring(canvas, form, pose, 0.66f, pose.turn + half_step, inner, dice);
  }
  paint_centre(canvas, pose, form.large_centre ? 0.3f : 0.15f, centre, dice);
}

// Runs body(i) for all i on all threads; the first error stops the rest and is thrown.
template <class Body>
void for_all(int64_t n, const Body& body) {
  std::mutex mutex;
  std::exception_ptr error;
  std::atomic<int64_t> next{0};
  parallel_for(num_threads(), 1, [&](int64_t, int64_t) {
    for (int64_t i = next++; i < n; i = next++) {
      {
        const std::scoped_lock lock(mutex);
        if (error) return;
      }
      try {
        body(i);
      } catch (...) {
        const std::scoped_lock lock(mutex);
        if (!error) error = std::current_exception();
      }
    }
  });
  if (error) std::rethrow_exception(error);
}

}  // namespace

Image draw_flower(int kind, uint64_t seed, uint64_t number, int size) {
  check_arg(kind >= 0 && kind < kMaxFlowerKinds, "flower kind ", kind, " is not in 0..",
            kMaxFlowerKinds - 1);
  check_arg(size >= 16 && size <= 4096, "flower size is ", size, "; must be between 16 and 4096");
  Dice dice(seed, fleetx::mix(stable_hash("flower"), number));
  Canvas canvas(size);
  const Color background = paint_background(canvas, dice);
  paint_surroundings(canvas, dice);
  paint_flower(canvas, form_of(kind), background, dice);
  canvas.texture(dice, static_cast<float>(size) / 2.0f,
                 dice.between(0.0f, 0.25f));  // light and shade
  return canvas.finish(Philox(seed, fleetx::mix(stable_hash("grain"), number)),
                       dice.between(0.0f, 0.06f));
}

std::string describe_flower(int kind) {
  const Form f = form_of(kind);
  constexpr std::array kTips{"round", "pointed", "notched"};
  return str(f.petals, f.slim ? " slim " : " broad ", kTips[static_cast<size_t>(f.tip)],
             f.rings == 1 ? " petals in one ring, " : " petals in two rings, ",
             f.large_centre ? "large centre" : "small centre");
}

void generate_flowers(const FlowersOptions& o,
                      const std::function<void(int64_t, int64_t)>& progress) {
  check_arg(!o.folder.empty(), "flowers: no folder");
  check_arg(o.classes >= 2 && o.classes <= kMaxFlowerKinds, "flowers: classes is ", o.classes,
            "; must be between 2 and ", kMaxFlowerKinds);
  check_arg(o.train >= 1 && o.val >= 1, "flowers: train and val must be at least 1, got ", o.train,
            " and ", o.val);
  namespace fs = std::filesystem;
  std::array<std::string, 2> lists;
  std::mutex mutex;
  int64_t done = 0;
  const int64_t total = o.train + o.val;
  const auto name_of = [](int part, int64_t i) {
    std::string digits = std::to_string(i);
    digits.insert(0, 6 - std::min<size_t>(6, digits.size()), '0');
    return str(part == 0 ? "train/" : "val/", digits, ".jpg");
  };
  for (int part = 0; part < 2; ++part) {
    std::error_code error;
    fs::create_directories(fs::path(o.folder) / (part == 0 ? "train" : "val"), error);
    check_arg(!error, "flowers: cannot make the folder ", o.folder, ": ", error.message());
    fs::remove(fs::path(o.folder) / (part == 0 ? "train.txt" : "val.txt"), error);
  }
  for (int part = 0; part < 2; ++part) {
    const int64_t count = part == 0 ? o.train : o.val;
    for_all(count, [&](int64_t i) {
      const uint64_t number = static_cast<uint64_t>(i) * 2 + static_cast<uint64_t>(part);
      const Image image = draw_flower(static_cast<int>(i % o.classes), o.seed, number, o.size);
      write_file((fs::path(o.folder) / name_of(part, i)).string(), encode_jpeg(image, o.quality));
      const std::scoped_lock lock(mutex);
      if (progress && (++done % 64 == 0 || done == total)) progress(done, total);
    });
    for (int64_t i = 0; i < count; ++i)
      lists[static_cast<size_t>(part)] += str(name_of(part, i), " ", i % o.classes, "\n");
  }
  write_file((fs::path(o.folder) / "train.txt").string(), lists[0]);
  write_file((fs::path(o.folder) / "val.txt").string(), lists[1]);
}

std::string cached_flowers(FlowersOptions o,
                           const std::function<void(int64_t, int64_t)>& progress) {
  FLEETX_CHECK(o.folder.empty());
  std::string root = env::get("XDG_CACHE_HOME").value_or("");
  if (root.empty()) {
    const auto home = env::get("HOME");
    check_arg(home.has_value(), "flowers: no cache folder: neither XDG_CACHE_HOME nor HOME is set");
    root = *home + "/.cache";
  }
  o.folder = str(root, "/fleetx/flowers-", o.classes, "-", o.train, "-", o.val, "-", o.size, "-",
                 o.seed, "-", o.quality);
  // Workers of one machine ask for it at the same time; val.txt is written last.
  std::error_code error;
  std::filesystem::create_directories(o.folder, error);
  check_arg(!error, "flowers: cannot make the folder ", o.folder, ": ", error.message());
  const FolderLock lock(o.folder + "/.lock");
  if (!std::filesystem::exists(o.folder + "/val.txt")) generate_flowers(o, progress);
  return o.folder;
}

}  // namespace fleetx::data
