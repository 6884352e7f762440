//! Keeps the newest entry of each instance in an account of 465 bytes (docs/format.md, section 10).
//!
//! Two instructions: INITIALISE makes the account with its first entry, APPEND puts the next entry
//! in the place of the one that it names. There is none to close, resize or make an account anew:
//! each of them would let a sequence start again, which is how old states are passed off as new.
//! docs/program.md tells accounts, bytes, errors and compute units.

#![no_std]

mod address;
mod append;
mod body;
mod entry;
mod error;
mod initialise;
mod layout;
mod runtime;

use error::Error;
use pinocchio::{
    no_allocator, nostd_panic_handler, program_entrypoint, AccountView, Address, ProgramResult,
};

/// One more than any instruction takes: an account too many is seen, and refused.
const MAX_ACCOUNTS: usize = 5;

program_entrypoint!(process, MAX_ACCOUNTS);
no_allocator!();
nostd_panic_handler!();

fn process(program: &Address, accounts: &mut [AccountView], data: &[u8]) -> ProgramResult {
    match data.split_first() {
        Some((0, rest)) => initialise::initialise(program, accounts, rest),
        Some((1, rest)) => append::append(program, accounts, rest),
        _ => Err(Error::UnknownInstruction.into()),
    }
}
