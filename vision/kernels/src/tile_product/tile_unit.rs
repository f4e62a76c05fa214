//! The matrix unit of a processor with AMX.

use std::arch::asm;
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::OnceLock;

use pulp::x86::V4;

use super::tile_words::{TILE_BYTES, TILE_ROWS, TileWords};

/// Bytes of a row of a tile.
const ROW_BYTES: usize = TILE_ROWS * 4;
/// Tile registers of a processor.
const REGISTERS: usize = 8;
/// Groups of 16 weight rows, or of 16 inputs, that are multiplied together.
pub(super) const GROUPS: usize = 2;

/// The processor has AMX with bf16 and AVX-512, and the operating system lets this process use them.
#[derive(Clone, Copy, Debug)]
pub(super) struct TileUnit {
    simd: V4,
}

impl TileUnit {
    /// Returns the unit, if there is one.
    pub(super) fn find() -> Option<Self> {
        static FOUND: OnceLock<bool> = OnceLock::new();
        let simd = V4::try_new()?;
        FOUND.get_or_init(|| has_instructions() && request_tiles()).then_some(Self { simd })
    }

    /// Returns the vector instructions.
    pub(super) fn simd(self) -> V4 {
        self.simd
    }

    /// Prepares the tile registers of this thread, until the result is dropped.
    ///
    /// # Panics
    ///
    /// They are in use.
    #[expect(clippy::unused_self, reason = "a value shows that the processor has the instruction")]
    pub(super) fn configure(self) -> ConfiguredTiles {
        assert!(!IN_USE.replace(true), "the tile registers of this thread are in use");
        let config = Configuration::WHOLE_TILES;
        // SAFETY: The processor has the instruction, and the operating system lets the process use
        // it, because `find` is the only way to a value of this type. The instruction reads the 64
        // bytes of the configuration, which is valid: palette 1 with eight tiles of 16 rows of 64 bytes.
        // It sets all tile registers, which are declared.
        #[expect(unsafe_code, reason = "no function of the standard library does it")]
        unsafe {
            asm!(
                "ldtilecfg [{}]",
                in(reg) &raw const config,
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack, preserves_flags),
            );
        }
        ConfiguredTiles(PhantomData)
    }
}

thread_local! {
    /// True while there is a [`ConfiguredTiles`] of this thread.
    static IN_USE: Cell<bool> = const { Cell::new(false) };
}

/// The configuration of the tile registers (`LDTILECFG` in Intel's manual).
#[repr(C, align(64))]
struct Configuration {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    /// Bytes of the rows of each register.
    row_bytes: [u16; TILE_ROWS],
    /// Rows of each register.
    rows: [u8; TILE_ROWS],
}

impl Configuration {
    const WHOLE_TILES: Self = {
        let (mut row_bytes, mut rows) = ([0; TILE_ROWS], [0; TILE_ROWS]);
        let mut i = 0;
        while i < REGISTERS {
            (row_bytes[i], rows[i]) = (ROW_BYTES as u16, TILE_ROWS as u8);
            i += 1;
        }
        Self { palette: 1, start_row: 0, reserved: [0; 14], row_bytes, rows }
    };
}

/// The tile registers of this thread, ready for use.
pub(super) struct ConfiguredTiles(PhantomData<*const ()>);

impl Drop for ConfiguredTiles {
    fn drop(&mut self) {
        // SAFETY: `configure` has prepared the registers on this thread, which a value of this type does
        // not leave. No other value needs them, because `IN_USE` was true since then. The instruction
        // clears all tile registers, which are declared.
        #[expect(unsafe_code, reason = "no function of the standard library does it")]
        unsafe {
            asm!(
                "tilerelease",
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack, preserves_flags),
            );
        }
        IN_USE.set(false);
    }
}

/// Sums of the products of groups of 16 weight rows with groups of 16 inputs: first those of the first
/// weights with each group of inputs.
pub(super) type TileSums = [[TileWords; GROUPS]; GROUPS];

