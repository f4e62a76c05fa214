//! The readers of untrusted files, for the fuzz targets.

pub mod readers;

/// Prints a panic without ending the process, in contrast to libFuzzer: the program catches the
/// panics of image decoders and other libraries. A panic that nothing catches still ends it.
pub fn keep_caught_panics() {
    std::panic::set_hook(Box::new(|panic| eprintln!("{panic}")));
}
