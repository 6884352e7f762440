//! What the runtime does for a program: hashing at a fraction of the price, and copies of any
//! length, for which LLVM has no code on this target.

use pinocchio::syscalls::{sol_memcpy_, sol_memset_, sol_sha256};

/// SHA-256 of the parts, one behind the other.
pub fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    let mut digest = [0; 32];
    // SAFETY: a slice of slices is what the syscall reads, pointer and length each; it writes 32
    // bytes. It gives 0 or ends the program.
    unsafe {
        sol_sha256(
            parts.as_ptr().cast(),
            parts.len() as u64,
            digest.as_mut_ptr(),
        )
    };
    digest
}

/// `source`, then zeros to the end of `target`. Panics where it does not fit.
pub fn copy_padded(target: &mut [u8], source: &[u8]) {
    let (head, tail) = target.split_at_mut(source.len());
    // SAFETY: each length is that of the slice which is written, and that of the one which is read;
    // a mutable and a shared slice do not overlap. The syscalls end the program on failure.
    unsafe {
        sol_memcpy_(head.as_mut_ptr(), source.as_ptr(), source.len() as u64);
        sol_memset_(tail.as_mut_ptr(), 0, tail.len() as u64);
    }
}
