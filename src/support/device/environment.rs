//! Sets the number of threads and the memory allocator's thresholds in the environment.
//!
//! candle 0.11 queries the number of processors at every matrix product, unless `RAYON_NUM_THREADS`
//! is set. On Linux, the query reads `/proc/cpuinfo` and takes longer than a small product. glibc
//! returns the memory of every large tensor to the system and asks for it again, which costs a third
//! of the time of a small panel (`mallopt(3)`). Linux maps memory in pages of 4 kB, unless a program
//! asks for large ones: decoding, which reads all weights for each token, is slower by a tenth.
//!
//! Training has one worker per processor. By default candle also splits each large elementwise operation
//! over all processors. The workers then wait for each other, because candle has only one pool of threads
//! for this. And glibc returns the memory of all threads but the first to the system. Without both, training
//! on two processors is 1.75 times as fast.
//!
//! A running program cannot safely change its own environment. It therefore executes itself again
//! with the variables set, in the same process.

use std::ffi::OsStr;

/// What the program computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Anything but training.
    Judging,
    /// Training of models.
    Training,
}

/// Variables of judging. They are for the allocator of glibc; other allocators ignore them.
const JUDGING_VARIABLES: &[(&str, &str)] = &[
    // The system may use pages of 2 MB.
    ("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1"),
    // Tensors up to 32 MB come from the heap.
    ("MALLOC_MMAP_THRESHOLD_", "33554432"),
    // The heap keeps up to 256 MB of free memory and grows by 32 MB.
    ("MALLOC_TRIM_THRESHOLD_", "268435456"),
    ("MALLOC_TOP_PAD_", "33554432"),
];
/// Variables of training.
const TRAINING_VARIABLES: &[(&str, &str)] = &[
    ("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1"),
    ("MALLOC_MMAP_THRESHOLD_", "33554432"),
    // The number of threads for an elementwise operation.
    ("CANDLE_NUM_THREADS", "1"),
    // All threads use the heap of the first, which keeps up to 2 GB and grows by 256 MB.
    ("MALLOC_ARENA_MAX", "1"),
    ("MALLOC_TRIM_THRESHOLD_", "2147483648"),
    ("MALLOC_TOP_PAD_", "268435456"),
];
const THREADS_VARIABLE: &str = "RAYON_NUM_THREADS";

/// Executes the program again with the variables in its environment that the user has not set.
///
/// Returns if all are set or the program cannot be executed. In the second case, the program runs
/// slower.
pub fn set_variables(workload: Workload) {
    let is_set = |name: &str| {
        std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != OsStr::new("0"))
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).to_string();
    let mut missing: Vec<(&str, &str)> = variables(workload).to_vec();
    missing.push((THREADS_VARIABLE, &threads));
    missing.retain(|(name, _)| !is_set(name));
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

/// Returns the variables of a workload with their values, each once.
fn variables(workload: Workload) -> &'static [(&'static str, &'static str)] {
    match workload {
        Workload::Judging => JUDGING_VARIABLES,
        Workload::Training => TRAINING_VARIABLES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn training_has_its_own_values() {
        let value = |workload, name: &str| {
            let values: Vec<_> = variables(workload).iter().filter(|(n, _)| *n == name).collect();
            assert!(values.len() < 2, "{values:?}");
            values.first().map(|(_, value)| *value)
        };
        assert_eq!(value(Workload::Judging, "CANDLE_NUM_THREADS"), None);
        assert_eq!(value(Workload::Training, "CANDLE_NUM_THREADS"), Some("1"));
        assert_eq!(value(Workload::Judging, "MALLOC_TOP_PAD_"), Some("33554432"));
        assert_eq!(value(Workload::Training, "MALLOC_TOP_PAD_"), Some("268435456"));
        assert_eq!(value(Workload::Training, "GLIBC_TUNABLES"), Some("glibc.malloc.hugetlb=1"));
    }
}