impl ConfiguredTiles {
    /// Multiplies two groups of weights with two groups of inputs, which have the same number of tiles.
    #[expect(clippy::unused_self, reason = "a value shows that the registers are configured")]
    pub(super) fn multiply(
        &mut self,
        weights: [&[TileWords]; GROUPS],
        inputs: [&[TileWords]; GROUPS],
        sums: &mut TileSums,
    ) {
        let tiles = weights[0].len();
        assert!(tiles > 0 && weights.iter().chain(&inputs).all(|group| group.len() == tiles));
        let [w0, w1] = weights.map(<[TileWords]>::as_ptr);
        let [x0, x1] = inputs.map(<[TileWords]>::as_ptr);
        // SAFETY: The registers are configured for whole tiles on this thread: `configure` is the only
        // way to a value of this type, which cannot be sent to another thread, and no other value can
        // release them, because of `IN_USE`. Functions that are called in between may use tiles by the
        // calling convention, but no compiled code does without asking for it, and none here asks. The
        // loop runs `tiles` times and moves each pointer by one tile, so it reads exactly the tiles of
        // each slice. Then it writes the four tiles of `sums`. The registers that it changes are declared.
        #[expect(
            unsafe_code,
            reason = "on a Xeon of the 4th generation, products of 600 rows with a matrix of 2,816 rows \
                      of 1,024 values take a sixth of the time of those in vectors"
        )]
        unsafe {
            asm!(
                "tilezero tmm0",
                "tilezero tmm1",
                "tilezero tmm2",
                "tilezero tmm3",
                "2:",
                "tileloadd tmm4, [{w0} + {stride}]",
                "tileloadd tmm6, [{x0} + {stride}]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tileloadd tmm7, [{x1} + {stride}]",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tileloadd tmm5, [{w1} + {stride}]",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm3, tmm5, tmm7",
                "add {w0}, {tile}",
                "add {w1}, {tile}",
                "add {x0}, {tile}",
                "add {x1}, {tile}",
                "dec {tiles}",
                "jnz 2b",
                "tilestored [{sums} + {stride}], tmm0",
                "tilestored [{sums} + {stride} + {tile}], tmm1",
                "tilestored [{sums} + {stride} + 2 * {tile}], tmm2",
                "tilestored [{sums} + {stride} + 3 * {tile}], tmm3",
                w0 = inout(reg) w0 => _,
                w1 = inout(reg) w1 => _,
                x0 = inout(reg) x0 => _,
                x1 = inout(reg) x1 => _,
                tiles = inout(reg) tiles => _,
                sums = in(reg) sums.as_mut_ptr(),
                stride = in(reg) ROW_BYTES,
                tile = const TILE_BYTES,
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack),
            );
        }
    }
}

/// Returns true if the processor has AMX for bf16 (`CPUID` in Intel's manual, leaf 7).
fn has_instructions() -> bool {
    const AMX_BF16: u32 = 1 << 22;
    const AMX_TILE: u32 = 1 << 24;
    // SAFETY: Every x86-64 processor has the instruction. It is safe in newer versions of Rust.
    #[allow(
        unsafe_code,
        unused_unsafe,
        reason = "not safe yet in the oldest supported version of Rust"
    )]
    let leaf = unsafe { std::arch::x86_64::__cpuid_count(7, 0) };
    let amx = AMX_BF16 | AMX_TILE;
    leaf.edx & amx == amx
}

/// Asks Linux 5.16 or later for the tile registers. The permission is for the process with all its
/// threads (`Documentation/arch/x86/xstate.rst` of Linux).
#[cfg(target_os = "linux")]
fn request_tiles() -> bool {
    /// `ARCH_REQ_XCOMP_PERM` in Linux' `arch/x86/include/uapi/asm/prctl.h`.
    const REQUEST: libc::c_long = 0x1023;
    /// The state component of tile data, `XFEATURE_XTILE_DATA`.
    const TILE_DATA: libc::c_long = 18;
    // SAFETY: The call takes two numbers. It changes what this process may use, and no memory.
    #[expect(unsafe_code, reason = "no function of the standard library does it")]
    unsafe {
        libc::syscall(libc::SYS_arch_prctl, REQUEST, TILE_DATA) == 0
    }
}

/// Other systems are not supported.
#[cfg(not(target_os = "linux"))]
fn request_tiles() -> bool {
    false
}
