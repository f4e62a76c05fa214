//! Sets the number of threads in the environment.
//!
//! candle 0.11 queries the number of processors at every matrix product, unless `RAYON_NUM_THREADS`
//! is set. On Linux, the query reads `/proc/cpuinfo` and takes longer than a small product. A
//! running program cannot safely change its own environment. It therefore executes itself again
//! with the variable set, in the same process.

use std::ffi::OsStr;

const THREADS_VARIABLE: &str = "RAYON_NUM_THREADS";

/// Executes the program again with the number of threads in its environment.
///
/// Returns if the variable is already set or the program cannot be executed. In the second case,
/// the program runs slower.
pub fn set_thread_count() {
    if std::env::var_os(THREADS_VARIABLE)
        .is_some_and(|value| !value.is_empty() && value != OsStr::new("0"))
    {
        return;
    }
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt as _;
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let Ok(program) = std::env::current_exe() else {
            return;
        };
        let mut arguments = std::env::args_os();
        let name = arguments.next();
        let mut command = std::process::Command::new(program);
        if let Some(name) = name {
            command.arg0(name);
        }
        // `exec` returns only on an error. The program then continues.
        let _ = command.args(arguments).env(THREADS_VARIABLE, threads.to_string()).exec();
    }
}
