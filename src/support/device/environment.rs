//! Sets the number of threads and the memory allocator's thresholds in the environment.
//!
//! candle 0.11 queries the number of processors at every matrix product, unless `RAYON_NUM_THREADS`
//! is set. On Linux, the query reads `/proc/cpuinfo` and takes longer than a small product. glibc
//! returns the memory of every large tensor to the system and asks for it again, which costs a third
//! of the time of a small panel (`mallopt(3)`). Linux maps memory in pages of 4 kB, unless a program
//! asks for large ones: decoding, which reads all weights for each token, is slower by a tenth. A
//! running program cannot safely change its own environment. It therefore executes itself again with
//! the variables set, in the same process.

use std::ffi::OsStr;

/// The variables, except for the number of threads. Other allocators ignore them.
const ALLOCATOR_VARIABLES: [(&str, &str); 4] = [
    // The system may use pages of 2 MB.
    ("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1"),
    // Tensors up to 32 MB come from the heap.
    ("MALLOC_MMAP_THRESHOLD_", "33554432"),
    // The heap keeps up to 256 MB of free memory and grows by 32 MB.
    ("MALLOC_TRIM_THRESHOLD_", "268435456"),
    ("MALLOC_TOP_PAD_", "33554432"),
];
const THREADS_VARIABLE: &str = "RAYON_NUM_THREADS";

/// Executes the program again with the variables in its environment that the user has not set.
///
/// Returns if all are set or the program cannot be executed. In the second case, the program runs
/// slower.
pub fn set_variables() {
    let is_set = |name: &str| {
        std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != OsStr::new("0"))
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).to_string();
    let variables = ALLOCATOR_VARIABLES.into_iter().chain([(THREADS_VARIABLE, threads.as_str())]);
    let missing: Vec<(&str, &str)> = variables.filter(|(name, _)| !is_set(name)).collect();
    if missing.is_empty() {
        return;
    }
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt as _;
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
        let _ = command.args(arguments).envs(missing).exec();
    }
}
