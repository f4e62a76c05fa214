//! A limit on the memory of a response that another library reads.

use std::time::Duration;

use tokio::time::sleep;

use crate::support::process::limits::resident_bytes;

/// Time between two measurements. A response of one gigabyte per second grows by ten megabytes.
const INTERVAL: Duration = Duration::from_millis(10);

/// Waits until the resident memory of this process has grown by `max_bytes`. Waits for ever on
/// systems other than Linux. The address space is no measure: new threads reserve much of it.
pub(super) async fn wait_for_growth(max_bytes: u64) {
    let start = resident_bytes();
    let limit = start.map_or(u64::MAX, |start| start.saturating_add(max_bytes));
    while resident_bytes().is_none_or(|bytes| bytes < limit) {
        sleep(INTERVAL).await;
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use tokio::runtime::Builder;
    use tokio::time::timeout;

    use super::*;

    #[test]
    fn growth_is_noticed() {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let idle = async { timeout(INTERVAL * 3, wait_for_growth(1 << 40)).await };
        assert!(runtime.block_on(idle).is_err());
        let growing = async {
            let grow = async {
                let mut held: Vec<Vec<u8>> = Vec::new();
                loop {
                    held.push(vec![1; 64 << 20]);
                    sleep(INTERVAL).await;
                }
            };
            let growth = wait_for_growth(256 << 20);
            let both = futures_util::future::select(Box::pin(growth), Box::pin(grow));
            timeout(Duration::from_secs(20), both).await.is_ok()
        };
        assert!(runtime.block_on(growing));
    }
}
