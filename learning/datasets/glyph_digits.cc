#include "learning/datasets/glyph_digits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/random.h"
#include "learning/datasets/glyph_strokes.h"

namespace terse {
namespace {

constexpr int kSide = 28;
constexpr int kPixels = kSide * kSide;
constexpr int kClasses = 10;
constexpr int kSegmentsPerCurve = 5;

using Canvas = std::array<float, kPixels>;  // 0 paper to 1 ink

float Between(Random* random, double low, double high) { return static_cast<float>(random->Uniform(low, high)); }

// Maps glyph coordinates to pixels.
struct Affine {
  float xx, xy, yx, yy, x0, y0;
  GlyphPoint operator()(GlyphPoint p) const { return {xx * p.x + xy * p.y + x0, yx * p.x + yy * p.y + y0}; }
};

Affine RandomAffine(Random* random) {
  // The tangent of half the angle gives sine and cosine by exactly rounded operations, the same everywhere.
  const float t = Between(random, -0.16, 0.16);  // +-18 degrees
  const float cosine = (1 - t * t) / (1 + t * t);
  const float sine = 2 * t / (1 + t * t);
  const float shear = Between(random, -0.35, 0.35);
  const float width = Between(random, 11, 19);
  const float height = Between(random, 15, 22);
  Affine map;
  map.xx = cosine * width;
  map.xy = (cosine * shear - sine) * height;
  map.yx = sine * width;
  map.yy = (sine * shear + cosine) * height;
  // The middle of the glyph lands near the middle of the image.
  map.x0 = 0.5f * kSide + Between(random, -2.5, 2.5) - 0.5f * (map.xx + map.xy);
  map.y0 = 0.5f * kSide + Between(random, -2.5, 2.5) - 0.5f * (map.yx + map.yy);
  return map;
}

// Inks every pixel whose centre is within `radius` of the segment, with a soft edge one pixel wide.
void DrawSegment(GlyphPoint a, GlyphPoint b, float radius, Canvas* canvas) {
  const float reach = radius + 1;
  const int left = std::max(0, static_cast<int>(std::min(a.x, b.x) - reach));
  const int right = std::min(kSide - 1, static_cast<int>(std::max(a.x, b.x) + reach));
  const int top = std::max(0, static_cast<int>(std::min(a.y, b.y) - reach));
  const int bottom = std::min(kSide - 1, static_cast<int>(std::max(a.y, b.y) + reach));
  const float dx = b.x - a.x, dy = b.y - a.y;
  const float length2 = dx * dx + dy * dy + 1e-6f;
  for (int y = top; y <= bottom; ++y) {
    for (int x = left; x <= right; ++x) {
      const float px = x + 0.5f - a.x, py = y + 0.5f - a.y;
      const float along = std::clamp((px * dx + py * dy) / length2, 0.0f, 1.0f);
      const float ex = px - along * dx, ey = py - along * dy;
      const float ink = std::clamp(radius + 0.5f - std::sqrt(ex * ex + ey * ey), 0.0f, 1.0f);
      float& pixel = (*canvas)[y * kSide + x];
      pixel = std::max(pixel, ink);
    }
  }
}

void DrawCurve(GlyphPoint a, GlyphPoint control, GlyphPoint b, float radius, Canvas* canvas) {
  GlyphPoint last = a;
  for (int i = 1; i <= kSegmentsPerCurve; ++i) {
    const float t = static_cast<float>(i) / kSegmentsPerCurve, s = 1 - t;
    const GlyphPoint next = {s * s * a.x + 2 * s * t * control.x + t * t * b.x,
                             s * s * a.y + 2 * s * t * control.y + t * t * b.y};
    DrawSegment(last, next, radius, canvas);
    last = next;
  }
}

void DrawGlyph(const Glyph& glyph, Random* random, Canvas* canvas) {
  const Affine map = RandomAffine(random);
  const float radius = Between(random, 0.6, 1.7);
  const double wobble = random->Uniform(0.02, 0.09);
  for (const GlyphStroke& stroke : glyph) {
    GlyphStroke path = stroke;
    for (GlyphPoint& point : path) {
      point = map({point.x + Between(random, -wobble, wobble), point.y + Between(random, -wobble, wobble)});
    }
    for (size_t i = 2; i < path.size(); i += 2) DrawCurve(path[i - 2], path[i - 1], path[i], radius, canvas);
  }
}

// A short stray stroke.
void DrawSpeck(Random* random, Canvas* canvas) {
  const GlyphPoint a = {Between(random, 0, kSide), Between(random, 0, kSide)};
  const GlyphPoint b = {a.x + Between(random, -5, 5), a.y + Between(random, -5, 5)};
  DrawSegment(a, b, Between(random, 0.3, 0.9), canvas);
}

void DrawImage(Random random, uint8_t* pixels, uint8_t* label) {
  *label = static_cast<uint8_t>(random.Below(kClasses));
  const absl::Span<const Glyph> glyphs = GlyphsOf(*label);
  Canvas canvas{};
  DrawGlyph(glyphs[random.Below(glyphs.size())], &random, &canvas);
  for (uint64_t specks = random.Below(3); specks > 0; --specks) DrawSpeck(&random, &canvas);
  const float contrast = Between(&random, 0.5, 1);
  const double noise = random.Uniform(0.05, 0.3);
  for (int i = 0; i < kPixels; ++i) {
    const float value = contrast * canvas[i] + Between(&random, -noise, noise);
    // NOLINTNEXTLINE(bugprone-incorrect-roundings): never negative
    pixels[i] = static_cast<uint8_t>(255 * std::clamp(value, 0.0f, 1.0f) + 0.5f);
  }
}

Examples DrawExamples(uint64_t seed, int64_t first, int64_t count) {
  std::vector<uint8_t> images(count * kPixels), labels(count);
  for (int64_t i = 0; i < count; ++i) DrawImage(Random(seed, first + i), &images[i * kPixels], &labels[i]);
  return {Column::FromBytes({1, kSide, kSide}, std::move(images)), Column::FromBytes({}, std::move(labels))};
}

}  // namespace

Dataset GlyphDigits(const GlyphDigitsOptions& options) {
  Dataset dataset;
  dataset.description = absl::StrCat(options.train, " rendered digits");
  dataset.classes = kClasses;
  dataset.train = DrawExamples(options.seed, 0, options.train);
  dataset.test = DrawExamples(options.seed, options.train, options.test);
  return dataset;
}

}  // namespace terse
