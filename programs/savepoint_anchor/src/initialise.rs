//! INITIALISE: makes an instance's account, with its first entry.

use crate::{
    address::{canonical, SEED},
    body::Body,
    entry,
    error::Error,
    layout::ACCOUNT_BYTES,
};
use pinocchio::{
    cpi::{Seed, Signer},
    sysvars::{rent::Rent, Sysvar},
    AccountView, Address, ProgramResult,
};
use pinocchio_system::instructions::{Allocate, Assign, Transfer};

const FIRST: u64 = 1;

/// Accounts:
///
/// 0. `[writable, signer]` payer of the rent, may be the authority
/// 1. `[signer]` authority of the instance
/// 2. `[writable]` account: canonical address of instance and authority
/// 3. `[]` system program
///
/// Data: bump u8, body of any type: an instance may be retired before anything of it was anchored.
pub fn initialise(program: &Address, accounts: &mut [AccountView], data: &[u8]) -> ProgramResult {
    let [payer, authority, account, system] = accounts else {
        return Err(Error::AccountCount.into());
    };
    let (&bump, data) = data.split_first().ok_or(Error::InstructionLength)?;
    let body = Body::parse(data)?;
    check_roles(payer, authority, account, system)?;
    check_unused(program, account)?;
    check_address(program, account, authority, body.instance(), bump)?;
    let seeds = [
        Seed::from(SEED),
        Seed::from(body.instance()),
        Seed::from(authority.address().as_array()),
        Seed::from(core::slice::from_ref(&bump)),
    ];
    create(program, payer, account, &[Signer::from(&seeds)])?;
    entry::write(account, FIRST, bump, &body)
}

fn check_roles(
    payer: &AccountView,
    authority: &AccountView,
    account: &AccountView,
    system: &AccountView,
) -> Result<(), Error> {
    if !payer.is_signer() {
        return Err(Error::PayerNotSigner);
    }
    if !authority.is_signer() {
        return Err(Error::AuthorityNotSigner);
    }
    if !payer.is_writable() || !account.is_writable() {
        return Err(Error::AccountNotWritable);
    }
    if system.address() != &pinocchio_system::ID {
        return Err(Error::NotSystemProgram);
    }
    Ok(())
}

/// Lamports may be there: anybody can send some to an address before its owner comes to use it.
fn check_unused(program: &Address, account: &AccountView) -> Result<(), Error> {
    if account.owned_by(program) {
        return Err(Error::AlreadyInitialised);
    }
    if !account.owned_by(&pinocchio_system::ID) || !account.is_data_empty() {
        return Err(Error::WrongOwner);
    }
    Ok(())
}

fn check_address(
    program: &Address,
    account: &AccountView,
    authority: &AccountView,
    instance: &[u8],
    bump: u8,
) -> Result<(), Error> {
    let (address, found) =
        canonical(program, instance, authority.address()).ok_or(Error::WrongBump)?;
    if bump != found {
        return Err(Error::WrongBump);
    }
    if account.address() != &address {
        return Err(Error::WrongAddress);
    }
    Ok(())
}

/// Transfer of what is missing, allocate, assign. `create_account` would fail where lamports are:
/// a stranger could keep an account from being made by one transfer (hyperlane#2267, SPL#2751).
fn create(
    program: &Address,
    payer: &AccountView,
    account: &AccountView,
    signer: &[Signer],
) -> ProgramResult {
    let rent = Rent::get()?.try_minimum_balance(ACCOUNT_BYTES)?;
    let lamports = rent.saturating_sub(account.lamports());
    if lamports > 0 {
        if payer.lamports() < lamports {
            return Err(Error::PayerTooPoor.into());
        }
        Transfer {
            from: payer,
            to: account,
            lamports,
        }
        .invoke()?;
    }
    Allocate {
        account,
        space: ACCOUNT_BYTES as u64,
    }
    .invoke_signed(signer)?;
    Assign {
        account,
        owner: program,
    }
    .invoke_signed(signer)
}
