//! Why an instruction was refused.

use pinocchio::error::ProgramError;

/// The number behind `custom program error`. They start at 1000: below 100 are those of the system
/// program, which INITIALISE calls, and whose error looks as if it were ours. A number is never
/// given anew.
#[derive(Clone, Copy)]
pub enum Error {
    UnknownInstruction = 1000,
    InstructionLength = 1001,
    AccountCount = 1002,
    PayerNotSigner = 1003,
    AuthorityNotSigner = 1004,
    AccountNotWritable = 1005,
    NotSystemProgram = 1006,
    AlreadyInitialised = 1007,
    WrongOwner = 1008,
    WrongBump = 1009,
    WrongAddress = 1010,
    PayerTooPoor = 1011,
    EntryType = 1012,
    CommitNotHex = 1013,
    MetadataTooLong = 1014,
    MalformedAccount = 1015,
    Retired = 1016,
    InstanceChanged = 1017,
    WrongSequence = 1018,
    WrongEntryHash = 1019,
}

impl From<Error> for ProgramError {
    fn from(error: Error) -> Self {
        ProgramError::Custom(error as u32)
    }
}
