//! The entry that an account holds: its hash, and how the next one is written over it.

use crate::{
    body::Body,
    error::Error,
    layout::{
        ACCOUNT_BYTES, BODY, BUMP, CHAIN_TIME, FLAGS, HASHED, HEADER, METADATA, METADATA_LENGTH,
        RETIRE, RETIRED, SEQUENCE, SLOT,
    },
    runtime::{copy_padded, sha256},
};
use pinocchio::{
    error::ProgramError,
    sysvars::{clock::Clock, Sysvar},
    AccountView, ProgramResult,
};

const DOMAIN: &[u8] = b"\xFFsavepoint/entry/v1\0";

/// The bytes of an account of ours, and no others.
pub fn read(account: &AccountView) -> Result<&[u8; ACCOUNT_BYTES], Error> {
    // SAFETY: nothing is borrowed mutably while the result is in use: `write` takes `&mut`, the
    // same account stands in no other place: those are signed for, or hold the system program.
    let data = unsafe { account.borrow_unchecked() };
    let data: &[u8; ACCOUNT_BYTES] = data.try_into().map_err(|_| Error::MalformedAccount)?;
    if !data.starts_with(&HEADER) {
        return Err(Error::MalformedAccount);
    }
    Ok(data)
}

pub fn sequence(data: &[u8; ACCOUNT_BYTES]) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&data[SEQUENCE]);
    u64::from_le_bytes(bytes)
}

/// Entry hash: without signature, slot and chain time, so that it is known before an entry is sent.
pub fn hash(data: &[u8; ACCOUNT_BYTES]) -> Result<[u8; 32], Error> {
    let length = u16::from_le_bytes([data[METADATA_LENGTH.start], data[METADATA_LENGTH.start + 1]]);
    let metadata = data[METADATA..]
        .get(..length as usize)
        .ok_or(Error::MalformedAccount)?;
    Ok(sha256(&[DOMAIN, &data[SEQUENCE], &data[HASHED], metadata]))
}

/// Every byte of the account, with slot and time as the cluster has them now.
pub fn write(account: &mut AccountView, sequence: u64, bump: u8, body: &Body) -> ProgramResult {
    let clock = Clock::get()?;
    // SAFETY: as in `read`; the caller's views of the old bytes have ended.
    let data = unsafe { account.borrow_unchecked_mut() };
    let data: &mut [u8; ACCOUNT_BYTES] = data
        .try_into()
        .map_err(|_| ProgramError::from(Error::MalformedAccount))?;
    data[..HEADER.len()].copy_from_slice(&HEADER);
    data[SEQUENCE].copy_from_slice(&sequence.to_le_bytes());
    data[SLOT].copy_from_slice(&clock.slot.to_le_bytes());
    data[BUMP] = bump;
    data[FLAGS] = if body.kind() == RETIRE { RETIRED } else { 0 };
    data[METADATA_LENGTH].copy_from_slice(&(body.metadata.len() as u16).to_le_bytes());
    data[CHAIN_TIME].copy_from_slice(&clock.unix_timestamp.to_le_bytes());
    copy_padded(&mut data[BODY], body.fixed);
    copy_padded(&mut data[METADATA..], body.metadata);
    Ok(())
}
