//! The address of an instance's account.
//!
//! The hash is computed here rather than by `sol_create_program_address`, which costs 1,500 compute
//! units for each bump that is tried, against some 350.

use crate::runtime::sha256;
use pinocchio::Address;

pub const SEED: &[u8] = b"gabriel-consciousness";

/// Behind the seeds of every program-derived address (solana-address, `PDA_MARKER`).
const MARKER: &[u8] = b"ProgramDerivedAddress";

/// The address with this bump. It may be on the curve: see [`canonical`].
pub fn with_bump(program: &Address, instance: &[u8], authority: &Address, bump: u8) -> Address {
    Address::new_from_array(sha256(&[
        SEED,
        instance,
        authority.as_array(),
        &[bump],
        program.as_array(),
        MARKER,
    ]))
}

/// The address with the highest bump that is off the curve, and that bump.
///
/// Any lower one that is off the curve is an address of the same seeds as well: were it accepted,
/// one instance and authority could have two accounts, with different histories.
pub fn canonical(program: &Address, instance: &[u8], authority: &Address) -> Option<(Address, u8)> {
    (0..=u8::MAX).rev().find_map(|bump| {
        let address = with_bump(program, instance, authority, bump);
        (!address.is_on_curve()).then_some((address, bump))
    })
}
