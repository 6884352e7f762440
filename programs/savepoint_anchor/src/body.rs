//! The part of an instruction that becomes the entry.

use crate::{
    error::Error,
    layout::{BODY_BYTES, BODY_COMMIT, BODY_INSTANCE, MAX_METADATA, SAVEPOINT, SUCCESSOR},
};

/// An entry as the client sent it: 177 bytes, length u16, metadata of that length.
pub struct Body<'a> {
    pub fixed: &'a [u8; BODY_BYTES],
    pub metadata: &'a [u8],
}

impl<'a> Body<'a> {
    /// `data` to its last byte. What the program can check of the content, it checks.
    pub fn parse(data: &'a [u8]) -> Result<Self, Error> {
        let (fixed, rest) = data.split_first_chunk().ok_or(Error::InstructionLength)?;
        let (length, metadata) = rest.split_first_chunk().ok_or(Error::InstructionLength)?;
        if u16::from_le_bytes(*length) as usize != metadata.len() {
            return Err(Error::InstructionLength);
        }
        if metadata.len() > MAX_METADATA {
            return Err(Error::MetadataTooLong);
        }
        let body = Self { fixed, metadata };
        if !(SAVEPOINT..=SUCCESSOR).contains(&body.kind()) {
            return Err(Error::EntryType);
        }
        if !fixed[BODY_COMMIT]
            .iter()
            .all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'))
        {
            return Err(Error::CommitNotHex);
        }
        Ok(body)
    }

    pub fn kind(&self) -> u8 {
        self.fixed[0]
    }

    pub fn instance(&self) -> &'a [u8] {
        &self.fixed[BODY_INSTANCE]
    }
}
