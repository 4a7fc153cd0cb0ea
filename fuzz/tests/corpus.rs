//! The inputs that once broke a promise, and some that reach much code: each keeps the promises of its target.

use coremix_fuzz::{TARGETS, memory, run};
use std::path::Path;

#[global_allocator]
static MEMORY: memory::Limited = memory::Limited;

/// One target after the other: they share a thread and a file.
#[test]
fn inputs_keep_the_promises() {
    for (name, target) in TARGETS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("corpus")
            .join(name);
        let inputs = std::fs::read_dir(&folder).expect("a folder of inputs");
        let inputs: Vec<_> = inputs
            .map(|entry| entry.expect("an input").path())
            .collect();
        assert!(!inputs.is_empty(), "{}", folder.display());
        for path in inputs {
            // Shown if the test fails.
            println!("{}", path.display());
            run(target, &std::fs::read(path).expect("an input"));
        }
        // Short inputs are whole descriptions too.
        run(target, &[]);
        for byte in (0..=255).step_by(5) {
            for length in [1, 7, 64] {
                println!("{name}: {length} times {byte}");
                run(target, &vec![byte; length]);
            }
        }
    }
}
