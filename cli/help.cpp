#include <fmt/format.h>

#include <memory>
#include <string>

#include "commands.hpp"
#include "neyman/core/error.hpp"
#include "neyman/pipeline/study_help.hpp"
#include "terminal.hpp"

namespace neyman::cli {

void add_help(CLI::App& app, int& status) {
  auto* command = app.add_subcommand("help", "The keys of the study file, by topic");
  struct Arguments {
    std::string topic;
    bool reference = false, schema = false;
  };
  auto arguments = std::make_shared<Arguments>();
  auto* topic = command
                    ->add_option("topic", arguments->topic,
                                 "A section such as training, or a kind such as mlp; without "
                                 "it, all are listed")
                    ->type_name("TOPIC");
  auto* reference = command->add_flag("--reference", arguments->reference, "All keys, as Markdown");
  auto* schema = command->add_flag("--schema", arguments->schema,
                                   "All keys, as a JSON Schema with which editors complete and "
                                   "check studies");
  reference->excludes(schema)->excludes(topic);
  schema->excludes(topic);
  command->footer("\nExamples:\n  neyman help\n  neyman help training\n  neyman help mlp");
  command->callback([arguments, &status] {
    status = success;
    if (arguments->schema) {
      say("{}", study_schema());
    } else if (arguments->reference) {
      say("{}", study_reference());
    } else if (arguments->topic.empty()) {
      say("Topics of the study file, with their kinds; neyman help TOPIC tells the keys.\n\n{}\n"
          "For the commands: neyman --help, neyman run --help.\n",
          study_overview());
    } else {
      try {
        say("{}", study_help(arguments->topic));
      } catch (const ArgumentError& error) {
        complain("neyman: {}\nRun neyman help for all topics.\n", error.what());
        status = bad_study;
      }
    }
  });
}

}  // namespace neyman::cli
