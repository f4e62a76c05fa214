//! Limits of an isolated process, enforced by the operating system.
//!
//! Windows has no such limits here: the process is isolated, but can use any amount of memory and
//! time.

/// Memory that a request may use, in bytes, in addition to the memory of the idle process.
pub const MEMORY_BYTES: u64 = 704 << 20;
/// CPU time that a request may use, in seconds.
pub const CPU_SECONDS: u64 = 8;

/// Limits the memory of this process, if the system supports it.
pub fn limit_memory() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Resource, Rlimit, setrlimit};
        if let Some(used) = address_space_bytes() {
            let limit = Some(used.saturating_add(MEMORY_BYTES));
            let _ = setrlimit(Resource::As, Rlimit { current: limit, maximum: limit });
        }
    }
}

/// Allows this process [`CPU_SECONDS`] more of CPU time from now on, rounded up to a whole second,
/// if the system supports it.
pub fn renew_cpu_time() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        use rustix::time::{ClockId, clock_gettime};
        let used = clock_gettime(ClockId::ProcessCPUTime).tv_sec;
        let limit = u64::try_from(used).unwrap_or(0).saturating_add(CPU_SECONDS + 1);
        let maximum = getrlimit(Resource::Cpu).maximum;
        let _ = setrlimit(Resource::Cpu, Rlimit { current: Some(limit), maximum });
    }
}

/// Returns the size of the address space of this process in bytes.
#[cfg(target_os = "linux")]
fn address_space_bytes() -> Option<u64> {
    memory_bytes(0)
}

/// Returns the resident memory of this process in bytes; `None` on systems other than Linux.
pub fn resident_bytes() -> Option<u64> {
    #[cfg(target_os = "linux")]
    {
        memory_bytes(1)
    }
    #[cfg(not(target_os = "linux"))]
    None
}

/// Returns the memory that the system can give to programs, in bytes. `None` except on Linux.
pub fn free_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns a field of `/proc/self/statm` in bytes.
#[cfg(target_os = "linux")]
fn memory_bytes(field: usize) -> Option<u64> {
    let statistics = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statistics.split_whitespace().nth(field)?.parse().ok()?;
    pages.checked_mul(rustix::param::page_size() as u64)
}
