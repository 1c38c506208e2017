#include "tersectl/run_group.h"

#include <string>

#include "core/cli/checks.h"
#include "tersectl/completion.h"
#include "tersectl/lists.h"

namespace terse {
namespace {

// A command about one run, in the group and without it.
struct RunVerb {
  const char* name;
  const char* help;
  RemoteCommand<SteerOptions> command;
  bool has_reason;
};

constexpr RunVerb kStop = {"stop", "End the run for good; the open round is given up", StopRun, false};
constexpr RunVerb kVerbs[] = {
    {"status", "State of the run", ShowStatus, false},
    {"pause", "Open no new round until `resume`", PauseRun, true},
    {"resume", "Go on after `pause`", ResumeRun, false},
    {"abort", "Give the open round up; the run goes on", AbortOpenRound, true},
};
constexpr RunVerb kStart = {"start", "Begin with a run that was made with --paused; the same as `resume`", ResumeRun,
                            false};
constexpr char kListHelp[] = "The runs of the coordinator, and their results";
constexpr int kMostCompared = 100;

AddedCommand<SteerOptions> AddVerb(CLI::App& app, const RunVerb& verb, Invocation* invocation) {
  const auto added = AddRemote(app, verb.name, verb.help, verb.command, invocation);
  if (verb.has_reason) added.app->add_option("--reason", added.options->reason, "Why, for those who ask");
  return added;
}

// In the group the run may stand behind the command, instead of --run.
CLI::Option* AddRunName(const CLI::App& program, CLI::App* sub, Invocation* invocation) {
  const CLI::Option* const option = program.get_option("--run");
  // Not `excludes`: it would be in the help of --run, once for every command.
  return sub->add_option("NAME", invocation->options.run, "Which run, as --run")
      ->type_name(kRunType)
      ->each([option](const std::string&) {
        if (option->count() > 0) throw CLI::ExcludesError("NAME", "--run");
      });
}

void AddRunList(CLI::App& app, const char* name, Invocation* invocation) {
  const auto [list, options] = AddRemote(app, name, kListHelp, ShowRuns, invocation);
  list->add_flag("--names", options->names, "Only the names, one a line");
  AddListOptions(list, &options->list, RunList().Heads());
}

void AddValidate(CLI::App& app, Invocation* invocation) {
  const auto [validate, options] =
      AddLocal(app, "validate", "Check a run file", ValidateRunFile, invocation, kValidateCodes);
  validate->add_option("FILE", options->file, "Run file (TOML)")->required();
}

void AddCreate(CLI::App& program, CLI::App& group, Invocation* invocation) {
  const auto [create, options] =
      AddRemote(group, "create", "Make a run, which is served at once", CreateRun, invocation, kCreateCodes);
  create->add_option("--run-file", options->file, "Run file (TOML)")->required();
  // The program's option may stand behind the command, too.
  program.get_option("--run")->check([create = create](const std::string&) -> std::string {
    return create->parsed() ? "this is a run's name, and `run create` takes a file; did you mean '--run-file'?" : "";
  });
  create->add_option("--model", options->model_file, "TorchScript file (torch.jit.save) that the run trains")
      ->check(ExistingFile());
  create->add_flag("--paused", options->paused, "Open no round until `run start`");
}

void AddDelete(const CLI::App& program, CLI::App& group, Invocation* invocation) {
  const auto [remove, options] =
      AddRemote(group, "delete", "Remove a run for good, with its files", DeleteRun, invocation);
  AddRunName(program, remove, invocation)->required();
  remove->add_flag("--force", options->force, "Also one that is active or paused");
  remove->add_flag("--yes", options->yes, "Ask nobody");
}

void AddDiff(CLI::App& group, Invocation* invocation) {
  const auto [diff, options] =
      AddLocal(group, "diff", "In which settings two runs differ", DiffRuns, invocation, kDiffCodes);
  diff->add_option("A", options->a, "Run of the coordinator, or a run file")->required()->type_name(kRunType);
  diff->add_option("B", options->b, "The other")->required()->type_name(kRunType);
}

void AddCompare(CLI::App& group, Invocation* invocation) {
  const auto [compare, options] =
      AddLocal(group, "compare", "Settings that differ, figures, and bytes to reach an accuracy, of several runs",
               CompareRuns, invocation, kCompareCodes);
  compare->add_option("RUN", options->runs, "Runs of the coordinator, or folders that `export` wrote; two at least")
      ->required()
      ->expected(2, kMostCompared)
      ->type_name(kRunType);
  compare
      ->add_option("--accuracy", options->accuracies,
                   "Accuracy to reach, 0 to 1; repeatable; default: some that all of them reach")
      ->check(Number(0, 1))
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  compare->add_option("--svg", options->svg, "File to write a picture to: accuracy against bytes, all runs in one");
}

void AddGroup(CLI::App& program, Invocation* invocation) {
  CLI::App* group = program.add_subcommand("run", "Make, steer, compare and delete runs");
  group->require_subcommand(1);
  AddCreate(program, *group, invocation);
  AddValidate(*group, invocation);
  AddRunList(*group, "list", invocation);
  AddRunName(program, AddVerb(*group, kStart, invocation).app, invocation);
  for (const RunVerb& verb : kVerbs) AddRunName(program, AddVerb(*group, verb, invocation).app, invocation);
  AddRunName(program, AddVerb(*group, kStop, invocation).app, invocation);
  AddDelete(program, *group, invocation);
  AddDiff(*group, invocation);
  AddCompare(*group, invocation);
}

}  // namespace

void AddRuns(CLI::App& program, Invocation* invocation) {
  AddRunList(program, "runs", invocation);
  AddGroup(program, invocation);
  for (const RunVerb& verb : kVerbs) AddVerb(program, verb, invocation);
  const auto [stop, options] = AddVerb(program, kStop, invocation);
  stop->add_flag("--shutdown", options->shutdown,
                 "End the coordinator process instead; its runs go on at its next start");
  AddValidate(program, invocation);
}

}  // namespace terse
