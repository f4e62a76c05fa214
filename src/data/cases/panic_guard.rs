//! Calls into the Parquet library, which panics on some damaged files.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use ::parquet::errors;

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `call`. A panic in it becomes an error and is not printed; those of other code
/// and other threads are printed as ever.
pub(super) fn guard<T>(call: impl FnOnce() -> errors::Result<T>) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let print = take_hook();
        set_hook(Box::new(move |panic| {
            if !GUARDED.get() {
                print(panic);
            }
        }));
    });
    GUARDED.set(true);
    let result = catch_unwind(AssertUnwindSafe(call));
    GUARDED.set(false);
    match result {
        Ok(result) => result.map_err(|e| e.to_string()),
        Err(_) => Err("the file is damaged".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error() {
        let given: &[u8] = &[];
        let result = guard(|| Ok(given[usize::from(given.is_empty())]));
        assert!(result.unwrap_err().contains("damaged"));
        assert_eq!(guard(|| Ok(1)), Ok(1));
        assert!(!GUARDED.get());
    }
}
