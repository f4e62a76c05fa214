//! Runs the readers of the fuzz targets on their seeds, and on mutations of these.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::readers::{READERS, ReadFile};

/// Number of mutations of each seed.
const MUTATIONS: u64 = 200;
/// Maximum time of the mutations of one target; a slow reader gets fewer of them.
const MAX_TIME: Duration = Duration::from_millis(300);

fn fuzz_folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz").join(name)
}

/// Returns the files of a folder, by name.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Returns the names of the files of a folder, without extension.
fn names(folder: &Path) -> BTreeSet<String> {
    let stem = |path: &PathBuf| path.file_stem().unwrap().to_string_lossy().into_owned();
    files(folder).iter().map(stem).collect()
}

/// Generator of mutations.
struct Mutator {
    state: u64,
}

impl Mutator {
    /// Returns a number below `n` (`SplitMix64`).
    fn below(&mut self, n: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed >> 33) as usize % n.max(1)
    }

    /// Changes bytes, truncates, or inserts a part of another seed.
    fn mutate(&mut self, seed: &[u8], other: &[u8]) -> Vec<u8> {
        const NUMBERS: [u8; 6] = [0, 1, 0x7f, 0x80, 0xff, b'9'];
        let mut bytes = seed.to_vec();
        for _ in 0..=self.below(4) {
            let position = self.below(bytes.len());
            let end = (position + self.below(9)).min(bytes.len());
            match self.below(6) {
                0 => bytes.truncate(position),
                1 => bytes[position..end].fill(NUMBERS[self.below(NUMBERS.len())]),
                2 => drop(bytes.drain(position..end)),
                3 => {
                    let start = self.below(other.len());
                    let part = &other[start..(start + self.below(65)).min(other.len())];
                    bytes.splice(position..end, part.iter().copied());
                }
                _ if position < bytes.len() => bytes[position] ^= 1 << self.below(8),
                _ => bytes.push(b'0'),
            }
        }
        bytes
    }
}

#[test]
fn every_reader_has_a_target_and_seeds() {
    let readers: BTreeSet<String> = READERS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names(&fuzz_folder("fuzz_targets")), readers);
    assert_eq!(names(&fuzz_folder("seeds")), readers);
    for (name, _) in READERS {
        let target = fuzz_folder("fuzz_targets").join(name).with_extension("rs");
        assert!(target.is_file(), "{}", target.display());
        for seed in files(&fuzz_folder("seeds").join(name)) {
            assert!(seed.metadata().unwrap().len() <= 16 << 10, "{}", seed.display());
        }
    }
}

/// A seed that no reader accepts tests only the first check of a reader.
#[test]
fn seeds_are_accepted() {
    let rejected = READERS.iter().flat_map(|(name, read)| {
        let paths = files(&fuzz_folder("seeds").join(name));
        paths.into_iter().filter(|path| !read(&fs::read(path).unwrap()))
    });
    let rejected: Vec<PathBuf> = rejected.collect();
    assert!(rejected.is_empty(), "{rejected:?}");
}

#[test]
fn mutated_seeds_do_not_panic() {
    for (number, (name, read)) in (1..).zip(READERS) {
        let paths = files(&fuzz_folder("seeds").join(name));
        let seeds: Vec<Vec<u8>> = paths.iter().map(|path| fs::read(path).unwrap()).collect();
        read_mutations(read, &seeds, number);
    }
}

/// Reads mutations of all seeds in turn.
fn read_mutations(read: ReadFile, seeds: &[Vec<u8>], number: u64) {
    let mut mutator = Mutator { state: number };
    let start = Instant::now();
    for _ in 0..MUTATIONS {
        for seed in seeds {
            let other = mutator.below(seeds.len());
            read(&mutator.mutate(seed, &seeds[other]));
        }
        if start.elapsed() > MAX_TIME {
            break;
        }
    }
}
