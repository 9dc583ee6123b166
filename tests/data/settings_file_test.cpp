#include "neyman/data/settings_file.hpp"

#include "support.hpp"

namespace neyman {
namespace {

using test::message_of;
using test::TemporaryFolder;

TEST(SettingsFile, ValuesOfEveryType) {
  Settings settings = parse_settings(R"(
title = "a \"study\""
seed = 42
rate = 1e-3
on = true
grid = [1, 2.5, 3]
names = ["a", "b"]
[parameters.alpha]
range = [-3, 3]
[parameters]
beta = { range = [0, 1] }
[[component]]
kind = "normal"
[[component]]
kind = "exponential"
)",
                                     "study.toml");
  EXPECT_EQ(settings.text("title"), "a \"study\"");
  EXPECT_EQ(settings.integer("seed", 0), 42);
  EXPECT_EQ(settings.number("rate", 0), 1e-3);
  EXPECT_TRUE(settings.flag("on", false));
  EXPECT_EQ(settings.numbers("grid", {}), (std::vector<double>{1, 2.5, 3}));
  EXPECT_EQ(settings.texts("names", {}), (std::vector<std::string>{"a", "b"}));
  Settings parameters = settings.table("parameters");
  EXPECT_EQ(parameters.table("alpha").numbers("range", {}), (std::vector<double>{-3, 3}));
  EXPECT_EQ(parameters.table("beta").numbers("range", {}), (std::vector<double>{0, 1}));
  std::vector<Settings> components = settings.tables("component");
  ASSERT_EQ(components.size(), 2u);
  EXPECT_EQ(components[1].text("kind"), "exponential");
  settings.refuse_unread();
  EXPECT_NO_THROW(settings.throw_if_problems());
}

TEST(SettingsFile, KeysKeepTheOrderOfTheFile) {
  const Settings settings = parse_settings(
      "zeta = 1\n[gamma]\nb = 1\na = 2\n[alpha]\nx = 1\n[beta.deep]\ny = 1\n", "study.toml");
  EXPECT_EQ(settings.keys(), (std::vector<std::string>{"zeta", "gamma", "alpha", "beta"}));
  EXPECT_EQ(Settings(settings).table("gamma").keys(), (std::vector<std::string>{"b", "a"}));
}

TEST(SettingsFile, EveryValueKnowsItsLine) {
  Settings settings = parse_settings(
      "# a comment\nseed = -1\n\n[classifier]\nkind = \"mlp\"\nhidden = [\n  40,\n  -3,\n]\n"
      "[parameters.alpha]\nrange = [0, 1]\n[[part]]\na = 1\n[[part]]\na = \"b\"\n",
      "study.toml");
  EXPECT_EQ(settings.where("seed").line, 2);
  EXPECT_EQ(settings.where("seed").file, "study.toml");
  EXPECT_EQ(settings.where("classifier").line, 4);
  EXPECT_EQ(settings.table("classifier").where("hidden").line, 6);
  EXPECT_EQ(settings.where("parameters").line, 10);
  EXPECT_EQ(settings.table("parameters").where("alpha").line, 10);
  EXPECT_EQ(settings.tables("part")[1].where("a").line, 15);
  const SettingValue* hidden = settings.table("classifier").find("hidden");
  ASSERT_NE(hidden, nullptr);
  EXPECT_EQ(std::get<SettingValue::Array>(hidden->data).at(1).line, 8);
}

TEST(SettingsFile, ProblemsNameFileLineAndKey) {
  Settings settings = parse_settings("[training]\nsamples = \"many\"\n", "study.toml");
  settings.table("training").integer("samples", 1);
  const std::string message = message_of<StudyError>([&] { settings.throw_if_problems(); });
  EXPECT_CONTAINS(message, "study.toml:2: training.samples ");
}

TEST(SettingsFile, SyntaxErrorsNameTheLine) {
  const auto problem = [](const std::string& text) {
    const std::string message = message_of<StudyError>([&] { parse_settings(text, "study.toml"); });
    return message;
  };
  EXPECT_CONTAINS(problem("a = 1\nb = = 2\n"), "study.toml:2: is not valid TOML: ");
  EXPECT_CONTAINS(problem("a = 1\n\na = 2\n"), "study.toml:3: is not valid TOML: ");
  EXPECT_CONTAINS(problem("[a\nb = 1\n"), "study.toml:1: is not valid TOML: ");
  EXPECT_CONTAINS(problem("a = \"\xFF\"\n"), "study.toml:1: is not valid TOML: ");
  EXPECT_CONTAINS(problem("a = 99999999999999999999\n"), "study.toml:1: is not valid TOML: ");
}

TEST(SettingsFile, DatesAndTimesAreAllRefused) {
  try {
    parse_settings(
        "day = 2024-01-02\n[run]\nat = [1, 10:00:00]\nok = 1\nnow = 2024-01-02T03:04:05Z\n",
        "study.toml");
    FAIL() << "dates were accepted";
  } catch (const StudyError& error) {
    ASSERT_EQ(error.problems().size(), 3u);
    EXPECT_EQ(to_string(error.problems()[0]),
              "study.toml:1: day is a date or a time, but must be a number, a text in quotes, "
              "true, false, a list or a table");
    EXPECT_EQ(error.problems()[1].key, "run.at[1]");
    EXPECT_EQ(error.problems()[1].where.line, 3);
    EXPECT_EQ(error.problems()[2].key, "run.now");
    EXPECT_EQ(error.problems()[2].where.line, 5);
  }
}

TEST(SettingsFile, ReadsFiles) {
  const TemporaryFolder folder;
  const std::string path = folder.file("study.toml", "\xEF\xBB\xBFseed = 3\r\n");
  EXPECT_EQ(read_settings(path).integer("seed", 0), 3);
  EXPECT_EQ(read_settings(path).where("seed").file, path);
  EXPECT_EQ(message_of<FileError>([&] { read_settings(folder.path("no.toml")); }),
            folder.path("no.toml") + ": does not exist");
  EXPECT_TRUE(read_settings(folder.file("empty.toml", "")).keys().empty());
}

TEST(SettingsFile, KeysAndValuesThatAreNestedTooDeeplyAreRefused) {
  const auto repeated = [](const std::string& text, int times) {
    std::string out;
    for (int i = 0; i < times; ++i) out += text;
    return out;
  };
  const auto error = [](const std::string& text) {
    try {
      parse_settings(text, "study.toml");
    } catch (const StudyError& found) {
      return std::string(found.what());
    }
    return std::string();
  };
  const std::string deep = repeated("a.", 100'000) + "a";
  for (const auto& text : {"x = 1\n" + deep + " = 1\n", "x = 1\n[" + deep + "]\n",
                           "x = 1\n[[ " + repeated("'a' . \"b\" .", 50'000) + "c]]\n",
                           "x = 1\ny = { " + deep + " = 1 }\n"})
    EXPECT_NE(error(text).find("study.toml:2: is not valid TOML: a key has more than 64 parts"),
              std::string::npos)
        << error(text).substr(0, 200);
  EXPECT_NE(error("x = " + repeated("[", 100'000)).find("is not valid TOML"), std::string::npos);
  // What looks like a long key in a text, a comment or a list of numbers is none.
  EXPECT_EQ(
      error("# " + deep + "\ntext = \"" + deep + "\"\nother = '''\n" + deep +
            "'''\nquoted = \"\\\"" + deep + "\"\nnumbers = [" + repeated("0.5, ", 1000) + "1.5]\n"),
      "");
  EXPECT_EQ(error(repeated("a.", 63) + "a = 1\n"), "");
}

}  // namespace
}  // namespace neyman
