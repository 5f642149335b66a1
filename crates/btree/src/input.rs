//! Bytes of pages and of the log, as they are read: whatever they are, they lead to an error and never to a large
//! allocation.

/// What is wrong with them.
pub(crate) type Damage = String;

/// Numbers and bytes from the front of what is left; what is not there is damage.
pub(crate) struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Input<'a> {
        Input { rest: bytes }
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], Damage> {
        let missing = || format!("{count} bytes wanted, {} left", self.rest.len());
        let (taken, rest) = self.rest.split_at_checked(count).ok_or_else(missing)?;
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Damage> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.bytes(N)?);
        Ok(bytes)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Damage> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Damage> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Damage> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// # Errors
    /// Something is left.
    pub(crate) fn end(&self) -> Result<(), Damage> {
        if self.rest.is_empty() { Ok(()) } else { Err(format!("{} bytes behind the end", self.rest.len())) }
    }
}
