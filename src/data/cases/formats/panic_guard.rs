//! Catches panics of libraries on damaged files.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use ::parquet::errors;

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `call` and converts a panic to an error without printing it. Panics of other code and
/// threads are still printed.
pub(crate) fn catch_panic<T>(call: impl FnOnce() -> errors::Result<T>) -> Result<T, String> {
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
    fn panic_becomes_an_error() {
        let empty: &[u8] = &[];
        let result = catch_panic(|| Ok(empty[usize::from(empty.is_empty())]));
        assert!(result.unwrap_err().contains("damaged"));
        assert_eq!(catch_panic(|| Ok(1)), Ok(1));
        assert!(!GUARDED.get());
    }
}
