#include "neyman/core/description.hpp"

#include <gtest/gtest.h>

#include "neyman/core/settings.hpp"

namespace neyman {
namespace {

using Type = KeyDescription::Type;

TEST(Limits, InWords) {
  EXPECT_EQ(Limits::positive().words(), "positive");
  EXPECT_EQ(Limits::above(1).words(), "above 1");
  EXPECT_EQ(Limits::between(0, 1).words(), "between 0 and 1");
  EXPECT_EQ(Limits::inside(0, 1).words(), "strictly between 0 and 1");
  EXPECT_FALSE(Limits::inside(0, 1).contains(0));
  EXPECT_TRUE(Limits::between(0, 1).contains(0));
}

TEST(Description, ShapesInWords) {
  const auto words = [](KeyDescription::Shape shape) { return shape.words(); };
  EXPECT_EQ(words({Type::number}), "a number");
  EXPECT_EQ(words({Type::whole, 0, Limits::between(1, 9)}), "a whole number, between 1 and 9");
  EXPECT_EQ(words({Type::number, 1, Limits::positive()}), "a list of numbers, positive");
  EXPECT_EQ(words({.type = Type::number, .lists = 1, .size = 2}), "a list of 2 numbers");
  EXPECT_EQ(words({.type = Type::text, .lists = 2, .size = 2}), "a list of lists of 2 texts");
  EXPECT_EQ(words({Type::choice, 0, Limits::any(), {"a", "b"}}), "one of \"a\", \"b\"");
  EXPECT_EQ(words({Type::choice, 1, Limits::any(), {"a", "b"}}), "a list of any of \"a\", \"b\"");
  EXPECT_EQ(words({Type::choice, 0, Limits::any(), {"all"}}), "\"all\"");
  EXPECT_EQ(words({Type::formula}), "a number or formula");
  EXPECT_EQ(words({Type::table, 1}), "a list of tables");
}

/// What reading by `read` says about a tree.
template <class Read>
Description described(Read&& read) {
  Description out;
  auto settings = Settings::describing(out);
  read(settings);
  return out;
}

TEST(Description, NotesWhatIsReadWithItsDefault) {
  const auto found = described([](Settings& settings) {
    EXPECT_EQ(settings.count({"events", "how many"}, 7, 1), 7u);
    EXPECT_EQ(settings.number({"rate", "how fast"}, 0.5, Limits::positive()), 0.5);
    EXPECT_EQ(settings.choice({"rule", "which"}, "b", {"a", "b"}), "b");
    EXPECT_EQ(settings.numbers({"levels", "all of them"}, {0.5, 0.75}),
              (std::vector<double>{0.5, 0.75}));
    EXPECT_EQ(settings.text({"weights", "a column"}, ""), "");
    EXPECT_EQ(settings.flag({"draw", "or not"}, true), true);
    EXPECT_FALSE(settings.optional_number({"truth", "if known"}));
    EXPECT_FALSE(settings.optional_integer({"tries", "if any"}, 1, 5));
    EXPECT_FALSE(settings.range({"range", "from, to"}));
    settings.number({"mean", "must be there"});
    settings.number_or_text({"sigma", "must be there"}, Limits::positive());
    settings.number_or_text({"location", "may be"}, Limits::any(), 0.0);
    settings.texts({"command", "must be there", Key::required}, {});
  });
  std::vector<std::string> names, defaults;
  std::string required;
  for (const auto& key : found.root.keys) {
    names.push_back(key.name);
    defaults.push_back(key.fallback);
    EXPECT_FALSE(key.meaning.empty()) << key.name;
    EXPECT_EQ(key.shapes.size(), 1u) << key.name;
    if (key.required) required += key.name + " ";
  }
  EXPECT_EQ(names, (std::vector<std::string>{"events", "rate", "rule", "levels", "weights", "draw",
                                             "truth", "tries", "range", "mean", "sigma", "location",
                                             "command"}));
  EXPECT_EQ(defaults, (std::vector<std::string>{"7", "0.5", "\"b\"", "[0.5, 0.75]", "", "true", "",
                                                "", "", "", "", "0", ""}));
  EXPECT_EQ(required, "range mean sigma command ");
  EXPECT_EQ(found.root.find("range")->shapes[0].size, 2u);
  EXPECT_EQ(found.root.find("tries")->shapes[0].words(), "a whole number, between 1 and 5");
  EXPECT_EQ(found.root.find("sigma")->shapes[0].words(), "a number or formula, positive");
  EXPECT_EQ(found.root.find("absent"), nullptr);
}

TEST(Description, AKeyMayHaveSeveralShapes) {
  const auto found = described([](Settings& settings) {
    const Key of("of", "a name or tables");
    if (settings.is_text("of")) settings.choice(of, "a", {"a", "b"});
    if (settings.is_table("of")) settings.table(of).number({"x", "of one"}, 1.0);
    for (auto& one : settings.tables(of)) one.number({"y", "of each"}, 2.0);
    settings.choice(of, "a", {"b", "c"});
  });
  ASSERT_EQ(found.root.keys.size(), 1u);
  const auto& key = found.root.keys[0];
  ASSERT_EQ(key.shapes.size(), 3u);
  EXPECT_EQ(key.shapes[0].words(), "one of \"a\", \"b\", \"c\"");
  EXPECT_EQ(key.shapes[1].words(), "a table");
  EXPECT_EQ(key.shapes[2].words(), "a list of tables");
  ASSERT_EQ(key.table->keys.size(), 2u);
  EXPECT_EQ(key.table->keys[1].name, "y");
}

/// A kind that holds others of its kind, as mixtures do.
std::unique_ptr<int> make_shape(Settings settings) {
  const Kinds kinds{"shape", "which", "", {{"dot", "nothing"}, {"group", "several"}}};
  return settings.by_kind(kinds, [](const std::string& kind, Settings table) {
    int size = 1;
    if (kind == "group")
      for (const auto& part : table.tables({"parts", "shapes"}))
        if (const auto made = make_shape(part)) size += *made;
    return std::make_unique<int>(size);
  });
}

TEST(Description, KindsAreDescribedOnce) {
  const auto found = described([](Settings settings) {
    EXPECT_EQ(make_shape(settings), nullptr);
    EXPECT_EQ(make_shape(settings), nullptr);
  });
  ASSERT_EQ(found.root.kinds.size(), 1u);
  EXPECT_EQ(found.root.kinds[0].topic, "shape");
  ASSERT_EQ(found.kinds.size(), 1u);
  const auto& kinds = found.kinds.at("shape");
  ASSERT_EQ(kinds.size(), 2u);
  EXPECT_EQ(kinds[0].name, "dot");
  EXPECT_TRUE(kinds[0].table.keys.empty());
  const auto* parts = kinds[1].table.find("parts");
  ASSERT_NE(parts, nullptr);
  EXPECT_EQ(parts->table->kinds[0].topic, "shape");
  EXPECT_TRUE(found.root.find("kind")->required);
}

TEST(Settings, ByKindReadsTheOneThatIsNamed) {
  const auto value = [](auto data) { return SettingValue{std::move(data), 3}; };
  const auto problem = [](Settings settings) {
    EXPECT_EQ(make_shape(settings), nullptr);
    return settings.problems().size() == 1 ? to_string(settings.problems()[0]) : "none or many";
  };
  using Table = SettingValue::Table;
  const SettingValue dot = value(Table{{"kind", value(std::string("dot"))}});
  Settings group(Table{{"kind", value(std::string("group"))},
                       {"parts", value(SettingValue::Array{dot, dot})}});
  EXPECT_EQ(*make_shape(group), 3);
  EXPECT_EQ(problem(Settings(Table{}, "s")), "s: kind is missing, but must be one of dot, group");
  EXPECT_EQ(problem(Settings(Table{{"kind", value(std::string("dto"))}}, "s")),
            "s:3: kind is \"dto\", but must be one of dot, group (did you mean 'dot'?)");
  EXPECT_EQ(problem(Settings(Table{{"kind", value(true)}}, "s")),
            "s:3: kind is true, but must be a text in quotes");
}

TEST(Description, NamesOfUsersHaveNoLimitsOrDefaults) {
  const auto found = described([](Settings& settings) {
    for (const auto& name : settings.keys())
      settings.number({name, "a value"}, 0.5, Limits::between(0, 1));
  });
  ASSERT_EQ(found.root.keys.size(), 1u);
  EXPECT_EQ(found.root.keys[0].name, Settings::any_name);
  EXPECT_EQ(found.root.keys[0].shapes[0].words(), "a number");
  EXPECT_TRUE(found.root.keys[0].fallback.empty());
}

TEST(Description, NothingIsMadeOfWhatIsDescribed) {
  Description out;
  auto settings = Settings::describing(out);
  for (std::size_t reads = 1; reads < 3; ++reads) {
    settings.number({"x", "read"}, 1.0);  // a reader stops where a problem was noted
    EXPECT_EQ(settings.problems().size(), reads);
  }
}

}  // namespace
}  // namespace neyman
