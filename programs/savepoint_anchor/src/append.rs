//! APPEND: puts the next entry in the place of the one that the client says it saw.

use crate::{
    address::with_bump,
    body::Body,
    entry,
    error::Error,
    layout::{ACCOUNT_BYTES, BUMP, FLAGS, INSTANCE, RETIRED, SUCCESSOR},
};
use pinocchio::{AccountView, Address, ProgramResult};

/// Accounts:
///
/// 0. `[signer]` authority of the instance
/// 1. `[writable]` account: canonical address of instance and authority
///
/// Data: sequence u64 and entry hash of the entry that is there now, body of any type but
/// SUCCESSOR. Another entry than the expected one is left as it is: so nothing is overwritten
/// unseen, and what is sent twice lands once.
pub fn append(program: &Address, accounts: &mut [AccountView], data: &[u8]) -> ProgramResult {
    let [authority, account] = accounts else {
        return Err(Error::AccountCount.into());
    };
    let (sequence, data) = data.split_first_chunk().ok_or(Error::InstructionLength)?;
    let (expected, data) = data
        .split_first_chunk::<32>()
        .ok_or(Error::InstructionLength)?;
    let body = Body::parse(data)?;
    check_roles(program, authority, account)?;
    let current = entry::read(account)?;
    let bump = current[BUMP];
    check_follows(current, &body)?;
    if account.address() != &with_bump(program, body.instance(), authority.address(), bump) {
        return Err(Error::WrongAddress.into());
    }
    if entry::sequence(current) != u64::from_le_bytes(*sequence) {
        return Err(Error::WrongSequence.into());
    }
    if &entry::hash(current)? != expected {
        return Err(Error::WrongEntryHash.into());
    }
    let next = entry::sequence(current)
        .checked_add(1)
        .ok_or(Error::WrongSequence)?;
    entry::write(account, next, bump, &body)
}

fn check_roles(
    program: &Address,
    authority: &AccountView,
    account: &AccountView,
) -> Result<(), Error> {
    if !authority.is_signer() {
        return Err(Error::AuthorityNotSigner);
    }
    if !account.is_writable() {
        return Err(Error::AccountNotWritable);
    }
    if !account.owned_by(program) {
        return Err(Error::WrongOwner);
    }
    Ok(())
}

/// What the entries of one account may not do: change their instance, go on after RETIRE, or begin
/// as a successor in the middle.
fn check_follows(current: &[u8; ACCOUNT_BYTES], body: &Body) -> Result<(), Error> {
    if body.instance() != &current[INSTANCE] {
        return Err(Error::InstanceChanged);
    }
    if current[FLAGS] & RETIRED != 0 {
        return Err(Error::Retired);
    }
    if body.kind() == SUCCESSOR {
        return Err(Error::EntryType);
    }
    Ok(())
}
