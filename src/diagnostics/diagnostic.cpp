#include "neyman/diagnostics/diagnostic.hpp"

#include <algorithm>
#include <numeric>

namespace neyman {

std::string to_string(Diagnostic::Verdict verdict) {
  switch (verdict) {
    case Diagnostic::Verdict::pass:
      return "pass";
    case Diagnostic::Verdict::no_power:
      return "no power";
    case Diagnostic::Verdict::warn:
      return "warn";
    case Diagnostic::Verdict::fail:
      return "fail";
  }
  return "fail";
}

std::optional<double> Diagnostic::number(const std::string& key) const {
  for (const auto& [name_of, value] : numbers)
    if (name_of == key) return value;
  return std::nullopt;
}

Diagnostic::Verdict verdict_of(double p_value, const VerdictLevels& levels) {
  if (p_value < levels.fail) return Diagnostic::Verdict::fail;
  return p_value < levels.warn ? Diagnostic::Verdict::warn : Diagnostic::Verdict::pass;
}

Diagnostic::Verdict worst_of(std::span<const Diagnostic> diagnostics) {
  using Verdict = Diagnostic::Verdict;
  auto out = diagnostics.empty() ? Verdict::pass : Verdict::no_power;
  bool power = false;
  for (const auto& diagnostic : diagnostics) {
    if (diagnostic.verdict == Verdict::no_power) continue;
    out = power ? std::max(out, diagnostic.verdict) : diagnostic.verdict;
    power = true;
  }
  return out;
}

Judgement judge(std::span<Diagnostic> diagnostics, const VerdictLevels& levels) {
  std::vector<std::size_t> tested;
  for (std::size_t i = 0; i < diagnostics.size(); ++i)
    if (diagnostics[i].p_value && diagnostics[i].verdict != Diagnostic::Verdict::no_power)
      tested.push_back(i);
  std::stable_sort(tested.begin(), tested.end(), [&](std::size_t a, std::size_t b) {
    return *diagnostics[a].p_value < *diagnostics[b].p_value;
  });
  Judgement out;
  double corrected = 0.0;
  for (std::size_t rank = 0; rank < tested.size(); ++rank) {
    auto& diagnostic = diagnostics[tested[rank]];
    const auto tests_left = static_cast<double>(tested.size() - rank);
    corrected = std::max(corrected, std::min(1.0, tests_left * *diagnostic.p_value));
    if (rank == 0) out.p_value = corrected;
    const bool own_warning =
        !diagnostic.note.empty() && diagnostic.verdict != Diagnostic::Verdict::pass;
    diagnostic.verdict = std::min(verdict_of(corrected, levels), diagnostic.worst);
    if (own_warning) diagnostic.verdict = std::max(diagnostic.verdict, Diagnostic::Verdict::warn);
  }
  out.verdict = worst_of(diagnostics);
  for (const auto& diagnostic : diagnostics) {
    out.warned += diagnostic.verdict == Diagnostic::Verdict::warn;
    out.failed += diagnostic.verdict == Diagnostic::Verdict::fail;
  }
  return out;
}

}  // namespace neyman
