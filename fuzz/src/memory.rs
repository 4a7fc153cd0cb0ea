//! An allocator that refuses requests out of proportion to any input of a target.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};

/// Bytes of one request, at most. Inputs have some thousands, and the largest tables some ten thousand numbers.
const MOST: usize = 1 << 26;

/// The allocator of the system, for requests of at most 64 MiB: a larger one ends the process.
#[derive(Clone, Copy, Debug)]
pub struct Limited;

fn check(size: usize) {
    if size > MOST {
        eprintln!("a request of {size} bytes; at most {MOST} are allowed");
        std::process::abort();
    }
}

// SAFETY: all calls are handed to the allocator of the system as they are.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        check(layout.size());
        // SAFETY: the caller keeps the rules of this method.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        check(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        check(size);
        // SAFETY: as above.
        unsafe { System.realloc(place, layout, size) }
    }
}
