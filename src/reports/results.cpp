#include "neyman/reports/results.hpp"

namespace neyman {

std::string to_string(Check::Verdict verdict) {
  switch (verdict) {
    case Check::Verdict::pass:
      return "pass";
    case Check::Verdict::warn:
      return "warn";
    case Check::Verdict::fail:
      return "fail";
  }
  return "fail";
}

}  // namespace neyman
