#include "neyman/core/settings.hpp"

#include <gtest/gtest.h>

namespace neyman {
namespace {

using Table = SettingValue::Table;
using Array = SettingValue::Array;

SettingValue value(decltype(SettingValue::data) data, int line) { return {std::move(data), line}; }

Settings example() {
  Table inner{{"kind", value(std::string("mlp"), 4)},
              {"epochs", value(2.5, 5)},
              {"hiden", value(std::int64_t{3}, 6)}};
  return Settings(Table{{"seed", value(std::int64_t{7}, 1)},
                        {"rate", value(-1.0, 2)},
                        {"classifier", value(std::move(inner), 3)},
                        {"grid", value(Array{value(1.0, 8), value(std::string("x"), 8)}, 8)}},
                  "study.toml");
}

std::vector<std::string> words(const Settings& settings) {
  std::vector<std::string> out;
  for (const auto& problem : settings.problems()) out.push_back(to_string(problem));
  return out;
}

TEST(Settings, ReadsValuesWithDefaults) {
  auto settings = example();
  EXPECT_EQ(settings.integer("seed", 1), 7);
  EXPECT_EQ(settings.number("seed", 1.0), 7.0);
  EXPECT_EQ(settings.number("absent", 1.5), 1.5);
  EXPECT_EQ(settings.table("classifier").text("kind"), "mlp");
  EXPECT_TRUE(settings.problems().empty());
}

TEST(Settings, ListsEveryProblemWithFileAndLine) {
  auto settings = example();
  settings.integer("seed", 1);
  settings.number("rate", 0.1, Limits::positive());
  settings.numbers("grid", {});
  settings.text("name");
  auto classifier = settings.table("classifier");
  classifier.choice("kind", "logistic", {"logistic", "mlp"});
  classifier.integer("epochs", 10, 1);
  classifier.numbers("hidden", {});
  settings.refuse_unread();
  EXPECT_EQ(words(settings),
            (std::vector<std::string>{
                "study.toml:2: rate is -1, but must be positive",
                "study.toml:8: grid[1] is \"x\", but must be a number",
                "study.toml: name is missing, but must be a text in quotes",
                "study.toml:5: classifier.epochs is 2.5, but must be a whole number of at least 1",
                "study.toml:6: classifier.hiden is not a known key; "
                "candidates are epochs, hidden, kind (did you mean 'hidden'?)"}));
  EXPECT_THROW(settings.throw_if_problems(), StudyError);
}

TEST(Settings, AWrongKindHidesWhichKeysAreKnown) {
  auto settings = example();
  auto classifier = settings.table("classifier");
  classifier.choice("kind", "logistic", {"logistic", "mpl"});
  for (const char* key : {"seed", "rate"}) settings.number(key, 0.0);
  settings.numbers_or_texts("grid");
  settings.refuse_unread();
  EXPECT_EQ(words(settings),
            (std::vector<std::string>{"study.toml:4: classifier.kind is \"mlp\", but must be one "
                                      "of logistic, mpl (did you mean 'mpl'?)"}));
}

TEST(Settings, ProblemsOfATableAndOfAnElement) {
  auto settings = example();
  settings.table("classifier").problem("", "is odd");
  settings.problem("grid[1]", "is odd");
  settings.problem("grid[7]", "is odd");
  EXPECT_EQ(words(settings), (std::vector<std::string>{"study.toml:3: classifier is odd",
                                                       "study.toml:8: grid[1] is odd",
                                                       "study.toml:8: grid[7] is odd"}));
}

TEST(Settings, AWholeNumberMayBeWrittenAsAReal) {
  Settings settings(Table{{"n", value(1e6, 1)}, {"m", value(0.5, 2)}});
  EXPECT_EQ(settings.integer("n", 1), 1000000);
  EXPECT_EQ(settings.integer("m", 3), 3);
  EXPECT_EQ(settings.problems().size(), 1U);
}

TEST(Settings, RowsMustBeOfOneLength) {
  const auto row = [](std::vector<double> numbers) {
    Array out;
    for (const double number : numbers) out.push_back(value(number, 1));
    return value(std::move(out), 1);
  };
  Settings settings(Table{{"good", value(Array{row({1, 2}), row({3, 4})}, 1)},
                          {"ragged", value(Array{row({1, 2}), row({3})}, 2)}},
                    "s");
  EXPECT_EQ(settings.rows("good")[1][0], 3.0);
  EXPECT_TRUE(settings.rows("ragged").empty());
  EXPECT_EQ(words(settings),
            (std::vector<std::string>{"s:2: ragged has 1 values in row 1, but 2 in the first"}));
}

TEST(Settings, ARangeHasTwoValuesInOrder) {
  const auto list = [](std::vector<double> numbers) {
    Array out;
    for (const double number : numbers) out.push_back(value(number, 2));
    return value(std::move(out), 2);
  };
  Settings settings(Table{{"good", list({-1, 1})},
                          {"reversed", list({1, -1})},
                          {"three", list({1, 2, 3})},
                          {"text", value(Array{value(std::string("a"), 2)}, 2)}},
                    "s");
  EXPECT_EQ(settings.range("good"), std::pair(-1.0, 1.0));
  for (const char* key : {"absent", "reversed", "three", "text"})
    EXPECT_FALSE(settings.range(key)) << key;
  EXPECT_EQ(words(settings),
            (std::vector<std::string>{"s: absent is missing, but must be [lowest, highest]",
                                      "s:2: reversed is [1, -1], but must be [lowest, highest]",
                                      "s:2: three has 3 values, but must be [lowest, highest]",
                                      "s:2: text[0] is \"a\", but must be a number"}));
}

TEST(Settings, OptionalNumbers) {
  Settings settings(Table{{"x", value(2.5, 1)},
                          {"n", value(std::int64_t{3}, 2)},
                          {"odd", value(std::string("a"), 3)}},
                    "s");
  EXPECT_EQ(settings.optional_number("x"), 2.5);
  EXPECT_EQ(settings.optional_integer("n"), 3);
  EXPECT_FALSE(settings.optional_number("absent"));
  EXPECT_FALSE(settings.optional_integer("absent"));
  EXPECT_TRUE(settings.problems().empty());
  EXPECT_EQ(settings.optional_number("odd", Limits::any(), 0.5), 0.5);  // it is there
  EXPECT_EQ(words(settings), (std::vector<std::string>{"s:3: odd is \"a\", but must be a number"}));
}

TEST(Settings, ObjectsAreReadByTheirType) {
  struct One final : SettingObject {};
  struct Other final : SettingObject {};
  const auto one = std::make_shared<const One>();
  Settings settings(
      Table{{"held", value(SettingValue::Object(one), 0)}, {"text", value(std::string("t"), 0)}});
  EXPECT_EQ(settings.object<Other>("held"), nullptr);
  EXPECT_EQ(settings.object<One>("text"), nullptr);
  EXPECT_EQ(settings.object<One>("absent"), nullptr);
  EXPECT_EQ(settings.object<One>("held"), one);
  settings.refuse_unread();  // `held` has been read, `text` has not
  ASSERT_EQ(settings.problems().size(), 1u);
  EXPECT_EQ(settings.problems()[0].key, "text");
  EXPECT_EQ(describe(*settings.find("held")), "an object");
}

}  // namespace
}  // namespace neyman
