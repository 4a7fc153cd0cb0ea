//! The program of libFuzzer: the target that the environment names, on inputs that reach new code. See `fuzz/run`.
#![no_main]

use coremix_fuzz::{TARGETS, Target, memory, run};
use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;

#[global_allocator]
static MEMORY: memory::Limited = memory::Limited;

/// The arguments are those of libFuzzer.
const TARGET: &str = "COREMIX_FUZZ_TARGET";

static CHOSEN: OnceLock<Target> = OnceLock::new();

fuzz_target!(
    init: {
        let name = std::env::var(TARGET).unwrap_or_default();
        let found = TARGETS.iter().find(|(known, _)| *known == name);
        let Some((_, target)) = found else {
            eprintln!("{TARGET} must name one of {:?}", TARGETS.map(|(name, _)| name));
            std::process::exit(2);
        };
        CHOSEN.set(*target).ok();
    },
    |bytes: &[u8]| {
        run(*CHOSEN.get().expect("chosen before the first input"), bytes);
    }
);
