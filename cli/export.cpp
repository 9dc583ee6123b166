#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>

#include "answer.hpp"
#include "commands.hpp"
#include "neyman/core/error.hpp"
#include "neyman/data/atomic_file.hpp"
#include "neyman/pipeline/model.hpp"
#include "point.hpp"
#include "terminal.hpp"

namespace neyman::cli {

namespace {

struct ExportArguments {
  std::string model, out;
  std::optional<std::string> numerator, denominator;
  Talk talk;
};

int export_file(const ExportArguments& arguments) {
  const auto model =
      advised("neyman export takes the model.h5 that `neyman run` has written into its folder.",
              [&] { return load_model(arguments.model); });
  if (model.measurement && (arguments.numerator || arguments.denominator))
    throw ArgumentError(
        "export: --numerator and --denominator are given, but must be absent: the graph of a "
        "measurement has the parameters of its components as inputs");
  OnnxOptions options;
  if (arguments.numerator)
    options.numerator = parse_point("--numerator", *arguments.numerator, model.parameters);
  if (arguments.denominator)
    options.denominator = parse_point("--denominator", *arguments.denominator, model.parameters);
  write_file_atomically(arguments.out, export_onnx(model, options));
  if (arguments.talk.json) print_answer("export", success, {{"file", arguments.out}});
  if (arguments.talk.words()) say("Graph  {}\n", arguments.out);
  return success;
}

}  // namespace

void add_export(CLI::App& app, int& status) {
  auto* command = app.add_subcommand("export", "Write a trained model as a graph of ONNX");
  auto arguments = std::make_shared<ExportArguments>();
  command->add_option("model", arguments->model, "model.h5 of a run")
      ->type_name("MODEL")
      ->required();
  command->add_option("-o,--out", arguments->out, "The file to write")
      ->type_name("FILE")
      ->required();
  command->add_option("--numerator", arguments->numerator,
                      "θ0 as a constant of the graph, alpha=1,beta=-1 (default: an input of it)");
  command->add_option("--denominator", arguments->denominator,
                      "θ1 as a constant of the graph (default: an input of it)");
  arguments->talk.add_to(*command);
  command->footer(R"(
One graph from the features to log r, with standardisation, classifiers, calibration and
normalisation, which ONNX's runtimes evaluate without neyman. Its inputs are doubles: x, one row an
event; and θ0 and θ1 as numerator and denominator or, of a mixture, the weights of its components
there as numerator_weights and denominator_weights. Its output is log_r.

Of a measurement it is one graph of its channel, from x and the parameters that shapes depend on,
each an input of its name, to tables with a column for each component: log_r, the logarithm of its
normalised density over that of the reference, and sign, which negative weights may make -1. The
likelihood of events is then sum_i log(sum_c yield_c sign_c exp(log_r_c)) - sum_c yield_c.

Examples:
  neyman export my-study/out/model.h5 --out ratio.onnx
  neyman export my-study/out/model.h5 --out ratio.onnx --numerator gamma=0.05
  neyman export my-search/out/model.h5 --out events.onnx)");
  command->callback([arguments, &status] { status = export_file(*arguments); });
}

}  // namespace neyman::cli
