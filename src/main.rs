//! The `acem3` command.

use std::process::ExitCode;

use acem3::cli::commands;
use acem3::cli::environment_hint;
use acem3::cli::secret_arguments;
use acem3::support::device::environment;
use acem3::support::process::isolated;
use acem3::support::terminal::exit;

fn main() -> ExitCode {
    if let Some(task) = isolated::requested_task() {
        return commands::isolated::run(&task);
    }
    // The parser quotes arguments in its errors.
    if let Err(error) = secret_arguments::check(std::env::args_os()) {
        return exit::finish(Err(error));
    }
    let cli = environment_hint::parse_or_exit();
    environment::set_variables(cli.command.workload());
    isolated::enable();
    exit::finish(commands::run(&cli))
}
