//! Where the fields of an account and of an entry's body stand.

use core::ops::Range;

pub const ACCOUNT_BYTES: usize = 465;
pub const MAX_METADATA: usize = 256;

/// `EF BB BF` and version 1.
pub const HEADER: [u8; 4] = [0xEF, 0xBB, 0xBF, 1];
pub const SEQUENCE: Range<usize> = 4..12;
pub const SLOT: Range<usize> = 12..20;
pub const BUMP: usize = 20;
pub const FLAGS: usize = 21;
pub const METADATA_LENGTH: Range<usize> = 22..24;
pub const CHAIN_TIME: Range<usize> = 24..32;

/// Type, client time, instance, snapshot, commit and signature: as the client sent them.
pub const BODY: Range<usize> = 32..209;
pub const INSTANCE: Range<usize> = 41..73;
/// What an entry hash covers of the body: all but the signature.
pub const HASHED: Range<usize> = 32..145;
pub const METADATA: usize = 209;

/// The same, counted from where a body begins.
pub const BODY_BYTES: usize = 177;
pub const BODY_INSTANCE: Range<usize> = 9..41;
pub const BODY_COMMIT: Range<usize> = 73..113;

pub const SAVEPOINT: u8 = 1;
pub const RETIRE: u8 = 3;
pub const SUCCESSOR: u8 = 4;

/// Bit 0 of the flags.
pub const RETIRED: u8 = 1;
