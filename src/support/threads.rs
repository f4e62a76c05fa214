//! Tells the libraries below how many threads there are, once.
//!
//! candle 0.11 asks the system for the number of processors at every matrix product, unless
//! `RAYON_NUM_THREADS` says it. On Linux that reads `/proc/cpuinfo`, which takes longer than a small
//! product does. A running program cannot safely change its own environment, so it starts itself
//! anew with the variable set, in the same process.

use std::ffi::OsStr;

const VARIABLE: &str = "RAYON_NUM_THREADS";

/// Starts the program anew with the number of threads in its environment, unless it is there.
/// Returns where that is impossible or needless; nothing is lost but time.
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
        // Only an error comes back; then the work is done slowly instead.
        let _ = command
            .args(arguments)
            .env(VARIABLE, threads.to_string())
            .exec();
    }
}
