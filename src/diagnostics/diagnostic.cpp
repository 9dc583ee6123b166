#include "neyman/diagnostics/diagnostic.hpp"

#include <algorithm>
#include <numeric>

namespace neyman {

std::string to_string(Diagnostic::Verdict verdict) {
  switch (verdict) {
    case Diagnostic::Verdict::pass:
      return "pass";
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

Judgement judge(std::span<Diagnostic> diagnostics, const VerdictLevels& levels) {
  std::vector<std::size_t> tested;
  for (std::size_t i = 0; i < diagnostics.size(); ++i)
    if (diagnostics[i].p_value) tested.push_back(i);
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
    diagnostic.verdict = verdict_of(corrected, levels);
    if (own_warning) diagnostic.verdict = std::max(diagnostic.verdict, Diagnostic::Verdict::warn);
  }
  for (const auto& diagnostic : diagnostics) {
    out.verdict = std::max(out.verdict, diagnostic.verdict);
    out.warned += diagnostic.verdict == Diagnostic::Verdict::warn;
    out.failed += diagnostic.verdict == Diagnostic::Verdict::fail;
  }
  return out;
}

}  // namespace neyman
