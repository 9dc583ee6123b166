#include "neyman/simulators/expression.hpp"

#include <fmt/format.h>
#include <muParser.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <mutex>

#include "neyman/core/check.hpp"
#include "neyman/core/error.hpp"

namespace neyman {

namespace {

double power(double base, double exponent) { return std::pow(base, exponent); }

/// muParser's, and what Python and C write as well.
mu::Parser make_parser() {
  mu::Parser parser;
  parser.DefineFun("pow", power);
  return parser;
}

/// As muParser writes it: ^ for **, in the same places.
std::string for_parser(std::string formula) {
  for (std::size_t at = formula.find("**"); at != formula.npos; at = formula.find("**", at + 2)) {
    formula[at] = '^';
    formula[at + 1] = ' ';
  }
  return formula;
}

/// One compiled formula with the variables it reads: muParser's own state, for one thread.
class Evaluator {
 public:
  Evaluator(const std::string& formula, const std::vector<std::string>& names)
      : values_(names.size(), 0.0) {
    for (std::size_t i = 0; i < names.size(); ++i) parser_.DefineVar(names[i], &values_[i]);
    parser_.SetExpr(for_parser(formula));
  }
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  double operator()(std::span<const double> point) {
    std::copy(point.begin(), point.end(), values_.begin());
    return parser_.Eval();
  }
  mu::Parser& parser() { return parser_; }

 private:
  std::vector<double> values_;
  mu::Parser parser_ = make_parser();
};

[[noreturn]] void fail_formula(const std::string& formula, std::string_view reason) {
  fail_argument("Expression", "formula", fmt::format("\"{}\"", formula),
                fmt::format("a formula of the parameters: {}", reason));
}

void check_names(const std::vector<std::string>& names) {
  const mu::Parser parser = make_parser();
  const auto plain = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  for (const auto& name : names) {
    const bool fits = !name.empty() && std::all_of(name.begin(), name.end(), plain) &&
                      std::isdigit(static_cast<unsigned char>(name[0])) == 0;
    if (!fits)
      fail_argument("Expression", "parameter name", "'" + name + "'",
                    "letters, digits and _, and not begin with a digit");
    if (parser.GetFunDef().count(name) > 0 || parser.GetConst().count(name) > 0)
      fail_argument("Expression", "parameter name", "'" + name + "'",
                    "different from the functions and constants of formulas");
  }
}

/// muParser reads "a = 2" as an assignment; here it is a slip for "==".
void refuse_assignment(const std::string& formula) {
  for (std::size_t i = 0; i < formula.size(); ++i) {
    if (formula[i] != '=') continue;
    if (i + 1 < formula.size() && formula[i + 1] == '=') {
      ++i;
    } else if (i == 0 || std::string_view("<>!").find(formula[i - 1]) == std::string_view::npos) {
      fail_formula(formula, fmt::format("position {}: '=' assigns; use '==' to compare", i + 1));
    }
  }
}

std::string words(const mu::ParserError& error, const std::vector<std::string>& names) {
  // muParser counts positions from 0, and from the end of the formula where it is incomplete.
  const auto place = fmt::format("position {}: ", error.GetPos() + 1);
  if (error.GetCode() == mu::ecUNASSIGNABLE_TOKEN && !error.GetToken().empty() &&
      (std::isalpha(static_cast<unsigned char>(error.GetToken()[0])) != 0 ||
       error.GetToken()[0] == '_'))
    return place + unknown_name(error.GetToken(), "a parameter or function", names);
  return place + error.GetMsg();
}

}  // namespace

/// The formula and idle evaluators, one for each thread that has been inside at the same time.
struct Expression::Formula {
  std::string text;
  std::vector<std::string> names;
  mutable std::mutex mutex;
  mutable std::vector<std::unique_ptr<Evaluator>> idle;

  /// Calls `work` with an evaluator that nobody else has meanwhile.
  template <class Work>
  void borrow(Work&& work) const {
    std::unique_ptr<Evaluator> evaluator;
    {
      const std::lock_guard lock(mutex);
      if (!idle.empty()) {
        evaluator = std::move(idle.back());
        idle.pop_back();
      }
    }
    if (evaluator == nullptr) evaluator = std::make_unique<Evaluator>(text, names);
    work(*evaluator);
    const std::lock_guard lock(mutex);
    idle.push_back(std::move(evaluator));
  }
};

Expression::Expression(double constant) : text_(fmt::format("{}", constant)), value_(constant) {
  check_finite("Expression", "constant", constant);
}

Expression::Expression(const std::string& formula, const ParameterSpace& parameters)
    : text_(formula) {
  const auto names = parameters.names();
  check_names(names);
  refuse_assignment(formula);
  auto shared = std::make_shared<Formula>();
  shared->text = formula;
  shared->names = names;
  const std::vector<double> origin(names.size(), 0.0);
  try {
    auto evaluator = std::make_unique<Evaluator>(formula, names);
    const double value = (*evaluator)(origin);
    if (evaluator->parser().GetNumResults() > 1)
      fail_formula(formula, "it has several values; use one, without commas between them");
    for (const auto& used : evaluator->parser().GetUsedVar())
      uses_.push_back(parameters.index(used.first));
    std::sort(uses_.begin(), uses_.end());
    if (uses_.empty()) {
      if (!std::isfinite(value)) fail_formula(formula, fmt::format("its value is {}", value));
      value_ = value;
      return;
    }
    shared->idle.push_back(std::move(evaluator));
  } catch (const mu::ParserError& error) {
    fail_formula(formula, words(error, names));
  }
  formula_ = std::move(shared);
}

double Expression::evaluate(std::span<const double> point) const {
  check_same_size("Expression", "point", point.size(), formula_->names.size(),
                  "one for each parameter");
  double value = 0.0;
  formula_->borrow([&](Evaluator& evaluator) { value = evaluator(point); });
  if (!std::isfinite(value)) fail_value(point, value);
  return value;
}

void Expression::each(MatrixView points, std::span<double> out) const {
  check_same_size("Expression", "out", out.size(), points.rows(), "one for each row of points");
  if (formula_ == nullptr) {
    std::fill(out.begin(), out.end(), value_);
    return;
  }
  check_same_size("Expression", "a row of points", points.cols(), formula_->names.size(),
                  "one for each parameter");
  if (uses_.size() == 1 && text_ == formula_->names[uses_[0]]) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = points(i, uses_[0]);
  } else {
    formula_->borrow([&](Evaluator& evaluator) {
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = evaluator(points.row(i));
    });
  }
  for (std::size_t i = 0; i < out.size(); ++i)
    if (!std::isfinite(out[i])) fail_value(points.row(i), out[i]);
}

void Expression::fail_value(std::span<const double> point, double value) const {
  std::string at;
  for (const std::size_t i : uses_)
    at += fmt::format("{}{} = {:.6g}", at.empty() ? "" : ", ", formula_->names[i], point[i]);
  fail_argument("Expression", fmt::format("\"{}\" at {}", text_, at), fmt::format("{}", value),
                "finite");
}

}  // namespace neyman
