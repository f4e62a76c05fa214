//! Sets the number of threads once.
//!
//! candle 0.11 asks the system for the number of processors at every matrix product, unless `RAYON_NUM_THREADS` is
//! set. On Linux that reads `/proc/cpuinfo`, which takes longer than a small product. A running program cannot safely
//! change its own environment, so it executes itself again with the variable set, in the same process.

use std::ffi::OsStr;

const VARIABLE: &str = "RAYON_NUM_THREADS";

/// Executes the program again with the number of threads in its environment, unless it is set. Returns if that is
/// impossible or unnecessary; the program is then only slower.
pub fn settle() {
    if std::env::var_os(VARIABLE).is_some_and(|value| !value.is_empty() && value != OsStr::new("0"))
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
        // `exec` returns only on an error; the program then continues, only slower.
        let _ = command
            .args(arguments)
            .env(VARIABLE, threads.to_string())
            .exec();
    }
}
