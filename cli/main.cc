// isomer: the commands that there are.
#include "cli/command.h"

// NOLINTNEXTLINE(bugprone-exception-escape): what cannot be said on the terminal ends the program
int main(int argc, char** argv) {
  using namespace isomer::cli;
  return run_program(argc, argv,
                     {{"apply", "Run a law on the tensors of a file", apply_command},
                      {"check", "Compare every form of a law with its double reference", check_command},
                      {"bench", "Time laws", bench_command},
                      {"list", "The mixers and what a layer of each costs", list_command},
                      {"show", "A mixer: options, equations, costs, forms", show_command},
                      {"tasks", "List the tasks, show a task's options and examples", tasks_command},
                      {"train", "Train the model of a recipe", train_command},
                      {"sweep", "Train every combination of a grid", sweep_command},
                      {"eval", "Score a run on its task or on another", eval_command},
                      {"generate", "Stream tokens from a model", generate_command},
                      {"logits", "A model on the tokens of a file", logits_command},
                      {"classify", "The class of a text", classify_command},
                      {"tokenizer", "Learn a tokenizer; text to tokens and back", tokenizer_command},
                      {"convert", "Other mixers in a trained model", convert_command},
                      {"export", "A model as a folder for other programs", export_command},
                      {"run", "A pre-trained model: go on, fill in, compare", run_command},
                      {"runs", "A table of runs", runs_command},
                      {"study", "The claims of the sources, measured here", study_command},
                      {"report", "A page for a browser: the study, or the curves of runs", report_command},
                      {"explore", "Mixers and runs as attention maps, on a page that follows their options", explore_command},
                      {"completion", "A script that lets a shell complete commands", completion_command}});
}
